package privacy

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSharedBandMF compares ε with an accountant whose losses are rounded up to a grid of 1e-4: it is up to 5 % too
// large where ε is small, by less than 1.2e-5 for each round.
func TestSharedBandMF(t *testing.T) {
	tb := privacytest.SharedVectors(t, "bandmf_amplified_public.csv")
	for _, row := range tb.Rows {
		m := BandMF{
			Bands: tb.Int(row, "bands"), SamplingProbability: tb.Float(row, "q"), NoiseMultiplier: tb.Float(row, "noise_multiplier"), Neighbours: AddRemove,
		}
		rounds, delta := tb.Int(row, "rounds"), tb.Float(row, "delta")
		if want := (tb.Int(row, "n_steps") + m.Bands - 1) / m.Bands; rounds != want {
			t.Fatalf("%v: want %d rounds", row, want)
		}
		want := math.Max(tb.Float(row, "eps_pld_remove"), tb.Float(row, "eps_pld_add"))
		g := epsilonOf(t, Exact{}, m, rounds, delta)
		tb.Compare("the larger of eps_pld_remove, eps_pld_add", g.Epsilon, want)
		slack := 1e-4*want + 1.2e-5*float64(rounds)
		if g.Epsilon > want*(1+1e-4) || g.Epsilon < want-slack || g.EpsilonLower > g.Epsilon || g.EpsilonLower < want-slack {
			t.Errorf("%v: epsilon in [%.9g, %.9g], want %.9g", row[:8], g.EpsilonLower, g.Epsilon, want)
		}
		m.SamplingProbability = 1
		g = epsilonOf(t, Exact{}, m, rounds, delta)
		if want := tb.Float(row, "eps_no_amplification"); privacytest.RelErr(g.Epsilon, want) > 1e-3 {
			t.Errorf("%v: epsilon %.9g without amplification, want %.9g", row[:8], g.Epsilon, want)
		}
	}
}

// With one band it is Poisson sampling; a replaced record costs more, and less noise too.
func TestBandMF(t *testing.T) {
	const delta = 1e-5
	for _, neighbours := range []Adjacency{AddRemove, ReplaceOne} {
		m := BandMF{Bands: 1, SamplingProbability: 0.03, NoiseMultiplier: 1.5, Neighbours: neighbours, PublicSize: true}
		for _, a := range []Accountant{Exact{}, RDP{}} {
			got := epsilonOf(t, a, m, 200, delta)
			want := epsilonOf(t, a, PoissonGaussian{0.03, 1.5, neighbours, true}, 200, delta)
			if got.Epsilon != want.Epsilon || got.EpsilonLower != want.EpsilonLower {
				t.Errorf("%s, %s: epsilon %g, for Poisson sampling %g", neighbours, a.Name(), got.Epsilon, want.Epsilon)
			}
		}
	}
	m := BandMF{Bands: 4, SamplingProbability: 0.1, NoiseMultiplier: 2, Neighbours: AddRemove}
	added := epsilonOf(t, Exact{}, m, 50, delta)
	m.Neighbours = ReplaceOne
	if replaced := epsilonOf(t, Exact{}, m, 50, delta); !(replaced.Epsilon > added.Epsilon) {
		t.Errorf("epsilon %g if a record is replaced, %g if one is added", replaced.Epsilon, added.Epsilon)
	}
}

func TestBandMFAssumptions(t *testing.T) {
	for _, tc := range []struct {
		neighbours Adjacency
		publicSize bool
		want       string
	}{
		{AddRemove, false, "each record's group depends on no other record"},
		{AddRemove, true, PublicSizeAssumption.Text},
		{AddRemove, true, "the groups depend on the number of records and on no record, and a missing record leaves its place empty"},
		{ReplaceOne, false, "the number of records is public"},
	} {
		m := BandMF{Bands: 2, SamplingProbability: 0.1, NoiseMultiplier: 1, Neighbours: tc.neighbours, PublicSize: tc.publicSize}
		if got := m.Assumptions(); !hasText(got, tc.want) {
			t.Errorf("%+v: assumptions %q", m, got)
		}
	}
}

func TestBandMFInvalid(t *testing.T) {
	err := BandMF{SamplingProbability: 1.5, NoiseMultiplier: math.Inf(1)}.Validate()
	for _, field := range []string{"bands", "sampling_probability", "noise_multiplier", "adjacency"} {
		if !slices.ContainsFunc(FieldErrors(err), func(e *FieldError) bool { return e.Field == field }) {
			t.Errorf("no violation of %s in %v", field, strings.ReplaceAll(err.Error(), "\n", "; "))
		}
	}
}
