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
// A program that brings its own trainer implements [Trainer] and registers it
// beside the built-in ones with [Registry.Register].
//
// Trainers measure utility only. The privacy of a configuration follows from
// its parameters by accounting, which is the business of package privacy. A trainer
// can say which mechanism that is, and which studies make sense of it, by a
// [Declaration].
package trainer
