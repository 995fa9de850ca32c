// Package tuning accounts private hyperparameter tuning: the best of a random number of runs, of which only that
// one is released ([RepeatedSelection], [CappedSelection], [PoissonSelection], [BinomialSelection]), tuning on a
// secret subset of the data ([SubsetSampled]), and candidates whose mechanism is drawn at random ([Mixture]).
//
// [Location] is the accountant of the selections; [privacy.Tightest] uses it where it is best. Package stopping
// draws the numbers of runs. Besides package privacy and its numerics it imports nothing of the module.
package tuning
