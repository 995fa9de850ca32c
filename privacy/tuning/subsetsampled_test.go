package tuning

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// searchOnSubset is a geometric search, of 32 candidates on average, on a subset of 32,561 records.
func searchOnSubset(t *testing.T, share float64, lot, steps int64) SubsetSampled {
	t.Helper()
	gamma, err := SelectionGamma(1, 32)
	require.NoError(t, err)
	const n = 32561
	size := int64(math.Round(share * n))
	return SubsetSampled{RepeatedSelection{privacy.FixedSizeGaussian{DatasetSize: size, BatchSize: lot, NoiseMultiplier: 4}, steps, 1, gamma}, size, n}
}

// finalRun trains on all records, which costs 0.3037 by itself.
var finalRun = privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}, Count: 1270}

// TestSubsetValues compares with values of an independent program (numpy: losses in cells of 2e-6,
// the location bound on all of them, the convex hull of the amplified profile).
func TestSubsetValues(t *testing.T) {
	for _, tc := range []struct {
		share                   float64
		lot, steps              int64
		tuned, amplified, total float64
	}{
		{0.1, 26, 1250, 0.53713, 0.06223, 0.33104},
		{0.1, 64, 510, 0.85948, 0.11482, 0.35981},
		{0.05, 32, 510, 0.85948, 0.05694, 0.32565},
		{0.2, 128, 510, 0.85948, 0.22490, 0.42985},
	} {
		m := searchOnSubset(t, tc.share, tc.lot, tc.steps)
		for name, values := range map[string][2]float64{
			"tuned":     {epsilonOf(t, Location{}, m.Base, 1, 1e-6).Epsilon, tc.tuned},
			"amplified": {epsilonOf(t, privacy.Exact{}, m, 1, 1e-6).Epsilon, tc.amplified},
			"total":     {epsilonOf(t, privacy.Tightest{}, privacy.Composition{{Mechanism: m, Count: 1}, finalRun}, 1, 1e-6).Epsilon, tc.total},
		} {
			if e := values[0] - values[1]; e < -1e-5 || e > 2e-3*values[1] {
				t.Errorf("%+v, %s: epsilon %.5f, want %.5f", tc, name, values[0], values[1])
			}
		}
	}
}

// TestSubsetOfAll: a subset of all records changes nothing. The composition with a final run is that
// of the mechanisms themselves where these have pairs, and otherwise δ(ε) is the sum over
// pairs of losses.
func TestSubsetOfAll(t *testing.T) {
	all := searchOnSubset(t, 1, 256, 1270)
	search := epsilonOf(t, Location{}, all.Base, 1, 1e-6).Epsilon
	if got := epsilonOf(t, privacy.Exact{}, all, 1, 1e-6); privacytest.RelErr(got.Epsilon, search) > 1e-3 || got.EpsilonLower != 0 {
		t.Errorf("%+v, the search alone %g", got, search)
	}

	other := privacy.Part{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 400, NoiseMultiplier: 5}, Count: 900}
	want := epsilonOf(t, privacy.Exact{}, privacy.Composition{other, finalRun}, 1, 1e-6).Epsilon
	got := epsilonOf(t, privacy.Exact{}, privacy.Composition{{Mechanism: SubsetSampled{privacy.Composition{other}, 32561, 32561}, Count: 1}, finalRun}, 1, 1e-6).Epsilon
	if got < want*(1-1e-9) || privacytest.RelErr(got, want) > 1e-3 {
		t.Errorf("two runs: epsilon %.6f, composed %.6f", got, want)
	}

	tuned, _ := all.DominatingPairs().Upper[0].Nodes(1, math.Inf(-1), 0)
	final, _ := SubsetSampled{privacy.Composition{finalRun}, 32561, 32561}.DominatingPairs().Upper[0].Nodes(1, math.Inf(-1), 0)
	got = epsilonOf(t, privacy.PLD{}, privacy.Composition{{Mechanism: all, Count: 1}, finalRun}, 1, 1e-6).Epsilon
	delta := 0.0 // but for infinite losses, of 1e-18
	for i, l := range tuned.Loss {
		for k, m := range final.Loss {
			delta += tuned.Mass[i] * final.Mass[k] * math.Max(0, -math.Expm1(got-l-m))
		}
	}
	if privacytest.RelErr(delta, 1e-6) > 1e-2 {
		t.Errorf("search and final run: at epsilon %.6f delta is %g", got, delta)
	}
}

// TestSmallSubset: less of the data costs less, and one record of very many next to nothing.
func TestSmallSubset(t *testing.T) {
	total := func(m SubsetSampled) float64 {
		return epsilonOf(t, privacy.Tightest{}, privacy.Composition{{Mechanism: m, Count: 1}, finalRun}, 1, 1e-6).Epsilon
	}
	alone := epsilonOf(t, privacy.Exact{}, finalRun.Mechanism, finalRun.Count, 1e-6).Epsilon
	last := alone
	for _, share := range []float64{0.02, 0.1, 0.5, 1} {
		m := searchOnSubset(t, share, 1, 1270)
		m.Base = privacy.Gaussian{Sensitivity: 1, StandardDeviation: 8, Neighbours: privacy.ReplaceOne}
		if got := total(m); !(got > last) {
			t.Errorf("share %g: epsilon %g, of less %g", share, got, last)
		} else {
			last = got
		}
	}
	if got := total(SubsetSampled{privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}, 1, 1 << 50}); privacytest.RelErr(got, alone) > 1e-4 {
		t.Errorf("hardly any share: epsilon %g, the final run alone %g", got, alone)
	}
}

// profiledMechanism has a profile with finitely many corners, in both orders of the data sets.
type profiledMechanism struct{ profile []profile.Point }

func (profiledMechanism) Name() string { return "finite" }

func (profiledMechanism) Adjacency() privacy.Adjacency { return privacy.ReplaceOne }

func (profiledMechanism) Validate() error { return nil }

func (profiledMechanism) Assumptions() []privacy.Assumption { return nil }

func (m profiledMechanism) DominatingPairs() pld.Pairs {
	return pld.Pairs{Upper: []pld.Pair{profile.NewDiscretePair(m.profile, m.profile).Pair()}}
}

// profiledOf returns the mechanism with the largest profile of pairs of distributions.
func profiledOf(pairs [][2][]float64) profiledMechanism {
	losses := []float64{0}
	for _, pair := range pairs {
		for i := range pair[0] {
			if l := math.Abs(math.Log(pair[0][i] / pair[1][i])); l < math.Inf(1) {
				losses = append(losses, l)
			}
		}
	}
	slices.Sort(losses)
	var m profiledMechanism
	for _, l := range losses {
		delta := 0.0
		for _, pair := range pairs {
			delta = math.Max(delta, math.Max(privacytest.HockeyStick(pair[0], pair[1], l), privacytest.HockeyStick(pair[1], pair[0], l)))
		}
		m.profile = append(m.profile, profile.Point{R: 0, Epsilon: l, Delta: delta})
	}
	return m
}

// finiteData calls f with all multisets of a number of records of three kinds.
func finiteData(size int, f func(records []int)) {
	for zeros := range size + 1 {
		for ones := range size + 1 - zeros {
			records := make([]int, size)
			for i := range records[zeros:] {
				records[zeros+i] = 1
				if i >= ones {
					records[zeros+i] = 2
				}
			}
			f(records)
		}
	}
}

// kinds counts the records of each kind: the same for all orders.
func kinds(records []int) (counts [3]int) {
	for _, r := range records {
		counts[r]++
	}
	return counts
}

// replacements calls f with all pairs of multisets that differ in one record.
func replacements(size int, f func(a, b [3]int, records, other []int)) {
	finiteData(size, func(records []int) {
		for i := range records {
			for kind := range 3 {
				other := slices.Clone(records)
				if other[i] = kind; records[i] != kind {
					f(kinds(records), kinds(other), records, other)
				}
			}
		}
	})
}

// onSubsets returns the distribution of the outputs on a uniform subset.
func onSubsets(mechanism map[[3]int][]float64, records []int, size int) []float64 {
	var sum []float64
	subsets := 0.0
	for chosen := range 1 << len(records) {
		var subset []int
		for i, r := range records {
			if chosen>>i&1 == 1 {
				subset = append(subset, r)
			}
		}
		if len(subset) != size {
			continue
		}
		subsets++
		outputs := mechanism[kinds(subset)]
		if sum == nil {
			sum = make([]float64, len(outputs))
		}
		for i, p := range outputs {
			sum[i] += p
		}
	}
	for i := range sum {
		sum[i] /= subsets
	}
	return sum
}

// subsetExcess is the largest share by which δ(ε) of random mechanisms, one on a subset and then one
// on all records that depends on its output, exceeds the δ for which account gives ε.
func subsetExcess(t *testing.T, seed uint64, mechanisms int, account func(tuning privacy.Mechanism, size, n int64) SubsetSampled) (worst float64) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range mechanisms {
		const outputs = 3
		n := 2 + rng.IntN(3)
		size := 1 + rng.IntN(n)
		tuning := make(map[[3]int][]float64)
		finiteData(size, func(records []int) { tuning[kinds(records)] = privacytest.RandomOutputs(rng, outputs) })
		var final [outputs]map[[3]int][]float64 // by the output of the tuning
		var tunings, finals [][2][]float64
		for i := range final {
			final[i] = make(map[[3]int][]float64)
			finiteData(n, func(records []int) { final[i][kinds(records)] = privacytest.RandomOutputs(rng, 2) })
			replacements(n, func(a, b [3]int, _, _ []int) { finals = append(finals, [2][]float64{final[i][a], final[i][b]}) })
		}
		replacements(size, func(a, b [3]int, _, _ []int) { tunings = append(tunings, [2][]float64{tuning[a], tuning[b]}) })
		joint := func(records []int) []float64 {
			var all []float64
			for i, p := range onSubsets(tuning, records, size) {
				for _, q := range final[i][kinds(records)] {
					all = append(all, p*q)
				}
			}
			return all
		}
		m := account(profiledOf(tunings), int64(size), int64(n))
		for _, delta := range []float64{0.6, 0.3, 0.1, 0.03} {
			one := epsilonOf(t, privacy.PLD{}, m, 1, delta).Epsilon
			both := epsilonOf(t, privacy.PLD{}, privacy.Composition{{Mechanism: m, Count: 1}, {Mechanism: profiledOf(finals), Count: 1}}, 1, delta).Epsilon
			if math.IsInf(one, 1) || math.IsInf(both, 1) { // outputs that tell a record for sure are likelier than δ
				continue
			}
			replacements(n, func(_, _ [3]int, records, other []int) {
				exact := privacytest.HockeyStick(onSubsets(tuning, records, size), onSubsets(tuning, other, size), one)
				exact = math.Max(exact, privacytest.HockeyStick(joint(records), joint(other), both))
				worst = math.Max(worst, exact/delta-1)
			})
		}
	}
	return worst
}

// TestSubsetBruteForce: no data sets of a few records tell more about a record than the bound says.
func TestSubsetBruteForce(t *testing.T) {
	sound := func(tuning privacy.Mechanism, size, n int64) SubsetSampled { return SubsetSampled{tuning, size, n} }
	if worst := subsetExcess(t, 1, privacytest.Few(8, 150), sound); worst > 1e-9 {
		t.Errorf("excess %g", worst)
	}
	smaller := func(tuning privacy.Mechanism, size, n int64) SubsetSampled {
		return SubsetSampled{tuning, 3 * size, 4 * n}
	}
	if worst := subsetExcess(t, 1, privacytest.Few(12, 40), smaller); !(worst > 1e-2) {
		t.Errorf("a share that is too small is not caught: excess %g", worst)
	}
}

func TestSubsetErrors(t *testing.T) {
	noise := privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.ReplaceOne}
	for field, m := range map[string]SubsetSampled{
		"dataset_size":            {noise, 0, 0},
		"subset_size":             {noise, 11, 10},
		"base":                    {nil, 1, 10},
		"base.standard_deviation": {privacy.Gaussian{Sensitivity: 1, StandardDeviation: 0, Neighbours: privacy.ReplaceOne}, 1, 10},
		"base.adjacency":          {privacy.Gaussian{Sensitivity: 1, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 10},
		"base.dataset_size":       {BinomialSelection{privacy.Composition{{Mechanism: privacy.FixedSizeGaussian{DatasetSize: 10, BatchSize: 1, NoiseMultiplier: 1}, Count: 3}}, 1, 2, 1}, 5, 10},
	} {
		fields := privacy.FieldErrors(m.Validate())
		if !slices.ContainsFunc(fields, func(f *privacy.FieldError) bool { return f.Field == field }) {
			t.Errorf("%+v: %v, want %s", m, fields, field)
		}
	}
	if _, err := (privacy.Exact{}).Curve(SubsetSampled{privacy.Selection{Method: privacy.Exponential, Epsilon: 1, Neighbours: privacy.ReplaceOne}, 5, 10}); err != nil {
		t.Errorf("a base with a pure guarantee: %v", err)
	}
	// Where the profile ends nothing is guaranteed.
	if g := epsilonOf(t, privacy.Exact{}, SubsetSampled{noise, 1, 10}, 1, 1e-19); !math.IsInf(g.Epsilon, 1) || len(g.Warnings) == 0 {
		t.Errorf("%+v", g)
	}
}
