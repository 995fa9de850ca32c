package perturbation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
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

func TestStreams(t *testing.T) {
	seeded, os := Streams{Seed: 1}, Streams{Seed: 1, OSNoise: true}
	if a, b := seeded.Noise(3, 9).Uint64(), seeded.Noise(3, 9).Uint64(); a != b {
		t.Errorf("the same noise stream gives %d and %d", a, b)
	}
	if a, b := seeded.Noise(3, 9).Uint64(), seeded.Noise(4, 9).Uint64(); a == b {
		t.Errorf("two replicates draw %d", a)
	}
	if a, b := os.Order(3, 9).Uint64(), seeded.Order(3, 9).Uint64(); a != b {
		t.Errorf("the order depends on the source of the noise: %d and %d", a, b)
	}
	if a, b := os.Noise(3, 9).Uint64(), os.Noise(3, 9).Uint64(); a == b {
		t.Errorf("the operating system repeats %d", a)
	}
	// Every bit is set in about half of the draws: five standard errors.
	const draws = 10000
	var counts [64]int
	rng := rand.New(osSource{})
	for range draws {
		for bit, x := 0, rng.Uint64(); bit < 64; bit, x = bit+1, x>>1 {
			counts[bit] += int(x & 1)
		}
	}
	for bit, count := range counts {
		if math.Abs(float64(count)-draws/2) > 5*math.Sqrt(draws)/2 {
			t.Errorf("bit %d is set in %d of %d draws", bit, count, draws)
		}
	}
}

func TestMeasureTo(t *testing.T) {
	test, validation := dataset.Generated(100, 1), dataset.Generated(50, 2)
	e, err := NewEvaluator(linear.Huber{Width: 0.5}, test, validation, AdultNorm, test.Dim)
	if err != nil {
		t.Fatal(err)
	}
	// The zero model takes everything for negative, at the loss 1 of the margin 0.
	metrics := e.Metrics(2)
	theta := make([]float64, test.Dim)
	if err := e.MeasureTo(metrics, 1, theta); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{
		MetricError:           float64(test.Positives()) / 100,
		MetricLoss:            1,
		MetricValidationError: float64(validation.Positives()) / 50,
		MetricValidationLoss:  1,
	} {
		if got := metrics[name]; len(got) != 2 || got[0] != 0 || got[1] != want {
			t.Errorf("%s is %v, want 0 and %v", name, got, want)
		}
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		theta[7] = bad
		if err := e.MeasureTo(metrics, 0, theta); !errors.Is(err, ErrNotFinite) {
			t.Errorf("a weight of %v: error %v", bad, err)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("another dimension does not panic")
		}
	}()
	_, _ = NewEvaluator(linear.Logistic{}, test, nil, 1, 5)
}
