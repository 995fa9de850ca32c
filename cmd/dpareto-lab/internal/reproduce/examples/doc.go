// Package examples repeats Figures 1 to 4 of Avent, González, Diethe, Paleyes and Balle, "Automatic
// Discovery of Privacy-Utility Pareto Fronts", PoPETs 2020(4): two mechanisms with two parameters each,
// whose exact Pareto fronts can be computed, and the Gaussian processes, the acquisition and
// the next point of the method on them.
//
// The figures of the published code differ in two ways that are mistakes. Its trainings stop early when the
// loss stalls, which depends on the data in a way that the proof of the sensitivity does not cover; here they always have
// ten epochs. Its heat maps of Figures 1 and 3 are transposed and flipped.
package examples
