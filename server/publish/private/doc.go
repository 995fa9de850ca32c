// Package private has the policies of studies whose results can be published under a guarantee.
//
//   - policy.go: which study has which policy
//   - mode.go: private_mode, noisy values and budgets for training and test records; terms.go: what
//     such a study may spend; publication.go: what it guarantees
//   - randomstopping.go: random_stopping, the best of a random number of runs;
//     randomstopping_best.go: the release of that run; randomstopping_publication.go: what it
//     guarantees; finalrun.go: the run on all training records after a tuning on a secret subset
//   - redact.go: what may be remembered of workers' words
package private
