// Package model is the posterior of a study's metrics given its history: a Gaussian process
// for each metric that is measured, and the exact function for each that is known.
//
// [Fit] makes a [Model] from a history in three steps. The history is thinned to what a model
// can take (thin.go); each metric's values are mapped to the scale of its transform, with
// their noise (latent.go, noise.go); and hyperparameters are learned along milestones of the
// history (fitter.go), so that they depend on the history alone and a growing study seldom
// learns from scratch. A [Cache], which the caller owns, remembers what was learned.
package model
