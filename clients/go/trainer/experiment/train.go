package experiment

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Learner is the model of one replicate in training.
type Learner[E any] interface {
	// Epoch trains for one epoch more. It returns false as soon as the context is done.
	Epoch(ctx context.Context) bool
	// Finite reports whether the model has finite values only.
	Finite() bool
	// Evaluate returns the error rate and the mean loss on examples.
	Evaluate(examples E) (errorRate, loss float64)
	// Size returns the number of weights of the model.
	Size() int
}

// Predictor is a Learner whose outputs are also judged.
type Predictor[E any] interface {
	// OutputsTo stores the outputs for examples, row by row: one each for two classes and for numbers, or one for
	// every class.
	OutputsTo(dst []float64, examples E)
}

// bytesPerWeight of a model in a file.
const bytesPerWeight = 8

// Train trains learners, one of each replicate, for a number of epochs. They train in
// parallel and wait for one another after every epoch, when all are measured and the
// report, unless nil, is called. One step of the measurements is one epoch. If the evaluator has details, the
// learners are Predictors.
//
// A model that ceases to be finite gives a *trainer.InfeasibleError; other errors come
// from the context and the report.
func Train[E any](
	ctx context.Context, learners []Learner[E], evaluator Evaluator[E], epochs int64, report trainer.Report,
) (trainer.Measurement, error) {
	start := time.Now()
	var last trainer.Measurement
	seconds := make([]float64, len(learners))
	for epoch := int64(1); epoch <= epochs; epoch++ {
		metrics := evaluator.Metrics(len(learners))
		sizes := make([]float64, len(learners))
		diverged, err := Each(ctx, len(learners), func(r int) error {
			begin := time.Now()
			if !learners[r].Epoch(ctx) {
				return ctx.Err()
			}
			seconds[r] += time.Since(begin).Seconds()
			sizes[r] = float64(learners[r].Size() * bytesPerWeight)
			if !learners[r].Finite() {
				return ErrNotFinite
			}
			err := evaluator.MeasureTo(metrics, r, learners[r].Evaluate)
			if err == nil && evaluator.details != nil {
				evaluator.detailsTo(metrics, r, learners[r].(Predictor[E]))
			}
			return err
		})
		if errors.Is(err, ErrNotFinite) {
			return trainer.Measurement{}, &trainer.InfeasibleError{
				Reason: fmt.Sprintf("%v after epoch %d of replicate %d", err, epoch, diverged),
			}
		}
		if err != nil {
			return trainer.Measurement{}, err
		}
		if evaluator.costs {
			metrics[MetricSeconds], metrics[MetricBytes] = slices.Clone(seconds), sizes
		}
		last = trainer.Measurement{Step: epoch, Metrics: metrics, Elapsed: time.Since(start)}
		if report == nil {
			continue
		}
		if err := report(last); errors.Is(err, trainer.ErrStop) {
			break
		} else if err != nil {
			return trainer.Measurement{}, err
		}
	}
	return last, nil
}

// Each calls work for 0 to n−1, one call per processor at a time, and returns the
// context's error or else the error of the lowest index, so that the outcome does not
// depend on the number of processors.
func Each(ctx context.Context, n int, work func(i int) error) (failed int, err error) {
	errs := make([]error, n)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(n, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && ctx.Err() == nil; i = int(next.Add(1)) - 1 {
				errs[i] = work(i)
			}
		})
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	for i, err := range errs {
		if err != nil {
			return i, err
		}
	}
	return 0, nil
}
