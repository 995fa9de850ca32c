// Package trainer is the small interface between a study and the code that
// trains a model: a [Trainer] takes the parameters of one configuration, trains
// it a number of times with different random streams, and gives back what it
// measured. Nothing here knows about servers, so that a trainer can be called
// from a plain Go program:
//
//	t, err := builtin.Registry().New(ctx, "sparse-vector", trainer.Options{})
//	...
//	m, err := t.Train(ctx, trainer.Run{
//		Parameters: trainer.Parameters{"cutoff": int64(10), "noise_scale": 0.5},
//		Replicates: 50,
//		Seed:       1,
//	}, nil)
//
// # A trainer of one's own
//
// A trainer is a value with two methods, of which Train
//
//   - checks all parameters before anything else, with the getters of [Parameters] and
//     [Parameters.Only], so that a misspelt one is not ignored;
//   - draws the randomness of every replicate from streams of its own (package random),
//     so that a run can be repeated, on any number of processors;
//   - returns a value of every metric for every replicate, or an [InfeasibleError] if
//     there is none: diverged training has no score;
//   - calls the report after every epoch, if training has any, which lets a study count
//     each of them as a configuration, and stop those that cannot win.
//
// A [Definition] makes the trainer from [Settings], which say what is fixed in a study:
// the data above all. [Registry.Register] puts it beside the built-in ones. Models that
// classify need not do all of this themselves: package experiment has the settings of
// the data, the examples that are held out, the metrics, and the loop over epochs.
//
// Trainers measure utility only. The privacy of a configuration follows from its
// parameters by accounting, which is the business of package privacy and of the server.
// A [Declaration] says what the server has to know: parameters and their domains,
// metrics, and the mechanism, with an expression over the parameters for each of its
// fields. A [PrivateTrainer] returns the same mechanism as a value, for programs and for
// tests that compare the two. What the trainer does has to be what it declares: nothing
// can check that noise is added, or that lots are drawn as they are accounted.
//
// The example of this package is a whole trainer.
package trainer
