// Package suggest chooses the next configurations of a multi-objective study.
//
// A [Problem] says what is searched (a [space.Space]) and what is wanted (its [Objective]s);
// a [History] holds what is known so far; a [Designer] turns both into [Suggestion]s. This
// package has these types and what follows from them alone. The rest is in the packages below:
//
//   - designers: every designer by name, one folder each; where a new one goes
//   - model: the posterior of the metrics given a history
//   - query: the best configuration under bounds, by a model
//   - earlystop: which runs cannot add to the front any more, by a model
//   - restrict: a designer under conditions
//   - space: parameters and configurations
//   - acquisition, pareto: expected improvements, and fronts with their hypervolume
//   - problems: test problems from the literature
//
// Imports run one way: designers, query and earlystop import model; these and restrict import
// suggest; suggest imports space.
//
// Everything is reproducible: the same problem, history and request give the
// same suggestions, bit for bit on one platform. The package knows nothing of privacy: an
// objective whose value can be computed, such as a privacy loss, is one with a Known function.
//
// Designers and models are safe for concurrent use. Problems and histories are
// only read. Nothing is kept between calls but what the caller keeps: a model.Cache saves the
// time of repeated fits, and changes no result.
package suggest
