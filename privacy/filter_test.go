package privacy

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
)

func TestFilterConcurrently(t *testing.T) {
	const order, eps, delta = 20, 2, 1e-6
	f, err := NewFilter(order, eps, delta, ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	m := Gaussian{1, 20, ReplaceOne}
	rho := m.RenyiCurve().RDP(order)
	// The largest number of runs that the same order allows.
	budget := eps - Improved.Epsilon(order, 0, delta)
	want := int64(budget / rho)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				ok, err := f.Spend(m, 1)
				if err != nil {
					t.Error(err)
				}
				if !ok {
					return
				}
				admitted.Add(1)
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != want {
		t.Errorf("%d runs were admitted, want %d", got, want)
	}
	if total := Improved.Epsilon(order, float64(want)*rho, delta); total > eps*(1+1e-12) {
		t.Errorf("total %g", total)
	}
	if g := f.Guarantee(); g.Epsilon != eps || g.Delta != delta || g.Steps != want || g.Adjacency != ReplaceOne {
		t.Errorf("guarantee %+v", g)
	}
	if left := f.Left(); left < 0 || left*budget >= rho {
		t.Errorf("%g of the budget left", left)
	}
	if ok, err := f.Spend(Gaussian{1, 1000, ReplaceOne}, 1); !ok || err != nil {
		t.Errorf("a small request: %v, %v", ok, err)
	}
}

func TestFilterRefusals(t *testing.T) {
	for _, tc := range []struct {
		order, eps, delta float64
		adjacency         Adjacency
	}{
		{1, 1, 1e-6, ReplaceOne}, {math.NaN(), 1, 1e-6, ReplaceOne}, {2, 1, 1e-6, ReplaceOne},
		{20, -1, 1e-6, ReplaceOne}, {20, 1, 0, ReplaceOne}, {20, 1, 1e-6, 0},
	} {
		if _, err := NewFilter(tc.order, tc.eps, tc.delta, tc.adjacency); len(FieldErrors(err)) != 1 {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	f, err := NewFilter(20, 2, 1e-6, ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Spend(Gaussian{1, 20, AddRemove}, 1); len(FieldErrors(err)) != 1 {
		t.Errorf("another adjacency: %v", err)
	}
	if _, err := f.Spend(Gaussian{1, 20, ReplaceOne}, 0); len(FieldErrors(err)) != 1 {
		t.Errorf("no steps: %v", err)
	}
	if f.Left() != 1 {
		t.Errorf("refused requests were spent: %g left", f.Left())
	}
}

// BenchmarkFilterSpend asks for runs of a configuration that the filter has seen.
func BenchmarkFilterSpend(b *testing.B) {
	f, err := NewGaussianFilter(4, 1e-6, 1000, ReplaceOne)
	if err != nil {
		b.Fatal(err)
	}
	m := FixedSizeGaussian{32561, 256, 4}
	if _, err := f.Spend(m, 1270); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := f.Spend(m, 1270); err != nil {
			b.Fatal(err)
		}
	}
}

// A configuration costs the same when it comes again, however it is told.
func TestFilterRemembersCosts(t *testing.T) {
	f, err := NewGaussianFilter(4, 1e-6, 1000, ReplaceOne)
	if err != nil {
		t.Fatal(err)
	}
	calls := 0
	cost := f.cost
	f.cost = func(m Mechanism, steps int64) (float64, error) {
		calls++
		return cost(m, steps)
	}
	var left []float64
	for _, steps := range []int64{1000, 1000, 2000, 1000} {
		before := f.Left()
		if ok, err := f.Spend(FixedSizeGaussian{32561, 256, 4}, steps); err != nil || !ok {
			t.Fatal(ok, err)
		}
		left = append(left, before-f.Left())
	}
	if calls != 2 {
		t.Errorf("%d costs were computed, want 2", calls)
	}
	if math.Abs(left[1]-left[0]) > 1e-12 || math.Abs(left[3]-left[0]) > 1e-12 || !(left[2] > 1.9*left[0]) {
		t.Errorf("spent %v", left)
	}
}
