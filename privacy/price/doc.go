// Package price compares the costs of the ways to search for hyperparameters, before anything is
// run.
//
// A [Search] describes one run, the number of runs, and what else the ways need. [Search.Prices]
// returns every [Way] with its guarantee for the training records and, if scores have noise, for the
// test records. The accounting is in package privacy: composition and filters where everything is
// shown, the location bound where only the best of the runs is, and amplification by subsampling.
//
// The training and the test records are protected by different means, and a person must be in one of
// the two sets only. Their ε are never added up.
package price
