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
// # Fairness
//
// [MetricGap] and [MetricTestGap] of models of Adult are the violation of equal opportunity
// (Hardt, Price and Srebro, "Equality of opportunity in supervised learning", NeurIPS 2016)
//
//	|P(ŷ = 1 | y = 1, women) − P(ŷ = 1 | y = 1, men)|
//
// in the part's examples, where y = 1 is an income above 50K: how much likelier the model finds the
// high incomes of one sex. It is 0 for a model without such a preference, and for one that gives
// the same answer to all. Parts of fewer than 5,000 examples have no gap: too few women in them
// have a high income (3.6 % of Adult's examples are of such women) for the difference of two rates to
// mean anything. The standard error on 5,000 examples is up to 0.04, on UCI's 16,281 up to 0.022, and
// the absolute value of a difference that is 0 is on average 0.8 standard errors.
//
// The gap is no average over the examples: a record more or less changes it by up to the inverse
// of the size of the smaller group, which depends on the data. No statement of privacy for test
// records covers it, and agents refuse it in studies that make one.
//
// [MetricErrorGap] of models of a user's own data is the largest difference of the errors of two groups, which the
// schema names (overall accuracy equality; Verma and Rubin, "Fairness definitions explained", FairWare 2018). Groups of
// fewer than dataset.LeastGroup examples are left out, and there is no gap of fewer than two groups. The largest of
// several differences is biased upwards: four groups of 100 examples and error 0.2 have a gap of 0.08 on average when
// their true errors are equal.
//
// # Training
//
// A trainer makes a [Learner] for every replicate. [Train] trains them in parallel,
// measures all of them after every epoch, and reports. Trainers without epochs use [Each]
// and [Evaluator.MeasureTo].
package experiment
