package perturbation

import (
	"context"
	"errors"
	"math"
	"runtime"
	"sync"
	"sync/atomic"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// Names of the metrics.
const (
	MetricError           = "error"
	MetricLoss            = "loss"
	MetricValidationError = "validation_error"
	MetricValidationLoss  = "validation_loss"
)

// ErrNotFinite is returned for a model that has, or whose loss is, an infinite
// value or one that is not a number.
var ErrNotFinite = errors.New("the model or its loss is not finite")

// Evaluator measures models.
type Evaluator struct {
	loss             linear.Loss
	test, validation *linear.Examples // validation may be nil
}

// NewEvaluator returns an evaluator of the loss on the test examples and, unless
// they are nil, on the validation examples. It panics when a dimension is not dim.
func NewEvaluator(loss linear.Loss, test, validation *dataset.Dataset, bound float64, dim int) (Evaluator, error) {
	e := Evaluator{loss: loss}
	for _, part := range []struct {
		data     *dataset.Dataset
		examples **linear.Examples
	}{{test, &e.test}, {validation, &e.validation}} {
		if part.data == nil {
			continue
		}
		if part.data.Dim != dim {
			panic("perturbation: dimension mismatch")
		}
		var err error
		if *part.examples, err = linear.NewExamples(part.data, bound); err != nil {
			return e, err
		}
	}
	return e, nil
}

// Metrics returns room for the metrics of a number of replicates.
func (e Evaluator) Metrics(replicates int) map[string][]float64 {
	metrics := map[string][]float64{
		MetricError: make([]float64, replicates),
		MetricLoss:  make([]float64, replicates),
	}
	if e.validation != nil {
		metrics[MetricValidationError] = make([]float64, replicates)
		metrics[MetricValidationLoss] = make([]float64, replicates)
	}
	return metrics
}

// MeasureTo stores the metrics of the model of one replicate at its place.
// Different replicates may be measured at once. The only error is ErrNotFinite.
func (e Evaluator) MeasureTo(metrics map[string][]float64, replicate int, theta []float64) error {
	errorRate, loss := e.test.Evaluate(e.loss, theta)
	metrics[MetricError][replicate], metrics[MetricLoss][replicate] = errorRate, loss
	if e.validation != nil {
		validationError, validationLoss := e.validation.Evaluate(e.loss, theta)
		metrics[MetricValidationError][replicate], metrics[MetricValidationLoss][replicate] = validationError, validationLoss
		loss += validationLoss
	}
	// A sum is finite only if all its terms are.
	if sum := loss + floats.Norm(theta, 1); math.IsNaN(sum) || math.IsInf(sum, 0) {
		return ErrNotFinite
	}
	return nil
}

// Each calls work for 0 to n−1, as many at a time as there are processors, and
// returns the context's error or else the error of the lowest index, so that the
// outcome does not depend on the number of processors.
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
