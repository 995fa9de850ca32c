package transcript

import (
	"errors"
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
	"github.com/dpareto/dpareto/privacy/tuning"
)

// roundsTo reports whether got has the digits of want: |got − want| is at most half a unit of
// its last digit.
func roundsTo(got, want, unit float64) bool { return math.Abs(got-want) <= unit/2*(1+1e-9) }

// gaussianEpsilon is ε of μ-Gaussian DP at δ = 1e-5.
func gaussianEpsilon(t *testing.T, mu float64) float64 {
	t.Helper()
	g, err := privacy.Epsilon(privacy.GDP{}, privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}, 1, 1e-5)
	require.NoError(t, err)
	return g.Epsilon
}

// mustMu is privacy.GaussianMu without an error.
func mustMu(t *testing.T, epsilon, delta float64) float64 {
	t.Helper()
	mu, err := privacy.GaussianMu(epsilon, delta)
	require.NoError(t, err)
	return mu
}

// The noise of 272 values at δ = 1e-6: independent computation.
func TestNoise(t *testing.T) {
	for _, tt := range []struct {
		records            int64
		epsilon, mu, sigma float64
	}{
		{1605, 1, 0.236704, 0.043411},
		{1605, 3, 0.647727, 0.015864},
		{10000, 1, 0.236704, 0.006968},
		{10000, 3, 0.647727, 0.002546},
		{10000, 10, 1.848132, 0.000892},
		{16281, 1, 0.236704, 0.004280},
		{16281, 3, 0.647727, 0.001564},
		{16281, 10, 1.848132, 0.000548},
		{60000, 1, 0.236704, 0.001161},
	} {
		if mu := mustMu(t, tt.epsilon, 1e-6); !roundsTo(mu, tt.mu, 1e-6) {
			t.Errorf("Mu(%g) = %.8g, want %g", tt.epsilon, mu, tt.mu)
		}
		sigma, err := Noise(tt.records, 272, tt.epsilon, 1e-6)
		if err != nil || !roundsTo(sigma, tt.sigma, 1e-6) {
			t.Errorf("Noise(%d, ε = %g) = %.8g, %v, want %g", tt.records, tt.epsilon, sigma, err, tt.sigma)
		}
		released, err := ReleaseNoise(tt.records, 272, tt.epsilon, 1e-6)
		if err != nil || !(released >= sigma && released < sigma*(1+1e-7)) {
			t.Errorf("ReleaseNoise(%d, ε = %g) = %.12g, %v; the ideal is %.12g", tt.records, tt.epsilon, released, err, sigma)
		}
		epsilon, err := TestEpsilon(tt.records, 272, released, 1e-6)
		if err != nil || !(epsilon <= tt.epsilon && epsilon > tt.epsilon*(1-1e-6)) {
			t.Errorf("TestEpsilon of the noise for %g: %.12g, %v", tt.epsilon, epsilon, err)
		}
	}
}

// What the grid of the noise takes cannot exceed the budget.
func TestReleaseNoiseErrors(t *testing.T) {
	for _, tt := range []struct {
		field          string
		epsilon, delta float64
	}{
		{"epsilon", 0, 1e-6}, {"epsilon", 1e300, 1e-9}, {"epsilon", math.MaxFloat64, 0.5}, {"delta", 1, 1e-30},
	} {
		_, err := ReleaseNoise(1000, 272, tt.epsilon, tt.delta)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != tt.field {
			t.Errorf("ε = %g, δ = %g: %v, want an error for %s", tt.epsilon, tt.delta, err, tt.field)
		}
	}
}

// ε of 272 values at δ = 1e-6 from their noise: independent computation.
func TestTestEpsilon(t *testing.T) {
	for _, tt := range []struct {
		records        int64
		sigma, epsilon float64
	}{
		{10000, 0.001, 8.7310}, {10000, 0.005, 1.4316}, {10000, 0.01, 0.6781}, {16281, 0.005, 0.8458}, {1605, 0.01, 5.0403},
	} {
		epsilon, err := TestEpsilon(tt.records, 272, tt.sigma, 1e-6)
		if err != nil || !roundsTo(epsilon, tt.epsilon, 1e-4) {
			t.Errorf("TestEpsilon(%d, σ = %g) = %.6g, %v, want %g", tt.records, tt.sigma, epsilon, err, tt.epsilon)
		}
	}
	if epsilon, err := TestEpsilon(100, 0, 0.1, 1e-6); epsilon != 0 || err != nil {
		t.Errorf("no values: %g, %v", epsilon, err)
	}
}

// ε of n trials with ε_t log-uniform in a range, each replaced by the Gaussian mechanism
// with the same (ε_t, 1e-5): independent computation, at the quantiles (i + ½)/n.
func trialsTotal(t *testing.T, n int, lo, hi, weight float64) float64 {
	t.Helper()
	squares := 0.0
	for i := range n {
		mu := mustMu(t, lo*math.Pow(hi/lo, (float64(i)+0.5)/float64(n)), 1e-5)
		squares += mu * mu
	}
	return gaussianEpsilon(t, math.Sqrt(weight*squares))
}

func TestTrainingTotals(t *testing.T) {
	for _, tt := range []struct{ lo, hi, one, oneUnit, ten, tenUnit, basic float64 }{
		{0.05, 10, 106.9, 0.1, 755.0, 0.1, 510.8},
		{0.05, 3, 27.5, 0.1, 153.9, 0.1, 196.0},
		{0.05, 1, 9.29, 0.01, 42.4, 0.1, 86.3},
		{0.01, 0.1, 0.968, 0.001, 3.50, 0.01, 10.6},
	} {
		if got := trialsTotal(t, 272, tt.lo, tt.hi, 1); !roundsTo(got, tt.one, tt.oneUnit) {
			t.Errorf("%g..%g: ε = %.5g of one run each, want %g", tt.lo, tt.hi, got, tt.one)
		}
		if got := trialsTotal(t, 272, tt.lo, tt.hi, 10); !roundsTo(got, tt.ten, tt.tenUnit) {
			t.Errorf("%g..%g: ε = %.5g of ten runs each, want %g", tt.lo, tt.hi, got, tt.ten)
		}
		// The mean of the log-uniform distribution.
		if got := 272 * (tt.hi - tt.lo) / math.Log(tt.hi/tt.lo); !roundsTo(got, tt.basic, 0.1) {
			t.Errorf("%g..%g: sum %.5g, want %g", tt.lo, tt.hi, got, tt.basic)
		}
	}
	for _, tt := range []struct{ total, one, oneUnit, ten, tenUnit float64 }{
		{1, 0.0466, 1e-4, 0.0129, 1e-4}, {3, 0.138, 1e-3, 0.0389, 1e-4}, {10, 0.420, 1e-3, 0.120, 1e-3},
	} {
		mu := mustMu(t, tt.total, 1e-5)
		if got := gaussianEpsilon(t, mu/math.Sqrt(272)); !roundsTo(got, tt.one, tt.oneUnit) {
			t.Errorf("total %g: ε = %.5g per trial, want %g", tt.total, got, tt.one)
		}
		if got := gaussianEpsilon(t, mu/math.Sqrt(2720)); !roundsTo(got, tt.ten, tt.tenUnit) {
			t.Errorf("total %g: ε = %.5g per run of ten, want %g", tt.total, got, tt.ten)
		}
	}
}

// Of J shards each has 1/J of the trials: independent computation.
func TestShardTotals(t *testing.T) {
	for _, tt := range []struct {
		hi, unit float64
		want     map[int]float64
	}{
		{10, 0.1, map[int]float64{1: 106.9, 4: 37.9, 16: 14.9, 68: 6.1}},
		{1, 0.01, map[int]float64{1: 9.29, 4: 4.09, 16: 1.87, 68: 0.84}},
	} {
		for shards, want := range tt.want {
			if got := trialsTotal(t, 272, 0.05, tt.hi, 1/float64(shards)); !roundsTo(got, want, tt.unit) {
				t.Errorf("up to %g on %d shards: ε = %.5g, want %g", tt.hi, shards, got, want)
			}
		}
	}
}

// levels returns 8 levels of ε, 0.1, 0.2, ..., 6.4, 10, or the first of them.
func levels(n int) []float64 { return []float64{0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 10}[:n] }

// Of every level of ε one trial is published: the only one, or the best of a random search
// with 34 trials on average, or all of 34. Trials are Gaussian mechanisms with (ε, 1e-5);
// totals are at δ = 1e-5, by an independent computation in Python of the exact profile and
// of the closed form of totalOfSearches.
func TestLevels(t *testing.T) {
	for _, tt := range []struct {
		n                        int
		single, naive            float64
		singleUnit, naiveUnit    float64
		logarithmic, geometric   float64 // random searches, η = 0 and 1
		logarithmicU, geometricU float64
	}{
		{8, 13.8, 178, 0.1, 1, 38.460, 45.531, 1e-3, 1e-3},
		{4, 0.955, 7.04, 0.001, 0.01, 3.0582, 3.9222, 1e-4, 1e-4},
	} {
		var mus []float64
		squares := 0.0
		for _, e := range levels(tt.n) {
			mu := mustMu(t, e, 1e-5)
			mus = append(mus, mu)
			squares += mu * mu
		}
		if got := gaussianEpsilon(t, math.Sqrt(34*squares)); !roundsTo(got, tt.naive, tt.naiveUnit) {
			t.Errorf("%d levels, 34 trials each: ε = %.5g, want %g", tt.n, got, tt.naive)
		}
		if got := gaussianEpsilon(t, math.Sqrt(squares)); !roundsTo(got, tt.single, tt.singleUnit) {
			t.Errorf("%d levels, one trial each: ε = %.5g, want %g", tt.n, got, tt.single)
		}
		for eta, want := range map[float64][2]float64{0: {tt.logarithmic, tt.logarithmicU}, 1: {tt.geometric, tt.geometricU}} {
			total, closed := totalOfSearches(t, mus, eta, 34, 1e-5)
			// The orders of RDP are a grid.
			if !roundsTo(closed, want[0], want[1]) || !(total >= closed*(1-1e-6) && total <= closed*1.001) {
				t.Errorf("%d levels, searches with η = %g: ε = %.6g, closed form %.6g, want %g", tt.n, eta, total, closed, want[0])
			}
		}
	}
	// Test records, 10⁴ of them, by noise of 0.005: eight searches that each publish one noisy
	// value cost less than all 272 values do. At δ = 1e-6.
	mus := make([]float64, 8)
	for i := range mus {
		mus[i] = 1 / (1e4 * 0.005)
	}
	total, closed := totalOfSearches(t, mus, 0, 34, 1e-6)
	all, err := TestEpsilon(10_000, 272, 0.005, 1e-6)
	if err != nil || !roundsTo(closed, 0.995, 1e-3) || !(total >= closed*(1-1e-6) && total <= closed*1.001) || !roundsTo(all, 1.43, 0.01) {
		t.Errorf("test records: ε = %.5g, closed form %.5g, want 0.995; of all values %.5g, want 1.43, %v", total, closed, all, err)
	}
}

func TestCharge(t *testing.T) {
	// Feldman and Zrnic (2021): R runs cost Rρ; n values in [0, 1] with noise nα/(2σ²).
	if got := Charge(8, 0.25, 3, 1, 0.01); got != 0.75 {
		t.Errorf("three runs cost %g, want 0.75", got)
	}
	if got, want := Charge(8, math.Inf(1), 3, 2, 4), 2*8/(2*16.0); !(got >= want && got < want*(1+1e-11)) {
		t.Errorf("two noisy values cost %g, want %g", got, want)
	}
	// The grid of large noise is coarse: 0 and 1 may come to lie 1 + Grid apart.
	apart := 1 + noise.Grid(1e6)
	if got, want := Charge(8, math.Inf(1), 3, 2, 1e6), 2*8*apart*apart/(2*1e12); got < want {
		t.Errorf("two values with noise on a coarse grid cost %g, less than %g", got, want)
	}
}

// The order admits as many typical trials as the best of a fine grid of orders does, but
// for a per cent; for ρα that is by hand α = 1 + about √(log(1/δ)/(Nρ)).
func TestOrder(t *testing.T) {
	for _, epsilon := range []float64{0.01, 0.1, 1, 10, 100} {
		for _, delta := range []float64{1e-9, 1e-5, 0.01} {
			const rho = 1e-3
			order, budget, err := Order(epsilon, delta, func(order float64) (float64, error) { return rho * order, nil })
			require.NoError(t, err)
			best := 0.0
			for alpha := 1.001; alpha < 1e6; alpha *= 1.001 {
				best = math.Max(best, privacy.Improved.Budget(alpha, epsilon, delta)/(rho*alpha))
			}
			if got := budget / (rho * order); !(got > 0.98*best) {
				t.Errorf("(%g, %g): %g trials at order %g, the best is %g", epsilon, delta, got, order, best)
			}
			if got := TrainEpsilon(order, budget, delta); math.Abs(got-epsilon) > 1e-12*epsilon+1e-15 {
				t.Errorf("(%g, %g): the budget is worth %g", epsilon, delta, got)
			}
		}
	}
	wrong := errors.New("no bound")
	if _, _, err := Order(1, 1e-5, func(float64) (float64, error) { return 0, wrong }); !errors.Is(err, wrong) {
		t.Errorf("error %v", err)
	}
	if _, _, err := Order(1e-7, 1e-9, func(order float64) (float64, error) { return order, nil }); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("a tiny ε: error %v", err)
	}
	for _, bad := range [][2]float64{{0, 1e-5}, {math.NaN(), 1e-5}, {math.Inf(1), 1e-5}, {1, 0}, {1, 1}} {
		if _, _, err := Order(bad[0], bad[1], nil); len(privacy.FieldErrors(err)) != 1 {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}

// An attacker who knows all test records but one, and replaces it, sees N values that
// differ by 1/m each: the most powerful event, of their sum, shows no more than is claimed,
// unless there is too little noise.
func TestAudit(t *testing.T) {
	const records, values, delta, runs = 50, 3, 1e-3, 100_000
	for _, epsilon := range []float64{0.5, 2} {
		sigma, err := ReleaseNoise(records, values, epsilon, delta)
		require.NoError(t, err)
		event := func(source *noise.Source, factor float64) func(bool) bool {
			// In units of its noise the sum is 0 or μ on average; the event is x > c, with the
			// c that tells most.
			mu := math.Sqrt(values) / (records * sigma * factor)
			best, c := 0.0, 0.0
			for at := 0.0; distuv.UnitNormal.Survival(at) > 300.0/runs; at += 0.01 {
				if ratio := (distuv.UnitNormal.Survival(at-mu) - delta) / distuv.UnitNormal.Survival(at); ratio > best {
					best, c = ratio, at
				}
			}
			return func(isSecond bool) bool {
				sum := 0.0
				for range values {
					accuracy := 0.5
					if !isSecond {
						accuracy += 1.0 / records
					}
					sum += source.Gaussian(accuracy, factor*sigma) - 0.5
				}
				return sum/(factor*sigma*math.Sqrt(values)) > c
			}
		}
		privacytest.Audit{
			Epsilon: epsilon, Delta: delta, Runs: runs, Power: 0.3,
			Event: event(noise.Seeded(1), 1), Broken: event(noise.Seeded(2), 0.4),
		}.Check(t)
	}
}

// totalOfSearches returns ε at δ of one random search (Papernot and Steinke, "Hyperparameter
// tuning with Rényi differential privacy", 2022, Theorem 2) on each level, whose candidate is
// μ-Gaussian DP: the divergences of the searches at one order are added, and the order is
// the best for their sum. It also returns the same by the closed form for ρ(α) = αμ²/2,
//
//	Σ [αμ²/2 + (1+η)((λ̂−1)μ²/2 + log(1/γ)/λ̂) + log E[K]/(α−1)],  λ̂ = max(1, √(2·log(1/γ))/μ).
func totalOfSearches(t *testing.T, mus []float64, eta, mean, delta float64) (total, closed float64) {
	t.Helper()
	gamma, err := tuning.SelectionGamma(eta, mean)
	require.NoError(t, err)
	fixed, squares := 0.0, 0.0
	searches := make(privacy.Composition, len(mus))
	for i, mu := range mus {
		base := privacy.Gaussian{Sensitivity: mu, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}
		searches[i] = privacy.Part{Mechanism: tuning.RepeatedSelection{Base: base, Steps: 1, Eta: eta, Gamma: gamma}, Count: 1}
		second := math.Max(1, math.Sqrt(-2*math.Log(gamma))/mu)
		fixed += (1 + eta) * ((second-1)*mu*mu/2 - math.Log(gamma)/second)
		squares += mu * mu
	}
	g, err := privacy.Epsilon(privacy.RDP{}, searches, 1, delta)
	require.NoError(t, err)
	closed = math.Inf(1)
	for order := 1.01; order < 1e4; order = 1 + (order-1)*1.001 {
		rho := order*squares/2 + fixed + float64(len(mus))*math.Log(mean)/(order-1)
		closed = math.Min(closed, privacy.Improved.Epsilon(order, rho, delta))
	}
	return g.Epsilon, closed
}

// The δ that an error asks for is nearly the least that is accepted.
func TestReleaseNoiseNamesTheLeastDelta(t *testing.T) {
	refused, accepted := 1e-30, 1e-6
	asked := 0.0
	for accepted/refused > 1.001 {
		mid := math.Sqrt(refused * accepted)
		_, err := ReleaseNoise(1000, 272, 1, mid)
		if err == nil {
			accepted = mid
			continue
		}
		refused = mid
		fields := privacy.FieldErrors(err)
		if len(fields) != 1 {
			t.Fatal(err)
		}
		if _, err := fmt.Sscanf(fields[0].Message, "must exceed %g,", &asked); err != nil {
			t.Fatal(fields[0].Message)
		}
	}
	if !(asked <= accepted && asked > 0.99*refused) {
		t.Errorf("asks for %g; %g is refused, %g accepted", asked, refused, accepted)
	}
}
