// Package suggest chooses the next configurations of a multi-objective study.
//
// There are only a few types. A [Problem] says what is searched (a
// [space.Space]) and what is wanted (its [Objective]s); a [History] holds what
// is known so far; a [Designer] turns both into [Suggestion]s. A [Model] is
// the posterior of the objectives given a history, for whoever reports a front
// rather than extends it.
//
// Designers: [NewDefault] is the best of them, and [NewEHVI] a standard method to
// compare it with. [NewDPareto] is the method of Avent, González, Diethe, Paleyes,
// Balle, "Automatic Discovery of Privacy-Utility Pareto Fronts", PoPETs 2020(4), and
// [NewNSGA2] the genetic algorithm NSGA-II. [NewRandom] draws from the design laws of
// the space, [NewGrid] walks over a grid, and [NewQuasiRandom] spreads points evenly
// under the design laws.
//
// Everything is reproducible: the same problem, history and request give the
// same suggestions, bit for bit on one platform. What is remembered between calls,
// such as hyperparameters that were learned, saves time and changes nothing. The package knows nothing of privacy: an objective whose
// value can be computed, such as a privacy loss, is one with a Known function.
//
// Designers and models are safe for concurrent use. Problems and histories are
// only read.
package suggest
