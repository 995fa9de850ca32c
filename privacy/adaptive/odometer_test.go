package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestOdometerSolvesMixture: ε satisfies the equation of its definition, is at
// most the union bound over the orders, and grows with every access.
func TestOdometerSolvesMixture(t *testing.T) {
	const delta = 1e-5
	orders := []float64{2, 5, 17, 65}
	o, err := NewOdometer(delta, privacy.ReplaceOne, orders...)
	require.NoError(t, err)
	if g := o.Guarantee(); g.Epsilon != 0 {
		t.Errorf("nothing was recorded: epsilon %g", g.Epsilon)
	}
	rng := rand.New(rand.NewPCG(41, 42))
	spent := make([]float64, len(orders))
	previous := 0.0
	for range 50 {
		var m privacy.RenyiMechanism = privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 10, NoiseMultiplier: 1 + rng.Float64()}
		if rng.IntN(2) == 0 {
			m = privacy.Laplace{Sensitivity: 1, Scale: 5 + 20*rng.Float64(), Neighbours: privacy.ReplaceOne}
		}
		steps := 1 + rng.Int64N(5)
		g, err := o.Spend(m, steps)
		require.NoError(t, err)
		var sum float64
		union := math.Inf(1)
		for j, order := range orders {
			spent[j] += float64(steps) * m.RenyiCurve().RDP(order)
			sum += 0.25 * math.Exp((order-1)*(g.Epsilon-spent[j]))
			union = math.Min(union, spent[j]+math.Log(4/delta)/(order-1))
		}
		if privacytest.RelErr(sum, 1/delta) > 1e-9 {
			t.Errorf("the mixture is %g at epsilon %g", sum, g.Epsilon)
		}
		if g.Epsilon > union || g.Epsilon <= previous {
			t.Errorf("epsilon %g, union bound %g, before %g", g.Epsilon, union, previous)
		}
		previous = g.Epsilon
	}
}

// TestOdometerLeavesOutOrders: where little noise makes high orders useless, ε is as with all
// orders, also when many runs with much noise follow.
func TestOdometerLeavesOutOrders(t *testing.T) {
	const delta = 1e-5
	var orders []float64
	for k := -14; k <= 20; k++ {
		orders = append(orders, 1+math.Pow(2, float64(k)/2))
	}
	rng := rand.New(rand.NewPCG(45, 46))
	for range 3 {
		o, err := NewOdometer(delta, privacy.AddRemove)
		require.NoError(t, err)
		spent := make([]float64, len(orders))
		for range 12 {
			m := privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 0.05 * math.Pow(600, rng.Float64()), Neighbours: privacy.AddRemove}
			steps := 1 + rng.Int64N(1000)
			g, err := o.Spend(m, steps)
			require.NoError(t, err)
			var sum float64
			for j, order := range orders {
				spent[j] += float64(steps) * m.RenyiCurve().RDP(order)
				sum += math.Exp((order-1)*(g.Epsilon-spent[j])) / float64(len(orders))
			}
			if sum*delta < 1-1e-9 || sum*delta > 1+1e-9 {
				t.Fatalf("the mixture of all orders is %g at epsilon %g", sum, g.Epsilon)
			}
		}
	}
}

// TestOdometerPrice: ε is at least the ε of the same runs fixed in advance, and not much larger. A search
// often tries a run with little noise.
func TestOdometerPrice(t *testing.T) {
	const delta, steps = 1e-6, 200
	var all []privacy.Mechanism
	for _, noise := range []float64{0.05, 0.1, 0.2, 0.5, 2, 10} {
		all = append(all,
			privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10 * noise, Neighbours: privacy.AddRemove},
			privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: noise, Neighbours: privacy.AddRemove})
	}
	for _, m := range all {
		o, err := NewOdometer(delta, privacy.AddRemove)
		require.NoError(t, err)
		g, err := o.Spend(m, steps)
		require.NoError(t, err)
		fixed := epsilonOf(t, privacy.RDP{Conversion: privacy.Classic}, m, steps, delta).Epsilon
		if g.Epsilon < fixed || g.Epsilon > 1.3*fixed {
			t.Errorf("%+v: odometer %g, fixed in advance %g", m, g.Epsilon, fixed)
		}
	}
}

// TestOdometerCovers simulates the loss of Gaussian releases whose noise is chosen
// from the outputs so far: it may exceed the running bound in a share δ of the
// runs at most. The bound is at least half as large as it has to be.
func TestOdometerCovers(t *testing.T) {
	const delta, runs = 0.05, 2000
	rng := rand.New(rand.NewPCG(43, 44))
	var exceeded, halfExceeded int
	for range runs {
		o, err := NewOdometer(delta, privacy.AddRemove)
		require.NoError(t, err)
		var loss float64
		var over, overHalf bool
		for range 15 {
			sigma := 4.0
			if loss > 0.3 { // an analyst who bets on a run that went badly
				sigma = 1.5
			}
			g, err := o.Spend(privacy.Gaussian{Sensitivity: 1, StandardDeviation: sigma, Neighbours: privacy.AddRemove}, 1)
			require.NoError(t, err)
			mu := 1 / sigma
			loss += 0.5*mu*mu + mu*rng.NormFloat64()
			over = over || loss > g.Epsilon
			overHalf = overHalf || loss > 0.5*g.Epsilon
		}
		if over {
			exceeded++
		}
		if overHalf {
			halfExceeded++
		}
	}
	if exceeded > runs*delta {
		t.Errorf("the loss exceeded the bound in %d of %d runs", exceeded, runs)
	}
	if halfExceeded < runs*delta {
		t.Errorf("the loss exceeded half of the bound in %d of %d runs only", halfExceeded, runs)
	}
}

func TestOdometerRefusals(t *testing.T) {
	for _, tc := range []struct {
		delta     float64
		adjacency privacy.Adjacency
		orders    []float64
	}{
		{0, privacy.AddRemove, nil}, {1e-5, 0, nil}, {1e-5, privacy.AddRemove, []float64{1}}, {1e-5, privacy.AddRemove, []float64{2, math.NaN()}},
	} {
		if _, err := NewOdometer(tc.delta, tc.adjacency, tc.orders...); len(privacy.FieldErrors(err)) != 1 {
			t.Errorf("%+v: %v", tc, err)
		}
	}
	o, err := NewOdometer(1e-5, privacy.AddRemove)
	require.NoError(t, err)
	for _, m := range []privacy.Mechanism{nil, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 0, Neighbours: privacy.AddRemove}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}} {
		if _, err := o.Spend(m, 1); len(privacy.FieldErrors(err)) != 1 {
			t.Errorf("%+v: %v", m, err)
		}
	}
	if g := o.Guarantee(); g.Epsilon != 0 || g.Steps != 0 {
		t.Errorf("refused requests were recorded: %+v", g)
	}
	g, err := o.Spend(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1e-160, Neighbours: privacy.AddRemove}, 1e9)
	if err != nil || !math.IsInf(g.Epsilon, 1) || len(g.Warnings) != 1 {
		t.Errorf("nearly no noise: %+v, %v", g, err)
	}
}

func TestApproximateFilter(t *testing.T) {
	// A total of 8.41024 for 199 releases of 0.1 and of 33.4970 for 1999, δ' = 1e-6,
	// and the largest numbers for a total of 0.5, by independent computations.
	for _, tc := range []struct {
		each, total, slack float64
		want               int
	}{
		{0.1, 8.41025, 1e-6, 199}, {0.1, 33.49705, 1e-6, 1999}, {0.01, 0.5, 1e-6, 88}, {0.05, 1, 1e-6, 20}, {0.25, 1, 0, 4},
	} {
		f, err := NewApproximateFilter(tc.total, tc.slack, tc.slack, privacy.ReplaceOne)
		require.NoError(t, err)
		var got int
		for {
			ok, err := f.Spend(privacy.Guarantee{Epsilon: tc.each, Adjacency: privacy.ReplaceOne}, 1)
			require.NoError(t, err)
			if !ok {
				break
			}
			got++
		}
		if got != tc.want && got != tc.want-1 { // sums of ε are rounded
			t.Errorf("%+v: %d releases", tc, got)
		}
		if g := f.Guarantee(); g.Epsilon != tc.total || g.Steps != int64(got) {
			t.Errorf("%+v: guarantee %+v", tc, g)
		}
	}
	f, err := NewApproximateFilter(1, 3e-6, 1e-6, privacy.AddRemove)
	require.NoError(t, err)
	small := privacy.Guarantee{Epsilon: 1e-3, Delta: 0.9e-6, Adjacency: privacy.AddRemove}
	for i, want := range []bool{true, true, false} {
		if ok, err := f.Spend(small, 1); ok != want || err != nil {
			t.Errorf("release %d: %v, %v", i, ok, err)
		}
	}
	if _, err := f.Spend(privacy.Guarantee{Epsilon: math.NaN(), Delta: 1}, 0); len(privacy.FieldErrors(err)) != 4 {
		t.Errorf("errors %v", err)
	}
	if _, err := NewApproximateFilter(0, 1, 2, 0); len(privacy.FieldErrors(err)) != 4 {
		t.Errorf("errors %v", err)
	}
}
