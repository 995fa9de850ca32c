// Package fronts repeats the experiments of section 4 of Avent, González, Diethe, Paleyes and Balle,
// "Automatic Discovery of Privacy-Utility Pareto Fronts" (PoPETs 2020): Figures 5 to 8 and Tables 1
// to 4.
//
// Every line of a figure is a study in a store, made from one of the bundled files paper-*.yaml and
// run by a server and an agent in this process. So what was run is kept, an interrupted experiment goes
// on where it stopped, and "dpareto serve --store FILE" shows all of it.
package fronts
