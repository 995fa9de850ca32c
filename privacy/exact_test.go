package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// tightCases are configurations of which the speed is measured.
var tightCases = []struct {
	name  string
	m     FixedSizeGaussian
	steps int64
	delta float64
}{
	{"A", FixedSizeGaussian{40000, 128, 1}, 3120, 1e-6},
	{"B", FixedSizeGaussian{60000, 256, 1.1}, 14062, 1e-5},
	{"C", FixedSizeGaussian{60000, 4000, 4}, 6000, 1e-5},
	{"D", FixedSizeGaussian{40000, 64, 0.5}, 6250, 1e-6},
	{"E", FixedSizeGaussian{40000, 8, 4}, 5000, 1e-6},
	{"F", FixedSizeGaussian{30956, 8, 16}, 3870, 1e-5},
}

// TestExactFixedSize: values of a multi-precision inversion of the same pair.
func TestExactFixedSize(t *testing.T) {
	g := epsilonOf(t, Exact{}, tightCases[0].m, 3120, 1e-6)
	if want := 1.330865304864; privacytest.RelErr(g.Epsilon, want) > 1e-8 || g.Epsilon < want {
		t.Errorf("epsilon %.13g, want %.13g", g.Epsilon, want)
	}
	if want := 1.07931971637; privacytest.RelErr(g.EpsilonLower, want) > 1e-8 || g.EpsilonLower > want {
		t.Errorf("lower bound %.13g, want %.13g", g.EpsilonLower, want)
	}
	if g.Accountant != "exact" || g.Adjacency != ReplaceOne || len(g.Warnings) != 0 {
		t.Errorf("guarantee %+v", g)
	}
}

func TestSharedFixedSizeExact(t *testing.T) {
	tb := privacytest.SharedVectors(t, "pld_wor_public.csv")
	for i, row := range tb.Rows {
		m := FixedSizeGaussian{tb.Int(row, "n"), tb.Int(row, "m"), tb.Float(row, "sigma")}
		steps, delta := tb.Int(row, "steps"), tb.Float(row, "delta")
		upper, lower := tb.Float(row, "eps_upper_exact"), tb.Float(row, "eps_lower_exact")
		slack := 1e-10
		if _, err := tb.Number(row, "exact_rel_check"); err == nil {
			slack = math.Max(slack, tb.Float(row, "exact_rel_check"))
		} else {
			slack = 5e-8 // by extrapolation
		}
		exact := epsilonOf(t, Exact{}, m, steps, delta)
		tb.Compare("eps_upper_exact", exact.Epsilon, upper)
		tb.Compare("eps_lower_exact", exact.EpsilonLower, lower)
		if e := exact.Epsilon/upper - 1; e < -slack || e > 1e-4 {
			t.Errorf("%s: epsilon %.12g, exact %.12g, relative %.2g", row[0], exact.Epsilon, upper, e)
		}
		if e := exact.EpsilonLower/lower - 1; e > slack || e < -5e-3 {
			t.Errorf("%s: lower bound %.12g, exact %.12g, relative %.2g", row[0], exact.EpsilonLower, lower, e)
		}
		if rdp := epsilonOf(t, RDP{}, m, steps, delta); rdp.Epsilon < exact.Epsilon {
			t.Errorf("%s: Rényi %.12g below exact %.12g", row[0], rdp.Epsilon, exact.Epsilon)
		}
		if privacytest.Skips(i, 8) { // grids take long
			continue
		}
		pld := epsilonOf(t, PLD{UpperOnly: true}, m, steps, delta)
		if pld.Epsilon < upper*(1-slack) || pld.Epsilon > upper*(1+5e-3)+1e-4 {
			t.Errorf("%s: PLD %.12g, exact %.12g", row[0], pld.Epsilon, upper)
		}
	}
}

func TestSharedPublishedRunsExact(t *testing.T) {
	tb := privacytest.SharedVectors(t, "dpareto_examples_public.csv")
	for _, row := range tb.Rows {
		m := FixedSizeGaussian{tb.Int(row, "n"), tb.Int(row, "m"), tb.Float(row, "sigma")}
		steps, delta := tb.Int(row, "steps"), tb.Float(row, "delta")
		g := epsilonOf(t, Exact{}, m, steps, delta)
		tb.Compare("eps_wor_pld_upper_exact", g.Epsilon, tb.Float(row, "eps_wor_pld_upper_exact"))
		if want := tb.Float(row, "eps_wor_pld_upper_exact"); privacytest.RelErr(g.Epsilon, want) > 1e-7 {
			t.Errorf("%s: epsilon %.12g, want %.12g", row[0], g.Epsilon, want)
		}
		if want := tb.Float(row, "eps_lower_exact"); g.EpsilonLower > want*(1+1e-9) || g.EpsilonLower < want*(1-2e-3) {
			t.Errorf("%s: lower bound %.12g, want %.12g", row[0], g.EpsilonLower, want)
		}
		for column, conversion := range map[string]Conversion{
			"eps_thm27_classic_intopt": Classic, "eps_thm27_improved_intopt": Improved,
		} {
			if got, want := publishedEpsilon(t, conversion, m, steps, delta).Epsilon, tb.Float(row, column); privacytest.RelErr(got, want) > 1e-9 {
				t.Errorf("%s: %s %.12g, want %.12g", row[0], column, got, want)
			}
		}
	}
}

func TestSharedPoissonExact(t *testing.T) {
	tb := privacytest.SharedVectors(t, "pld_poisson_public.csv")
	for i, row := range tb.Rows {
		m := PoissonGaussian{tb.Float(row, "q"), tb.Float(row, "sigma"), AddRemove, false}
		steps, delta, want := tb.Int(row, "steps"), tb.Float(row, "delta"), tb.Float(row, "eps_exact")
		slack := math.Max(1e-10, tb.Float(row, "exact_rel_check"))
		g := epsilonOf(t, Exact{UpperOnly: true}, m, steps, delta)
		tb.Compare("eps_exact", g.Epsilon, want)
		if e := g.Epsilon/want - 1; e < -slack || e > 1e-4 {
			t.Errorf("%s: epsilon %.12g, exact %.12g, relative %.2g", row[0], g.Epsilon, want, e)
		}
		if privacytest.Skips(i, 8) { // grids take long
			continue
		}
		pld := epsilonOf(t, PLD{UpperOnly: true}, m, steps, delta)
		if pld.Epsilon < want*(1-slack) || pld.Epsilon > want*(1+5e-3)+1e-4 {
			t.Errorf("%s: PLD %.12g, exact %.12g", row[0], pld.Epsilon, want)
		}
	}
}

func TestSharedPoissonRDP(t *testing.T) {
	tb := privacytest.SharedVectors(t, "rdp_poisson_public.csv")
	orders := map[string]float64{
		"rdp_1.25": 1.25, "rdp_1.5": 1.5, "rdp_2": 2, "rdp_2.5": 2.5, "rdp_3": 3, "rdp_4": 4,
		"rdp_5.5": 5.5, "rdp_8": 8, "rdp_16": 16, "rdp_32": 32, "rdp_64": 64,
	}
	for _, row := range tb.Rows {
		m := PoissonGaussian{tb.Float(row, "q_num") / tb.Float(row, "q_den"), tb.Float(row, "sigma"), AddRemove, false}
		curve := m.RenyiCurve()
		for column, order := range orders {
			got, want := curve.RDP(order), tb.Float(row, column)
			tb.Compare("rdp", got, want)
			if privacytest.RelErr(got, want) > 1e-10 {
				t.Errorf("%s order %g: rdp %.17g, want %.17g", row[0], order, got, want)
			}
		}
	}
}

// singleStep is the closed-form δ(ε) of one step of FixedSizeGaussian, ε >= 0.
func singleStep(q, z, epsilon float64) float64 {
	inner := math.Log1p(math.Expm1(epsilon) / q)
	logDelta, _ := gaussian.Profile(1/z, inner)
	return q * math.Exp(logDelta)
}

// TestSingleStep compares one step with the closed form of its profile.
func TestSingleStep(t *testing.T) {
	for _, m := range []FixedSizeGaussian{{1000, 100, 1}, {1000, 900, 0.5}, {100000, 10, 2}, {50, 1, 0.3}} {
		for _, delta := range []float64{1e-3, 1e-6, 1e-9} {
			for _, a := range []Accountant{Exact{}, PLD{}} {
				g := epsilonOf(t, a, m, 1, delta)
				if at0 := singleStep(m.Rate(), m.NoiseMultiplier, 1e-12); at0 < delta {
					if g.Epsilon > 1e-3 {
						t.Errorf("%s %+v, delta %g: epsilon %g, want 0", a.Name(), m, delta, g.Epsilon)
					}
					continue
				}
				at := singleStep(m.Rate(), m.NoiseMultiplier, g.Epsilon)
				below := singleStep(m.Rate(), m.NoiseMultiplier, math.Max(0, g.Epsilon*(1-5e-3)-1e-5))
				if at > delta*(1+1e-9) || below < delta {
					t.Errorf("%s %+v: epsilon %g has delta %g, a little below %g, want %g", a.Name(), m, g.Epsilon, at, below, delta)
				}
			}
		}
	}
}

// TestExactAgainstOthers checks the order of all accountants on random inputs,
// and inversion against convolution.
func TestExactAgainstOthers(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 12))
	for range 20 {
		n := int64(math.Exp(3 + rng.Float64()*11))
		m := FixedSizeGaussian{n, 1 + int64(math.Exp(rng.Float64()*math.Log(float64(n)))), math.Exp(rng.Float64()*4 - 1)}
		m.BatchSize = min(m.BatchSize, n)
		steps, delta := 1+int64(math.Exp(rng.Float64()*11)), math.Exp(-3-rng.Float64()*25)
		exact := epsilonOf(t, Exact{}, m, steps, delta)
		pld := epsilonOf(t, PLD{}, m, steps, delta)
		rdp := epsilonOf(t, RDP{}, m, steps, delta)
		if len(exact.Warnings) > 0 {
			t.Errorf("%+v, %d steps, delta %g: %v", m, steps, delta, exact.Warnings)
		}
		if exact.Epsilon > rdp.Epsilon*(1+1e-9) || exact.EpsilonLower > exact.Epsilon {
			t.Errorf("%+v, %d steps, delta %g: lower %g, exact %g, Rényi %g",
				m, steps, delta, exact.EpsilonLower, exact.Epsilon, rdp.Epsilon)
		}
		if exact.Epsilon > pld.Epsilon*(1+1e-8)+1e-12 || pld.Epsilon > exact.Epsilon*(1+1e-3)+1e-6 {
			t.Errorf("%+v, %d steps, delta %g: exact %g, PLD %g", m, steps, delta, exact.Epsilon, pld.Epsilon)
		}
	}
}

func TestExactGaussian(t *testing.T) {
	g := Gaussian{1, 3, ReplaceOne}
	full := FixedSizeGaussian{100, 100, 3}
	for _, m := range []Mechanism{g, full, Composition{{g, 1}, {full, 2}}} {
		got := epsilonOf(t, Exact{}, m, 30, 1e-6).Epsilon
		runs := 30.0
		if _, ok := m.(Composition); ok {
			runs = 90
		}
		if want := gaussian.Epsilon(math.Sqrt(runs)/3, math.Log(1e-6)); privacytest.RelErr(got, want) > 1e-13 {
			t.Errorf("%+v: epsilon %.15g, want %.15g", m, got, want)
		}
	}
	// Nearly no sampling: the general method next to the closed form.
	almost := epsilonOf(t, Exact{}, PoissonGaussian{1 - 1e-9, 3, AddRemove, false}, 30, 1e-6).Epsilon
	if want := gaussian.Epsilon(math.Sqrt(30)/3, math.Log(1e-6)); privacytest.RelErr(almost, want) > 1e-6 {
		t.Errorf("q near 1: epsilon %.15g, want %.15g", almost, want)
	}
}

func TestExactComposition(t *testing.T) {
	a, b := FixedSizeGaussian{30956, 128, 1.5}, Gaussian{1, 20, ReplaceOne}
	ab := epsilonOf(t, Exact{}, Composition{{a, 500}, {b, 1}}, 1, 1e-5)
	ba := epsilonOf(t, Exact{}, Composition{{b, 1}, {a, 500}}, 1, 1e-5)
	pld := epsilonOf(t, PLD{}, Composition{{a, 500}, {b, 1}}, 1, 1e-5)
	only := epsilonOf(t, Exact{}, a, 500, 1e-5)
	if privacytest.RelErr(ab.Epsilon, ba.Epsilon) > 1e-8 || ab.Epsilon <= only.Epsilon || privacytest.RelErr(ab.Epsilon, pld.Epsilon) > 1e-4 {
		t.Errorf("compositions %g, %g, by PLD %g, without the Gaussian %g",
			ab.Epsilon, ba.Epsilon, pld.Epsilon, only.Epsilon)
	}
	// Poisson steps have two directions, a Gaussian serves both.
	p := PoissonGaussian{0.01, 1, AddRemove, false}
	two := epsilonOf(t, Exact{}, Composition{{Gaussian{1, 20, AddRemove}, 1}, {p, 500}}, 1, 1e-5)
	one := epsilonOf(t, Exact{}, Composition{{p, 500}, {Gaussian{1, 20, AddRemove}, 1}}, 1, 1e-5)
	if privacytest.RelErr(one.Epsilon, two.Epsilon) > 1e-8 {
		t.Errorf("compositions %g and %g", one.Epsilon, two.Epsilon)
	}
}

func BenchmarkExactEpsilon(b *testing.B) {
	for _, bc := range tightCases {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Epsilon(Exact{}, bc.m, bc.steps, bc.delta)))
			}
		})
	}
}

func BenchmarkExactTrajectory64(b *testing.B) {
	for _, bc := range tightCases {
		b.Run(bc.name, func(b *testing.B) {
			steps := make([]int64, 64)
			for i := range steps {
				steps[i] = bc.steps * int64(i+1) / 64
			}
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Trajectory(Exact{}, bc.m, steps, bc.delta)))
			}
		})
	}
}

func BenchmarkPLDEpsilon(b *testing.B) {
	for _, bc := range tightCases[:3] {
		b.Run(bc.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Epsilon(PLD{}, bc.m, bc.steps, bc.delta)))
			}
		})
	}
}

func BenchmarkPoissonRDPEpsilon(b *testing.B) {
	for _, bc := range tightCases[:5] {
		b.Run(bc.name, func(b *testing.B) {
			m := PoissonGaussian{bc.m.Rate(), bc.m.NoiseMultiplier, AddRemove, false}
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Epsilon(RDP{}, m, bc.steps, bc.delta)))
			}
		})
	}
}
