// Package private has the policies of studies whose results can be published under a guarantee.
//
//   - policy.go: which study has which policy; compile.go and the files *_compile.go: what a spec says
//     about publishing, which package spec does not know
//   - mode.go: private_mode, noisy values and budgets for training and test records; terms.go: what
//     such a study may spend; plan.go: which intermediate measurements it takes; slots.go: runs that
//     are declared beforehand; publication.go: what it guarantees
//   - randomstopping.go: random_stopping, the best of a random number of runs;
//     randomstopping_list.go: the configurations that it draws from;
//     randomstopping_curve.go: which values of a run it scores; randomstopping_best.go: the release of
//     that run; randomstopping_publication.go: what it guarantees; finalrun.go: the run on all training records after a tuning on a secret subset
//   - noise.go: noise on reported values; redact.go: what may be remembered of workers' words
package private
