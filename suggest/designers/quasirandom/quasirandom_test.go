package quasirandom_test

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// Of b^k consecutive points from 0, every interval of length b^-k holds one,
// whatever the scrambling: the property of the (0,1)-sequence in base b.
func TestQuasiRandomEquidistribution(t *testing.T) {
	unit := &space.Space{}
	for _, name := range []string{"a", "b", "c"} {
		unit.Parameters = append(unit.Parameters, space.Parameter{Name: name, Kind: space.Double, Max: 1})
	}
	p := &suggest.Problem{Space: unit, Objectives: simulated.TrainingObjectives()}
	for j, n := range []int{64, 81, 125} { // bases 2, 3, 5
		for seed := range uint64(5) {
			for _, first := range []int64{0, int64(7 * n)} {
				s, err := quasirandom.New().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: n, Seed: seed, Number: first})
				require.NoError(t, err)
				counts := make([]int, n)
				for _, v := range s {
					counts[int(v.Point[j]*float64(n))]++
				}
				if slices.Max(counts) != 1 {
					t.Errorf("base of dimension %d, seed %d, from %d: %v points per interval", j, seed, first, counts)
				}
			}
		}
	}
}

// Over the seeds, each point is uniform, also in the digits beyond the length of its index
// (chi-squared with 15 degrees of freedom, 1e-6 level: 56.5).
func TestQuasiRandomUniform(t *testing.T) {
	const seeds, bins = 4000, 16
	unit := &space.Space{}
	for j := range 8 {
		unit.Parameters = append(unit.Parameters, space.Parameter{Name: string(rune('a' + j)), Kind: space.Double, Max: 1})
	}
	p := &suggest.Problem{Space: unit, Objectives: simulated.TrainingObjectives()}
	for _, number := range []int64{0, 1, 5} {
		counts := make([][bins]float64, len(unit.Parameters))
		for seed := range uint64(seeds) {
			s, err := quasirandom.New().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: 1, Seed: seed, Number: number})
			require.NoError(t, err)
			for j, v := range s[0].Point {
				counts[j][int(v*bins)]++
			}
		}
		for j := range counts {
			chi := 0.0
			for _, c := range counts[j] {
				chi += (c - seeds/bins) * (c - seeds/bins) / (seeds / bins)
			}
			if chi > 56.5 {
				t.Errorf("number %d, dimension %d: chi-squared = %g", number, j, chi)
			}
		}
	}
}

// The quasi-random designer follows the design distributions.
func TestQuasiRandomDistribution(t *testing.T) {
	const n = 1000
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Min: 0, Max: 50, Design: space.ShiftedExponential{Rate: 0.5, Shift: 1}},
		}},
		Objectives: simulated.TrainingObjectives(),
	}
	s, err := quasirandom.New().Suggest(t.Context(), p, &suggest.History{}, suggest.Request{Count: n, Seed: 5})
	require.NoError(t, err)
	values := make([]float64, n)
	for i, v := range s {
		values[i] = v.Point[0]
	}
	slices.Sort(values)
	for i, v := range values {
		if f := -math.Expm1(-0.5 * (v - 1)); math.Abs(f-(float64(i)+0.5)/n) > 5.0/n {
			t.Fatalf("the distribution function at the %d-th value %g is %g", i, v, f)
		}
	}
}

// Constraints leave the draws of a quasi-random design that are allowed as they are.
func TestQuasiRandomSkips(t *testing.T) {
	free := simulated.Training()
	bound := &suggest.Problem{Space: simulated.TrainingSpace(), Objectives: simulated.TrainingObjectives(), Allowed: func(q space.Point) bool { return q[3] > 1 }}
	d := quasirandom.New()
	r := suggest.Request{Count: 50, Seed: 2, Number: 1}
	before, after := simulated.Ask(t, d, free, &suggest.History{}, r), simulated.Ask(t, d, bound, &suggest.History{}, r)
	kept := 0
	for i := range before {
		if bound.Allowed(before[i].Point) {
			kept++
			if diff := cmp.Diff(before[i], after[i]); diff != "" {
				t.Errorf("suggestion %d (-free +bound):\n%s", i, diff)
			}
		}
		if !bound.Allowed(after[i].Point) {
			t.Errorf("%v is not allowed", after[i].Point)
		}
	}
	if kept < 20 || kept > 40 {
		t.Errorf("%d of 50 points allowed", kept)
	}
}
