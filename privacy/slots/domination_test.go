package slots

import (
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/internal/runs"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// digits is the precision, in bits, of the profiles below: more than 50 digits.
const digits = 320

func bigOf(x float64) *big.Float { return new(big.Float).SetPrec(digits).SetFloat64(x) }

// exponential returns e^x. The halvings of bigExpTo cost 40 of its bits.
func exponential(x *big.Float) *big.Float { return privacytest.BigExpTo(digits, 16, x) }

// bigPi returns π by Machin's formula.
func bigPi() *big.Float {
	arctan := func(inverse float64) *big.Float {
		power, sum := new(big.Float).Quo(bigOf(1), bigOf(inverse)), bigOf(0)
		for k := range 200 {
			term := new(big.Float).Quo(power, bigOf(float64(2*k+1)))
			if k%2 == 1 {
				term.Neg(term)
			}
			sum.Add(sum, term)
			power.Quo(power, bigOf(inverse*inverse))
		}
		return sum
	}
	first := new(big.Float).Mul(bigOf(16), arctan(5))
	return first.Sub(first, new(big.Float).Mul(bigOf(4), arctan(239)))
}

var bigRootTwoPi = func() *big.Float {
	twice := new(big.Float).Mul(bigOf(2), bigPi())
	return new(big.Float).SetPrec(digits).Sqrt(twice)
}()

// bigNormal returns Φ(x) = 1/2 + φ(x)·Σ x^(2k+1)/(1·3·…·(2k+1)).
func bigNormal(x *big.Float) *big.Float {
	square := new(big.Float).SetPrec(digits).Mul(x, x)
	term, sum := new(big.Float).SetPrec(digits).Set(x), bigOf(0)
	for k := range 2000 {
		sum.Add(sum, term)
		term.Mul(term, square)
		term.Quo(term, bigOf(float64(2*k+3)))
		if term.Sign() == 0 || sum.Sign() != 0 && term.MantExp(nil) < sum.MantExp(nil)-digits {
			break
		}
	}
	density := exponential(new(big.Float).Mul(square, bigOf(-0.5)))
	density.Quo(density, bigRootTwoPi)
	return sum.Add(bigOf(0.5), sum.Mul(sum, density))
}

// bigTail returns Φ(−(a − b)/z).
func bigTail(a, b, z float64) *big.Float {
	x := new(big.Float).Sub(bigOf(b), bigOf(a))
	return bigNormal(x.Quo(x, bigOf(z)))
}

// minus returns a − e^ε·b.
func minus(a *big.Float, epsilon float64, b *big.Float) *big.Float {
	scaled := new(big.Float).SetPrec(digits).Mul(exponential(bigOf(epsilon)), b)
	return scaled.Sub(a, scaled)
}

// mixed returns (1−q)·a + q·b.
func mixed(q float64, a, b *big.Float) *big.Float {
	rest := new(big.Float).Mul(new(big.Float).Sub(bigOf(1), bigOf(q)), a)
	return rest.Add(rest, new(big.Float).Mul(bigOf(q), b))
}

// bigGaussian returns δ(ε) of N(μ, 1) against N(0, 1): its maximum over all events that are a tail, so
// that an error of the end of the tail only matters squared.
func bigGaussian(mu, epsilon float64) *big.Float {
	end := epsilon/mu + 0.5*mu
	return minus(bigTail(end, mu, 1), epsilon, bigTail(end, 0, 1))
}

// bigProfiles returns δ(ε) of a step of a mechanism in both orders of the data sets, as the largest
// difference of the probabilities of a tail.
func bigProfiles(m privacy.Mechanism, epsilon float64) [2]*big.Float {
	switch m := m.(type) {
	case privacy.Gaussian:
		return [2]*big.Float{bigGaussian(m.GaussianMu(), epsilon), bigGaussian(m.GaussianMu(), epsilon)}
	case privacy.PoissonGaussian:
		q, z := m.SamplingProbability, m.NoiseMultiplier
		all := minus(bigOf(1), epsilon, bigOf(1)) // of the event that holds everything
		removed, added := all, bigOf(0)
		if ratio := 1 + math.Expm1(epsilon)/q; ratio > 0 {
			x := z*z*math.Log(ratio) + 0.5
			upper, rest := bigTail(x, 1, z), bigTail(x, 0, z)
			removed = minus(mixed(q, rest, upper), epsilon, rest)
		}
		if ratio := 1 + math.Expm1(-epsilon)/q; ratio > 0 {
			x := z*z*math.Log(ratio) + 0.5
			upper, rest := bigTail(-x, -1, z), bigTail(-x, 0, z)
			added = minus(rest, epsilon, mixed(q, rest, upper))
		}
		return [2]*big.Float{removed, added}
	case privacy.FixedSizeGaussian: // the theorem of Balle, Barthe and Gaboardi, and δ(ε) = 1 − e^ε + e^ε·δ(−ε)
		q := m.Rate()
		at := math.Log1p(math.Expm1(math.Abs(epsilon)) / q)
		delta := new(big.Float).Mul(bigOf(q), bigGaussian(1/m.NoiseMultiplier, at))
		if epsilon < 0 {
			rest := new(big.Float).Sub(bigOf(1), delta)
			delta = minus(bigOf(1), epsilon, rest)
		}
		return [2]*big.Float{delta, delta}
	default:
		panic(fmt.Sprintf("no profile of %T", m))
	}
}

func TestBigProfiles(t *testing.T) {
	if got, _ := bigNormal(bigOf(-6)).Float64(); math.Abs(got/9.865876450376981e-10-1) > 1e-14 { // SciPy
		t.Errorf("Φ(−6) = %g", got)
	}
	for _, m := range []privacy.Mechanism{privacy.Gaussian{Sensitivity: 1, StandardDeviation: 2, Neighbours: privacy.AddRemove}, privacy.PoissonGaussian{SamplingProbability: 0.1, NoiseMultiplier: 1, Neighbours: privacy.AddRemove, PublicSize: false}, privacy.FixedSizeGaussian{DatasetSize: 100, BatchSize: 10, NoiseMultiplier: 1}} {
		g := epsilonOf(t, privacy.Exact{}, m, 1, 1e-5)
		profiles := bigProfiles(m, g.Epsilon)
		first, _ := profiles[0].Float64()
		second, _ := profiles[1].Float64()
		if got := math.Max(first, second); math.Abs(got/1e-5-1) > 1e-6 {
			t.Errorf("%+v: δ(%g) = %g, want 1e-5", m, g.Epsilon, got)
		}
	}
}

// randomStep returns a step with a profile in closed form.
func randomStep(rng *rand.Rand) privacy.Mechanism {
	z := math.Exp(1.5 * rng.Float64())
	switch rng.IntN(3) {
	case 0:
		return privacy.Gaussian{Sensitivity: 1, StandardDeviation: z, Neighbours: privacy.AddRemove}
	case 1:
		return privacy.PoissonGaussian{SamplingProbability: math.Exp(-3 * rng.Float64()), NoiseMultiplier: z, Neighbours: privacy.AddRemove, PublicSize: false}
	default:
		return privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 1 + rng.Int64N(900), NoiseMultiplier: z}
	}
}

// most returns slack + (1 − slack)·δ.
func most(slack float64, delta *big.Float) *big.Float {
	return mixed(slack, delta, bigOf(1))
}

// TestApproximateMuDominatesInDigits compares the profiles of a step and of Gaussian DP with its μ,
// in 50 digits, at values of ε that ApproximateMu does not know.
func TestApproximateMuDominatesInDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 4))
	closest := 0.0
	for range 24 {
		m, slack := randomStep(rng), math.Pow(10, -3-8*rng.Float64())
		mu, err := adaptive.ApproximateMu(m, 1, slack)
		require.NoError(t, err)
		if math.IsInf(mu, 1) {
			continue
		}
		for range 24 {
			epsilon := 6 * mu * (2*rng.Float64() - 0.5)
			bound := most(slack, bigGaussian(mu, epsilon))
			for order, delta := range bigProfiles(m, epsilon) {
				if delta.Cmp(bound) > 0 {
					t.Errorf("%+v, slack %g, order %d: δ(%g) = %.20g, but %.20g with μ = %g", m, slack, order, epsilon, delta, bound, mu)
				}
				if ratio, _ := new(big.Float).Quo(delta, bound).Float64(); epsilon > 0 {
					closest = math.Max(closest, ratio)
				}
			}
		}
	}
	if closest < 0.99 {
		t.Errorf("the profiles come within %g of the bound only: the test finds nothing", closest)
	}
}

// TestDominatesInDigits does the same for two steps, which dominate each other or do not.
func TestDominatesInDigits(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 5))
	yes, no := 0, 0
	for range 40 {
		slot, m, slack := randomStep(rng), randomStep(rng), math.Pow(10, -6-6*rng.Float64())
		if slot.Adjacency() != m.Adjacency() {
			continue
		}
		d, err := newDominator(privacy.Part{Mechanism: slot, Count: 1}, slack)
		require.NoError(t, err)
		dominates, err := isDominated(d, privacy.Part{Mechanism: m, Count: 1})
		require.NoError(t, err)
		largest := 0.0 // δ over its bound
		g := epsilonOf(t, privacy.Exact{}, slot, 1, slack)
		for range 24 {
			epsilon := g.Epsilon * (1.6*rng.Float64() - 0.5)
			slots := bigProfiles(slot, epsilon)
			for order, delta := range bigProfiles(m, epsilon) {
				bound := most(slack, slots[order])
				ratio, _ := new(big.Float).Quo(delta, bound).Float64()
				largest = math.Max(largest, ratio)
				if dominates && delta.Cmp(bound) > 0 {
					t.Errorf("%+v is said to dominate %+v, slack %g, order %d: δ(%g) = %.20g, bound %.20g", slot, m, slack, order, epsilon, delta, bound)
				}
			}
		}
		if dominates {
			yes++
		} else if no++; largest < 0.98 {
			t.Errorf("%+v does not dominate %+v, but δ is at most %g of its bound", slot, m, largest)
		}
	}
	if yes < 5 || no < 5 {
		t.Errorf("%d dominate, %d do not", yes, no)
	}
}

// isDominated asks a dominator about a part, without a limit for either.
func isDominated(d *dominator, part privacy.Part) (bool, error) {
	a, err := newAccess(part)
	if err != nil {
		return false, err
	}
	d.limit, a.work.Limit = 0, 0
	return d.dominates(a)
}

// TestDominatesWithinWork: what takes too much work is not dominated, be it the profile of the slot or
// of the access, but for what the parameters show.
func TestDominatesWithinWork(t *testing.T) {
	costly := privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 1595, NoiseMultiplier: 2.46}, Count: 4}
	for _, tt := range []struct {
		slot, access privacy.Part
		want         bool
	}{
		{costly, privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 1500, NoiseMultiplier: 2.5}, Count: 4}, true},
		{costly, privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 30, NoiseMultiplier: 1.036}, Count: 25}, false}, // dominated, after 20 s
		{costly, privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 256, NoiseMultiplier: 8}, Count: 100}, false},
		{privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 256, NoiseMultiplier: 1.1}, Count: 1000}, privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 30, NoiseMultiplier: 1.036}, Count: 25}, false},
		{privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 256, NoiseMultiplier: 1.1}, Count: 1000}, privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10_000, BatchSize: 257, NoiseMultiplier: 4}, Count: 100}, true},
	} {
		d, err := newDominator(tt.slot, 1e-9)
		require.NoError(t, err)
		a, err := newAccess(tt.access)
		require.NoError(t, err)
		for range 2 {
			if got, err := d.dominates(a); err != nil || got != tt.want {
				t.Errorf("%+v dominates %+v: %t, %v, want %t", tt.slot, tt.access, got, err, tt.want)
			}
		}
		if done := a.work.Done(); done > 2*dominatorWork {
			t.Errorf("%+v takes %d operations", tt.access, done)
		}
	}
}

// TestSlotsKnow: Fit answers at once the second time.
func TestSlotsKnow(t *testing.T) {
	s, err := NewSlots([]Slot{{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 1}}, 1e-6)
	require.NoError(t, err)
	m := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 300, NoiseMultiplier: 6}
	if s.Knows(m, 1000) {
		t.Error("knows what was never asked")
	}
	require.NoError(t, require.ErrOf(s.Fit(m, 1000, nil)))
	if !s.Knows(m, 1000) || s.Knows(m, 1001) {
		t.Error("does not know exactly what was asked")
	}
}

// TestDominatesNearly checks how little is enough, also for runs that their parameters do not compare.
func TestDominatesNearly(t *testing.T) {
	for _, slot := range []privacy.Part{{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, Count: 1270}, {Mechanism: privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 64, NoiseMultiplier: 1}, Count: 2540}, {Mechanism: privacy.PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 2, Neighbours: privacy.AddRemove, PublicSize: false}, Count: 100}} {
		d, err := newDominator(slot, 1e-11)
		require.NoError(t, err)
		for scale, want := range map[float64]bool{1: true, 1.01: true, 0.99: false} {
			var m privacy.Mechanism
			switch base := slot.Mechanism.(type) {
			case privacy.FixedSizeGaussian:
				base.NoiseMultiplier *= scale
				m = base
			case privacy.PoissonGaussian:
				base.NoiseMultiplier *= scale
				m = base
			}
			for _, part := range []privacy.Part{{Mechanism: m, Count: slot.Count}, {Mechanism: privacy.Composition{{Mechanism: m, Count: slot.Count}}, Count: 1}} {
				if _, isEqual := part.Mechanism.(privacy.Composition); isEqual && scale == 1 {
					continue // the same in another form, without anything to spare
				}
				if got, err := isDominated(d, part); err != nil || got != want {
					t.Errorf("%+v dominates %+v: %t, %v, want %t", slot, part, got, err, want)
				}
			}
		}
	}
}

// TestDominatesBothOrders: removing a record is easier to see than adding one, so that what a mechanism
// shows of a removed record must not pay for one that shows as much of an added one.
func TestDominatesBothOrders(t *testing.T) {
	slot := privacy.Part{Mechanism: privacy.PoissonGaussian{SamplingProbability: 0.3, NoiseMultiplier: 1, Neighbours: privacy.AddRemove, PublicSize: false}, Count: 1}
	removed := bigProfiles(slot.Mechanism, 0.2)
	if removed[0].Cmp(removed[1]) <= 0 {
		t.Fatal("the orders do not differ")
	}
	d, err := newDominator(slot, 1e-10)
	require.NoError(t, err)
	// The Gaussian below is dominated where a record is removed, not where one is added.
	m := privacy.Part{Mechanism: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 4, Neighbours: privacy.AddRemove}, Count: 1}
	profiles, err := runs.New(m.Mechanism, 1)
	require.NoError(t, err)
	if got, err := isDominated(d, m); err != nil || got {
		t.Errorf("dominates %t, %v", got, err)
	}
	below, err := d.isBelow(profiles.Directions[0], d.lower[0])
	if err != nil || !below {
		t.Errorf("where a record is removed: %t, %v", below, err)
	}
}

// epsilonOf returns a guarantee.
func epsilonOf(t testing.TB, a privacy.Accountant, m privacy.Mechanism, steps int64, delta float64) privacy.Guarantee {
	t.Helper()
	g, err := privacy.Epsilon(a, m, steps, delta)
	require.NoError(t, err)
	return g
}
