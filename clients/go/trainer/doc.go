// Package trainer is the interface between a study and the code that trains a model: a
// [Trainer] takes the parameters of one configuration, trains it a number of times with
// different random streams, and returns its measurements. It knows nothing of servers, so
// that a plain Go program can call a trainer:
//
//	t, err := builtin.Registry().New(ctx, "sparse-vector", trainer.Options{})
//	...
//	m, err := t.Train(ctx, trainer.Run{
//		Parameters: trainer.Parameters{"cutoff": int64(10), "noise_scale": 0.5},
//		Replicates: 50,
//		Seed:       1,
//	}, nil)
//
// # Writing a trainer
//
// A trainer has two methods. Train
//
//   - checks all parameters before anything else, with the getters of [Parameters] and
//     [Parameters.Only], so that a misspelt one is not ignored;
//   - draws the randomness of every replicate from separate streams (package random), so
//     that a run can be repeated on any number of processors;
//   - returns a value of every metric for every replicate, or an [InfeasibleError] if
//     training diverged;
//   - calls the report after every epoch, if training has any, so that a study can count
//     each epoch as a configuration and stop runs early.
//
// A [Definition] makes the trainer from [Settings], which a study fixes: above all the
// data. [Registry.Register] adds it to the built-in ones. For classifiers, package
// experiment has the settings of the data, the held-out examples, the metrics, and the
// loop over epochs.
//
// Trainers measure utility only. Package privacy and the server account the privacy of a
// configuration from its parameters. A [Declaration] tells the server the needs of a
// trainer: parameters and their domains, metrics, and the mechanism, with an expression
// over the parameters for each of its fields. A [PrivateTrainer] returns the same
// mechanism as a value, for programs and for tests that compare the two. A trainer must
// do what it declares: nothing can check that it adds the noise, or draws lots as they
// are accounted.
//
// The example of this package is a complete trainer.
package trainer
