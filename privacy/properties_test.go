package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// randomSampled draws a configuration that inversion accounts quickly.
func randomSampled(rng *rand.Rand) (m FixedSizeGaussian, steps int64, delta float64) {
	n := int64(1000 * math.Exp(rng.Float64()*5))
	m = FixedSizeGaussian{n, 1 + int64(0.1*float64(n)*math.Exp(-rng.Float64()*3)), math.Exp(rng.Float64()*3 - 0.2)}
	return m, 200 + int64(math.Exp(rng.Float64()*9)), math.Exp(-5 - rng.Float64()*15)
}

// TestExactFixedSizeProperties: ε of the tight accountant is monotone in every parameter,
// never above the others, and the same alone, on a trajectory and in any order of composition.
func TestExactFixedSizeProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(19, 20))
	const slack = 1 + 1e-8 // twice the margin of inversion, and more
	for range 40 {
		m, steps, delta := randomSampled(rng)
		base := epsilonOf(t, Exact{}, m, steps, delta)
		noisier, bigger := m, m
		noisier.NoiseMultiplier *= 1 + rng.Float64()
		bigger.BatchSize += 1 + rng.Int64N(m.BatchSize)
		for _, pair := range []struct {
			what          string
			small, larger Guarantee
		}{
			{"more noise", epsilonOf(t, Exact{}, noisier, steps, delta), base},
			{"a larger batch", base, epsilonOf(t, Exact{}, bigger, steps, delta)},
			{"more steps", base, epsilonOf(t, Exact{}, m, steps+1+rng.Int64N(steps), delta)},
			{"a smaller delta", base, epsilonOf(t, Exact{}, m, steps, delta*rng.Float64())},
			{"the Rényi accountant", base, epsilonOf(t, RDP{}, m, steps, delta)},
			{"the classic conversion", epsilonOf(t, RDP{}, m, steps, delta), epsilonOf(t, RDP{Classic}, m, steps, delta)},
		} {
			if pair.small.Epsilon > pair.larger.Epsilon*slack || pair.small.EpsilonLower > pair.larger.Epsilon {
				t.Errorf("%+v, %d steps, delta %g: with %s, %v against %v", m, steps, delta, pair.what, pair.small, pair.larger)
			}
		}

		trajectory, err := Trajectory(Exact{}, m, []int64{0, steps / 3, steps}, delta)
		if err != nil || trajectory[0].Epsilon != 0 || privacytest.RelErr(trajectory[2].Epsilon, base.Epsilon) > 1e-10 {
			t.Errorf("%+v, %d steps, delta %g: trajectory %v, alone %v, %v", m, steps, delta, trajectory, base, err)
		}

		noise := Gaussian{1, 5 + 20*rng.Float64(), ReplaceOne}
		parts := Composition{{m, steps}, {noisier, 50}, {noise, 2}}
		mixed := Composition{parts[2], {Composition{parts[1]}, 1}, parts[0]}
		for _, a := range []Accountant{Exact{}, RDP{}} {
			one, other := epsilonOf(t, a, parts, 1, delta).Epsilon, epsilonOf(t, a, mixed, 1, delta).Epsilon
			if privacytest.RelErr(one, other) > 1e-9 || one < base.Epsilon/slack {
				t.Errorf("%s, %+v, delta %g: epsilon %.15g, in another order %.15g", a.Name(), parts, delta, one, other)
			}
		}
	}
}

// TestCalibrationInvertsRandomly: calibrate(ε(σ)) = σ for both samplers.
func TestCalibrationInvertsRandomly(t *testing.T) {
	rng := rand.New(rand.NewPCG(21, 22))
	for range 4 {
		m, steps, delta := randomSampled(rng)
		for _, family := range []func(noise float64) Mechanism{
			func(noise float64) Mechanism { return FixedSizeGaussian{m.DatasetSize, m.BatchSize, noise} },
			func(noise float64) Mechanism { return PoissonGaussian{m.Rate(), noise, AddRemove, false} },
		} {
			target := epsilonOf(t, Exact{}, family(m.NoiseMultiplier), steps, delta).Epsilon
			noise, g, err := CalibrateNoise(Exact{}, family, steps, target, delta)
			if err != nil || privacytest.RelErr(noise, m.NoiseMultiplier) > 1e-7 || g.Epsilon > target {
				t.Errorf("%+v, %d steps, delta %g: back %.12g, %v", family(m.NoiseMultiplier), steps, delta, noise, err)
			}
		}
	}
}

func TestSharedConversion(t *testing.T) {
	tb := privacytest.SharedVectors(t, "conversion_public.csv")
	for _, row := range tb.Rows {
		order, rho, delta := tb.Float(row, "order"), tb.Float(row, "rdp"), tb.Float(row, "delta")
		if got, want := Classic.Epsilon(order, rho, delta), tb.Float(row, "eps_classic_mironov"); privacytest.RelErr(got, want) > 1e-13 {
			t.Errorf("%v: classic %.17g, want %.17g", row, got, want)
		}
		got, want := Improved.Epsilon(order, rho, delta), tb.Float(row, "eps_improved_clamped")
		tb.Compare("eps_improved_clamped", got, want)
		if math.Abs(got-want) > 1e-13*math.Max(1, want) {
			t.Errorf("%v: improved %.17g, want %.17g", row, got, want)
		}
		if best := tb.Float(row, "eps_optimal_single_order"); Improved.Epsilon(order, rho, delta) < best*(1-1e-9) {
			t.Errorf("%v: improved below the optimum %g", row, best)
		}
	}
}
