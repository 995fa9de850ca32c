package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

func TestEach(t *testing.T) {
	for _, procs := range []int{1, 3} {
		previous := runtime.GOMAXPROCS(procs)
		var calls [50]atomic.Int32
		failed, err := Each(t.Context(), len(calls), func(i int) error {
			calls[i].Add(1)
			if i%20 == 13 {
				return fmt.Errorf("error %d", i)
			}
			return nil
		})
		runtime.GOMAXPROCS(previous)
		if failed != 13 || err == nil || err.Error() != "error 13" {
			t.Errorf("%d processors: %d failed with %v, want 13", procs, failed, err)
		}
		for i := range calls {
			if n := calls[i].Load(); n != 1 {
				t.Errorf("%d processors: %d calls for %d, want 1", procs, n, i)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	var calls atomic.Int32
	_, err := Each(ctx, 1000, func(int) error { calls.Add(1); cancel(); return errors.New("late") })
	if !errors.Is(err, context.Canceled) || int(calls.Load()) > runtime.GOMAXPROCS(0) {
		t.Errorf("cancelled: %d calls, %v", calls.Load(), err)
	}
}

// counter is a learner whose error on a dataset is its epochs over the dataset's rows.
type counter struct {
	epochs   int
	broken   int // the epoch from which it is not finite
	infinite int // the epoch from which its loss is not
}

func (c *counter) Epoch(ctx context.Context) bool {
	c.epochs++
	return ctx.Err() == nil
}

func (c *counter) Size() int    { return 3 }
func (c *counter) Finite() bool { return c.broken == 0 || c.epochs < c.broken }

func (c *counter) Evaluate(rows int) (errorRate, loss float64) {
	if c.infinite > 0 && c.epochs >= c.infinite {
		return 0, math.Inf(1)
	}
	return float64(c.epochs) / float64(rows), float64(-c.epochs)
}

func evaluator(t *testing.T, parts *dataset.Parts) Evaluator[int] {
	t.Helper()
	e, err := NewEvaluator(parts, func(d *dataset.Dataset) (int, error) {
		if d.Rows == 0 {
			return 0, errors.New("empty")
		}
		return d.Rows, nil
	})
	require.NoError(t, err)
	return e
}

func TestTrain(t *testing.T) {
	all := &dataset.Parts{Train: dataset.Generated(8, 1), Validation: dataset.Generated(4, 2), Test: dataset.Generated(2, 3)}
	learners := func(changes ...func(*counter)) []Learner[int] {
		second := &counter{epochs: 10}
		for _, change := range changes {
			change(second)
		}
		return []Learner[int]{&counter{}, second}
	}
	var steps []int64
	last, err := Train(t.Context(), learners(), evaluator(t, all), 3, func(m trainer.Measurement) error {
		steps = append(steps, m.Step)
		return nil
	})
	require.NoError(t, err)
	want := map[string][]float64{
		MetricError: {0.75, 3.25}, MetricLoss: {-3, -13}, MetricTestError: {1.5, 6.5}, MetricTestLoss: {-3, -13},
	}
	if diff := cmp.Diff(want, last.Metrics); diff != "" || last.Step != 3 {
		t.Errorf("step %d, metrics (-want +got):\n%s", last.Step, diff)
	}
	if diff := cmp.Diff([]int64{1, 2, 3}, steps); diff != "" {
		t.Errorf("steps (-want +got):\n%s", diff)
	}

	// A user's own data have a schema, which states a norm, and measure costs.
	own := *all.Train
	own.FeatureNorm = 1
	var first map[string][]float64
	last, err = Train(t.Context(), learners(), evaluator(t, &dataset.Parts{Train: &own, Test: all.Test}), 2, func(m trainer.Measurement) error {
		if m.Step == 1 {
			first = m.Metrics
		}
		return nil
	})
	require.NoError(t, err)
	for r, seconds := range last.Metrics[MetricSeconds] {
		if before := first[MetricSeconds][r]; !(seconds >= before && before >= 0 && seconds <= last.Elapsed.Seconds()) {
			t.Errorf("replicate %d took %v s after one epoch, %v s after two, of %v", r, before, seconds, last.Elapsed)
		}
	}
	if diff := cmp.Diff([]float64{24, 24}, last.Metrics[MetricBytes]); diff != "" || len(last.Metrics) != 4 {
		t.Errorf("bytes (-want +got):\n%s, metrics %v", diff, last.Metrics)
	}

	// Under the paper's protocol the test examples give the error.
	last, err = Train(t.Context(), learners(), evaluator(t, &dataset.Parts{Train: all.Train, Test: all.Test}), 1, nil)
	require.NoError(t, err)
	if diff := cmp.Diff(map[string][]float64{MetricError: {0.5, 5.5}, MetricLoss: {-1, -11}}, last.Metrics); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}

	stop := func(err error) trainer.Report { return func(trainer.Measurement) error { return err } }
	if last, err = Train(t.Context(), learners(), evaluator(t, all), 3, stop(trainer.ErrStop)); err != nil || last.Step != 1 {
		t.Errorf("stopped: step %d, error %v", last.Step, err)
	}
	broken := errors.New("broken")
	if _, err = Train(t.Context(), learners(), evaluator(t, all), 3, stop(broken)); !errors.Is(err, broken) {
		t.Errorf("error %v, want the report's", err)
	}
	for _, change := range []func(*counter){
		func(c *counter) { c.broken = 12 }, func(c *counter) { c.infinite = 12 },
	} {
		_, err = Train(t.Context(), learners(change), evaluator(t, all), 3, nil)
		if infeasible, ok := errors.AsType[*trainer.InfeasibleError](err); !ok || !strings.Contains(infeasible.Reason, "after epoch 2 of replicate 1") {
			t.Errorf("error %v, want infeasible after epoch 2 of replicate 1", err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	_, err = Train(ctx, learners(), evaluator(t, all), 3, func(trainer.Measurement) error { cancel(); return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
}

func TestNewEvaluatorErrors(t *testing.T) {
	good := dataset.Generated(5, 1)
	prepare := func(d *dataset.Dataset) (int, error) {
		if d.Rows == 0 {
			return 0, errors.New("empty")
		}
		return d.Rows, nil
	}
	other := *good
	other.Classes = 3
	for want, parts := range map[string]*dataset.Parts{
		"dataset adult-generated has no test examples": {Train: good},
		"empty": {Train: good, Test: dataset.Generated(0, 1)},
		"dataset adult-generated has 3 classes, want the 2 of adult-gener": {Train: good, Test: good, Validation: &other},
	} {
		if _, err := NewEvaluator(parts, prepare); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("another dimension does not panic")
		}
	}()
	narrow := *good
	narrow.Dim = 5
	_, _ = NewEvaluator(&dataset.Parts{Train: good, Test: &narrow}, prepare)
}

func TestMetrics(t *testing.T) {
	parts := &dataset.Parts{Train: dataset.Generated(8, 1), Validation: dataset.Generated(4, 2), Test: dataset.Generated(2, 3)}
	for _, tt := range []struct {
		parts *dataset.Parts
		size  int
	}{{parts, 4}, {&dataset.Parts{Train: parts.Train, Test: parts.Test}, 2}} {
		declared := Metrics(tt.parts, "nats")
		measured := evaluator(t, tt.parts).Metrics(1)
		if len(declared) != len(measured) {
			t.Errorf("%d metrics are declared, %d measured", len(declared), len(measured))
		}
		for i, m := range declared {
			if _, ok := measured[m.Name]; !ok {
				t.Errorf("%s is declared, but not measured", m.Name)
			}
			if m.Objective != (i == 0) || m.Objective && m.SampleSize != tt.size {
				t.Errorf("metric %d: %+v, want an objective on %d examples if the first", i, m, tt.size)
			}
		}
	}
}
