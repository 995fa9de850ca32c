package slots

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSlotPrice compares with values of an independent program (numpy, discretised losses) for the
// run of the documents, and with the Gaussian filter where the losses have a heavy tail.
func TestSlotPrice(t *testing.T) {
	run := Slot{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 64}
	s, err := NewSlots([]Slot{run}, 1e-6)
	require.NoError(t, err)
	if g := s.Price(); math.Abs(g.Epsilon-2.870) > 5e-4 || g.Delta != 1e-6 || g.Accountant != "exact" || g.EpsilonLower != 0 {
		t.Errorf("64 runs: %+v, want ε = 2.870", g)
	}
	for _, tt := range []struct {
		m     privacy.FixedSizeGaussian
		steps int64
		above float64 // how much ε of one run is with the Gaussian filter
	}{{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 64, NoiseMultiplier: 1}, 2540, 1.13}, {privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 600, NoiseMultiplier: 1}, 109, 1.25}, {privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 1}} {
		s, err := NewSlots([]Slot{{tt.m, tt.steps, 1}}, 1e-6)
		require.NoError(t, err)
		mu, err := adaptive.ApproximateMu(tt.m, tt.steps, 1e-10)
		require.NoError(t, err)
		if ratio := gaussian.Epsilon(mu, math.Log(1e-6-1e-10)) / s.Price().Epsilon; math.Abs(ratio-tt.above) > 0.02 {
			t.Errorf("%+v: the Gaussian filter costs %.3f times the slot, want %g", tt.m, ratio, tt.above)
		}
	}
}

func TestSlotsFit(t *testing.T) {
	small, large := privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 20, NoiseMultiplier: 2}, privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 50, NoiseMultiplier: 1.5}
	s, err := NewSlots([]Slot{{large, 100, 1}, {small, 100, 2}}, 1e-6)
	require.NoError(t, err)
	used := make([]int64, 2)
	for i, tt := range []struct {
		m    privacy.Mechanism
		want int
	}{
		{privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 10, NoiseMultiplier: 2}, 1}, // the cheapest
		{privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 51, NoiseMultiplier: 1.5}, -1},
		{small, 1},
		{small, 0}, // a larger one
		{small, -1},
	} {
		got, err := s.Fit(tt.m, 100, used)
		if err != nil || got != tt.want {
			t.Errorf("%d: slot %d, %v, want %d", i, got, err, tt.want)
		}
		if got >= 0 {
			used[got]++
		}
	}
	if _, err := s.Fit(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 9, Neighbours: privacy.AddRemove}, 1, nil); len(privacy.FieldErrors(err)) != 1 || privacy.FieldErrors(err)[0].Field != "adjacency" {
		t.Errorf("another adjacency: %v", err)
	}
	for _, tt := range []struct {
		slots []Slot
		delta float64
		field string
	}{
		{nil, 1e-6, "slots"},
		{[]Slot{{small, 1, 1}}, 0, "delta"},
		{[]Slot{{nil, 1, 1}}, 1e-6, "slots[0].mechanism"},
		{[]Slot{{small, 0, 1}}, 1e-6, "slots[0].steps"},
		{[]Slot{{small, 1, 0}}, 1e-6, "slots[0].count"},
		{[]Slot{{small, 1, 1}, {privacy.FixedSizeGaussian{DatasetSize: 1000, BatchSize: 1, NoiseMultiplier: -1}, 1, 1}}, 1e-6, "slots[1].mechanism.noise_multiplier"},
		{[]Slot{{small, 1, 1}, {privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1}}, 1e-6, "slots[1].mechanism.adjacency"},
	} {
		_, err := NewSlots(tt.slots, tt.delta)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != tt.field {
			t.Errorf("%s: %v", tt.field, err)
		}
	}
}

// TestStretch: a slot fits where the divergences say so, for runs that its parameters do not compare
// with, and divergences never refuse what fits by more than their margin.
func TestStretch(t *testing.T) {
	s, err := NewSlots([]Slot{{privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, 1270, 1}}, 1e-6)
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(23, 7))
	agree, disagree := 0, 0
	for range 24 {
		m := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 64 + rng.Int64N(512), NoiseMultiplier: 2 + 5*rng.Float64()}
		steps := int64(float64(1270) * math.Pow(256/float64(m.BatchSize)*m.NoiseMultiplier/4, 2) * (0.9 + 0.2*rng.Float64()))
		kind, err := s.Fit(m, steps, nil)
		require.NoError(t, err)
		switch stretch := s.Stretch(m, steps, nil); {
		case (kind == 0) == (stretch <= 1):
			agree++
		case kind == 0 && stretch > 1+2*stretchMargin:
			t.Errorf("%+v, %d steps fit, but are stretched by %g", m, steps, stretch)
		default:
			disagree++
		}
	}
	if disagree > 4 {
		t.Errorf("divergences and slots disagree %d times, and agree %d times", disagree, agree)
	}
}

// TestStretchOfNothing: a slot with divergences of 0, to which the ratio of an access without any is no number,
// does not hide another slot that fits.
func TestStretchOfNothing(t *testing.T) {
	nothing, something := privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1e200, Neighbours: privacy.AddRemove}, privacy.Gaussian{Sensitivity: 1, StandardDeviation: 10, Neighbours: privacy.AddRemove}
	for _, slots := range [][]Slot{{{nothing, 1, 1}, {something, 1, 1}}, {{something, 1, 1}, {nothing, 1, 1}}} {
		s, err := NewSlots(slots, 1e-6)
		require.NoError(t, err)
		if got := s.Stretch(privacy.Gaussian{Sensitivity: 1, StandardDeviation: 2e200, Neighbours: privacy.AddRemove}, 1, nil); got != 0 {
			t.Errorf("%+v: stretched by %g", slots, got)
		}
	}
}

// finiteProfile returns ε for log δ of a mechanism with finitely many outputs.
func finiteProfile(m privacytest.FiniteMechanism) func(logDelta float64) (float64, error) {
	return func(logDelta float64) (float64, error) {
		lo, hi := 0.0, 100.0
		if privacytest.HockeyStick(m.P, m.Q, 0) <= math.Exp(logDelta) {
			return 0, nil
		}
		for range 80 {
			if mid := 0.5 * (lo + hi); privacytest.HockeyStick(m.P, m.Q, mid) <= math.Exp(logDelta) {
				hi = mid
			} else {
				lo = mid
			}
		}
		return hi, nil
	}
}

// finiteDominates is dominator.dominates of mechanisms with finitely many outputs.
func finiteDominates(t *testing.T, slot, m privacytest.FiniteMechanism, slack float64) bool {
	t.Helper()
	d := &dominator{slack: slack}
	var known []bracket
	for _, one := range []privacytest.FiniteMechanism{slot, slot.Reversed()} {
		var b bracket
		for i := range dominatorNodes {
			r := math.Sqrt(-math.Log(slack)) * float64(i+1) / dominatorNodes
			epsilon, _ := finiteProfile(one)(-r * r)
			x := math.Exp(epsilon)
			if !(epsilon > 1e-9) || len(b.low) > 0 && !(x > b.low[len(b.low)-1].x) {
				continue
			}
			b.low = append(b.low, vertex{x * (1 - 1e-12), math.Exp(-r * r)})
			b.high = append(b.high, vertex{x * (1 + 1e-12), math.Exp(-r * r)})
		}
		known = append(known, b)
	}
	for i, one := range []privacytest.FiniteMechanism{m, m.Reversed()} {
		below, err := d.isBelow(finiteProfile(one), known[i].lowerBound(known[1-i]))
		require.NoError(t, err)
		if !below {
			return false
		}
	}
	return true
}

// processed returns a random post-processing of a mechanism: what it shows is changed at random.
func processed(rng *rand.Rand, m privacytest.FiniteMechanism) privacytest.FiniteMechanism {
	n := 2 + rng.IntN(2)
	out := privacytest.FiniteMechanism{P: make([]float64, n), Q: make([]float64, n)}
	for i := range m.P {
		for k, share := range privacytest.RandomOutputs(rng, n) {
			out.P[k] += m.P[i] * share
			out.Q[k] += m.Q[i] * share
		}
	}
	return out
}

// assigned assigns the accesses of a path to slots as Slots does, to the first unused one that fits, and
// reports whether all have one.
func assigned(path []int, fits [][]bool, slots int) bool {
	used := make([]bool, slots)
	for _, access := range path {
		i := -1
		for k := range used {
			if i < 0 && !used[k] && fits[access][k] {
				i = k
			}
		}
		if i < 0 {
			return false
		}
		used[i] = true
	}
	return true
}

// TestAdaptiveSearchUnderSlots computes what the worst adaptive search shows, exactly, of mechanisms
// with few outputs: one that goes on in one way after lucky outputs and in another after others.
// Slots keep their word: the δ of all of them, composed. A mutant that lets an access take a slot that
// does not dominate it does not, and nor does one that uses a slot twice.
func TestAdaptiveSearchUnderSlots(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 6))
	const slack, depth, searches = 1e-7, 3, 120
	mismatched, reused, closest := 0, 0, 0.0
	for range searches {
		slots := privacytest.RandomMechanisms(rng, 2)
		mechanisms := []privacytest.FiniteMechanism{processed(rng, slots[0]), processed(rng, slots[1]), slots[0], slots[1]}
		mechanisms = append(mechanisms, privacytest.RandomMechanisms(rng, 1)...)
		fits, all, twice := make([][]bool, len(mechanisms)), make([][]bool, len(mechanisms)), make([][]bool, len(mechanisms))
		for i, m := range mechanisms {
			for k, slot := range slots {
				fit := i == 2+k || finiteDominates(t, slot, m, slack)
				fits[i], all[i] = append(fits[i], fit), append(all[i], true)
			}
			twice[i] = append(slices.Clone(fits[i]), fits[i]...)
		}
		epsilon := 1.5 * rng.Float64()
		for _, orientation := range []func(privacytest.FiniteMechanism) privacytest.FiniteMechanism{
			func(m privacytest.FiniteMechanism) privacytest.FiniteMechanism { return m }, privacytest.FiniteMechanism.Reversed,
		} {
			var oriented, declared []privacytest.FiniteMechanism
			for _, m := range mechanisms {
				oriented = append(oriented, orientation(m))
			}
			for _, m := range slots {
				declared = append(declared, orientation(m))
			}
			price := privacytest.ComposedDelta(declared, []int{0, 1}, epsilon, 0) + 2*slack
			worst := func(fits [][]bool, slots int) float64 {
				return privacytest.MostAdaptive(oriented, epsilon, 0, depth, nil, func(path []int) bool { return assigned(path, fits, slots) })
			}
			if price > 1e-4 {
				closest = math.Max(closest, worst(fits, 2)/price)
			} else if worst(fits, 2) > price {
				t.Errorf("a search shows δ = %g of %g", worst(fits, 2), price)
			}
			if worst(all, 2) > price*(1+1e-9) {
				mismatched++
			}
			if worst(twice, 4) > price*(1+1e-9) {
				reused++
			}
		}
	}
	t.Logf("%.4g of the price at most; %d of %d searches break it if any slot will do, %d if slots are used twice", closest, mismatched, 2*searches, reused)
	if closest > 1+1e-9 || closest < 0.9 {
		t.Errorf("searches show %g of the price", closest)
	}
	if mismatched < 20 || reused < 20 {
		t.Error("the mutants are not caught")
	}
}
