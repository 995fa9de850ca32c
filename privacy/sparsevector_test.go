package privacy

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestSparseVector(t *testing.T) {
	// ε = 1/b₁ + 2C/b₂ evaluated independently; the exact worst-case loss over 100
	// queries, found by integration, is equal to it up to 1e-5 for (1, 1).
	for _, tc := range []struct {
		bound                         int64
		noise, threshold, query, want float64
	}{
		{1, 1, 0.44249333, 0.55750667, 5.8473221},
		{5, 1, 0.31701401, 0.68298599, 17.796024},
		{10, 1, 0.26922121, 0.73077879, 31.082481},
		{10, 10, 2.6922121, 7.3077879, 3.1082481},
		{30, 100, 20.346428, 79.653572, 0.80241056},
		{5, 0.1, 0.031701401, 0.068298599, 177.96024},
	} {
		m := SparseVector{Cutoff: tc.bound, NoiseScale: tc.noise, Neighbours: ReplaceOne}
		g := epsilonOf(t, Pure{}, m, 1, 0)
		b1, b2 := m.Split()
		if privacytest.RelErr(g.Epsilon, tc.want) > 1e-7 || privacytest.RelErr(b1, tc.threshold) > 1e-7 || privacytest.RelErr(b2, tc.query) > 1e-7 {
			t.Errorf("%+v: epsilon %.9g, split %.9g %.9g", m, g.Epsilon, b1, b2)
		}
		if direct := 1/b1 + 2*float64(tc.bound)/b2; privacytest.RelErr(g.Epsilon, direct) > 1e-14 {
			t.Errorf("%+v: epsilon %.17g, 1/b1 + 2C/b2 = %.17g", m, g.Epsilon, direct)
		}
		if g.Adjacency != ReplaceOne || g.Delta != 0 || g.Accountant != "pure" {
			t.Errorf("guarantee %+v", g)
		}
	}
}

func TestSharedSparseVector(t *testing.T) {
	tb := privacytest.SharedVectors(t, "svt_public.csv")
	for _, row := range tb.Rows {
		m := SparseVector{Cutoff: tb.Int(row, "C"), NoiseScale: tb.Float(row, "b"), Neighbours: ReplaceOne}
		b1, b2 := m.Split()
		for column, got := range map[string]float64{"b1": b1, "b2": b2, "eps": m.PureEpsilon()} {
			tb.Compare(column, got, tb.Float(row, column))
			if want := tb.Float(row, column); privacytest.RelErr(got, want) > 1e-14 {
				t.Errorf("%v: %s = %.17g, want %.17g", row, column, got, want)
			}
		}
	}
}

func TestSparseVectorErrors(t *testing.T) {
	for _, m := range []SparseVector{
		{0, 1, ReplaceOne}, {-3, 1, ReplaceOne}, {1, 0, ReplaceOne}, {1, -1, ReplaceOne},
		{1, math.NaN(), ReplaceOne}, {1, math.Inf(1), ReplaceOne}, {1, 1, 0},
	} {
		if _, err := Epsilon(Pure{}, m, 1, 0); len(FieldErrors(err)) != 1 {
			t.Errorf("%+v: error %v", m, err)
		}
	}
}

func TestPureComposes(t *testing.T) {
	m := SparseVector{Cutoff: 2, NoiseScale: 10, Neighbours: AddRemove}
	one := epsilonOf(t, Pure{}, m, 1, 1e-9).Epsilon
	if got := epsilonOf(t, Pure{}, Composition{{m, 3}, {m, 4}}, 2, 0).Epsilon; privacytest.RelErr(got, 14*one) > 1e-15 {
		t.Errorf("14 runs: %g, one: %g", got, one)
	}
	if got := epsilonOf(t, Pure{}, m, 0, 0).Epsilon; got != 0 {
		t.Errorf("no runs: %g", got)
	}
	if _, err := Epsilon(Pure{}, m, 1, 1); err == nil {
		t.Error("delta = 1 was accepted")
	}
}
