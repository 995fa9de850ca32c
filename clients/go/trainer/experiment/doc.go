// Package experiment has what trainers of classifiers share, so that a study means the
// same with each of them: the data that they train on, the examples that judge a model,
// and the metrics.
//
// # Settings
//
// [Settings] lists the settings. [Load] reads them and loads the data that they name: any
// dataset of the catalog, divided into training, validation and test examples.
//
// # Protocol
//
// The metrics [MetricError] and [MetricLoss] are measured on the validation examples,
// held out of the training ones: a search minimises the error. [MetricTestError] and
// [MetricTestLoss] are also recorded, on the test examples, which no search has seen, so
// that the test error at the smallest error is unbiased. The privacy of a run does not
// cover the validation and test examples.
//
// The protocol of Avent, González, Diethe, Paleyes and Balle, "Automatic Discovery of
// Privacy-Utility Pareto Fronts" (PoPETs 2020), has no validation examples. The setting
// evaluation = test follows it: all training examples train, and error and loss on the
// test examples are the only metrics.
//
// # Training
//
// A trainer makes a [Learner] for every replicate. [Train] trains them in parallel,
// measures all of them after every epoch, and reports. Trainers without epochs use [Each]
// and [Evaluator.MeasureTo].
package experiment
