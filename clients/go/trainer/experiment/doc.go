// Package experiment is what trainers of classifiers have in common, so that a study
// means the same with each of them: which data they train on, which examples judge a
// model, where randomness comes from, and what is measured.
//
// # Settings
//
// [Settings] lists the settings and [Load] reads them, and loads the data that they
// name: any dataset of the catalog, divided into training, validation and test
// examples.
//
// # Protocol
//
// The metrics [MetricError] and [MetricLoss] are those of the validation examples,
// which were held out of the training ones: a search minimises the error.
// [MetricTestError] and [MetricTestLoss] are recorded beside them, on the test
// examples, which no search has seen, so that the test error at the optimum of the
// error is unbiased. The validation and the test examples are not covered by the
// privacy of a run.
//
// The protocol of Avent, González, Diethe, Paleyes and Balle, "Automatic Discovery of
// Privacy-Utility Pareto Fronts" (PoPETs 2020), has no validation examples. It is the
// setting evaluation = test: all training examples train, error and loss are those of
// the test examples, and there are no other metrics.
//
// # Training
//
// A trainer makes a [Learner] of every replicate, and [Train] does the rest: it trains
// them in parallel, measures all of them after every epoch, and reports. Trainers
// without epochs use [Each] and [Evaluator.MeasureTo].
package experiment
