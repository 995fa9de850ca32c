package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestSharedPureComposition(t *testing.T) {
	tb := privacytest.SharedVectors(t, "composition_pure_public.csv")
	for _, row := range tb.Rows {
		eps, delta, k, total := tb.Float(row, "eps0"), tb.Float(row, "delta0"), tb.Int(row, "k"), tb.Float(row, "delta_total")
		got, err := ComposeOptimal(eps, delta, k, total)
		tb.Compare("eps_KOV_optimal_exact", got, tb.Float(row, "eps_KOV_optimal_exact"))
		if want := tb.Float(row, "eps_KOV_optimal_exact"); err != nil || privacytest.RelErr(got, want) > 1e-9 {
			t.Errorf("%v: optimal %.15g, want %.15g, %v", row, got, want, err)
		}
		got, err = ComposeAdvanced(eps, delta, k, total)
		tb.Compare("eps_DRV2010", got, tb.Float(row, "eps_DRV2010"))
		if want := tb.Float(row, "eps_DRV2010"); err != nil || privacytest.RelErr(got, want) > 1e-9 {
			t.Errorf("%v: advanced %.15g, want %.15g, %v", row, got, want, err)
		}
	}
}

// TestOptimalPureByEnumeration compares with δ(ε') summed over all outcomes.
func TestOptimalPureByEnumeration(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	for range 300 {
		k := 1 + rng.IntN(40)
		eps := math.Exp(rng.Float64()*7 - 5)
		delta := math.Exp(-rng.Float64() * 30)
		got := optimalPure(eps, float64(k), delta)
		profile := func(at float64) float64 {
			var sum float64
			for l := 0; l <= k; l++ {
				choose := lgamma(float64(k+1)) - lgamma(float64(l+1)) - lgamma(float64(k-l+1))
				loss := float64(k-2*l) * eps
				if loss > at {
					sum += math.Exp(choose-float64(l)*eps-float64(k)*math.Log1p(math.Exp(-eps))) * -math.Expm1(at-loss)
				}
			}
			return sum
		}
		const slack = 1e-12 // of ε, relative: δ varies fast close to k·eps
		above, below := profile(got*(1+slack)), profile(got*(1-slack))
		if above > delta*(1+1e-9) || (got > 0 && below < delta*(1-1e-9)) {
			t.Errorf("eps %g, k %d: around epsilon %g delta is %g to %g, want %g", eps, k, got, above, below, delta)
		}
	}
}

func TestOptimalPureExtremes(t *testing.T) {
	for _, tc := range []struct{ eps, k, delta float64 }{
		{1e-6, 1e7, 1e-12}, {700, 3, 1e-5}, {2000, 5, 1e-5}, {1e-3, 1e6, 0.9}, {5, 1e5, 1e-300}, {1e-9, 1, 0.5},
	} {
		got := optimalPure(tc.eps, tc.k, tc.delta)
		if math.IsNaN(got) || got < 0 || got > tc.eps*tc.k {
			t.Errorf("%+v: epsilon %g", tc, got)
		}
		if tc.eps >= 5 && got < 0.5*tc.eps*tc.k*math.Tanh(tc.eps/2) {
			t.Errorf("%+v: epsilon %g is below half of the mean loss", tc, got)
		}
	}
}

func TestPureRules(t *testing.T) {
	m := RandomizedResponse{Epsilon: 0.1, Categories: 2}
	basic := epsilonOf(t, Pure{}, m, 100, 1e-6).Epsilon
	advanced := epsilonOf(t, Pure{Advanced}, m, 100, 1e-6).Epsilon
	optimal := epsilonOf(t, Pure{Optimal}, m, 100, 1e-6).Epsilon
	rdp := epsilonOf(t, RDP{}, m, 100, 1e-6).Epsilon
	if !(optimal < rdp && rdp < advanced && advanced < basic) {
		t.Errorf("optimal %g, Rényi %g, advanced %g, basic %g", optimal, rdp, advanced, basic)
	}
	// Kairouz, Oh and Viswanath's theorem evaluated in multi-precision.
	if want := 4.7745675881079862; privacytest.RelErr(optimal, want) > 1e-10 {
		t.Errorf("optimal %.15g, want %.15g", optimal, want)
	}
	if got := epsilonOf(t, Pure{Optimal}, m, 100, 0).Epsilon; privacytest.RelErr(got, 10) > 1e-15 {
		t.Errorf("delta 0: %g", got)
	}
}

// TestOptimalHeterogeneous compares with δ(ε') summed over all subsets of "wrong"
// answers, each part being randomised response.
func TestOptimalHeterogeneous(t *testing.T) {
	rng := rand.New(rand.NewPCG(53, 54))
	for range 40 {
		k := 2 + rng.IntN(9)
		each := make([]float64, k)
		var m Composition
		for i := range each {
			each[i] = math.Exp(4*rng.Float64() - 3)
			m = append(m, Part{RandomizedResponse{each[i], 2}, 1})
		}
		delta := math.Exp(-1 - 15*rng.Float64())
		profile := func(at float64) float64 {
			var sum float64
			for subset := range 1 << k {
				loss, mass := 0.0, 1.0
				for i, e := range each {
					if subset>>i&1 == 0 {
						loss, mass = loss+e, mass/(1+math.Exp(-e))
					} else {
						loss, mass = loss-e, mass/(1+math.Exp(e))
					}
				}
				if loss > at {
					sum += mass * -math.Expm1(at-loss)
				}
			}
			return sum
		}
		got := epsilonOf(t, Pure{Optimal}, m, 1, delta).Epsilon
		basic := epsilonOf(t, Pure{}, m, 1, delta).Epsilon
		rdp := epsilonOf(t, RDP{}, m, 1, delta).Epsilon
		if above := profile(got * (1 + 1e-12)); above > delta*(1+1e-9) {
			t.Errorf("%v: epsilon %g has delta %g, want %g", each, got, above, delta)
		}
		if below := profile(got*(1-2e-3) - 1e-5); got > 0 && below < delta {
			t.Errorf("%v: epsilon %g is too large for delta %g, which a little below is %g", each, got, delta, below)
		}
		if got > basic || got > rdp*(1+1e-9) {
			t.Errorf("%v: optimal %g, Rényi %g, basic %g", each, got, rdp, basic)
		}
	}
	// Two halves of the same ε are one.
	m := Composition{{RandomizedResponse{0.1, 2}, 50}, {Laplace{1, 10, ReplaceOne}, 50}}
	want := epsilonOf(t, Pure{Advanced}, RandomizedResponse{0.1, 2}, 100, 1e-6).Epsilon
	if got := epsilonOf(t, Pure{Advanced}, m, 1, 1e-6).Epsilon; privacytest.RelErr(got, want) > 1e-12 {
		t.Errorf("advanced %g, want %g", got, want)
	}
}

func TestSharedLaplace(t *testing.T) {
	tb := privacytest.SharedVectors(t, "laplace_public.csv")
	orders := map[string]float64{
		"rdp_1.5": 1.5, "rdp_2": 2, "rdp_3": 3, "rdp_4": 4, "rdp_8": 8, "rdp_16": 16, "rdp_32": 32, "rdp_64": 64,
	}
	for _, row := range tb.Rows {
		m := Laplace{1, tb.Float(row, "b_over_sens"), AddRemove}
		if got, want := m.PureEpsilon(), tb.Float(row, "eps_pure"); privacytest.RelErr(got, want) > 1e-15 {
			t.Errorf("%v: epsilon %g", row, got)
		}
		for column, order := range orders {
			got, want := m.RenyiCurve().RDP(order), tb.Float(row, column)
			tb.Compare("rdp", got, want)
			if privacytest.RelErr(got, want) > 1e-12 {
				t.Errorf("%v: %s %.17g, want %.17g", row, column, got, want)
			}
		}
	}
}

func TestSharedZeroConcentrated(t *testing.T) {
	tb := privacytest.SharedVectors(t, "zcdp_public.csv")
	for _, row := range tb.Rows {
		m := ZeroConcentrated{tb.Float(row, "rho"), ReplaceOne}
		delta := tb.Float(row, "delta")
		got, want := epsilonOf(t, RDP{}, m, 1, delta), tb.Float(row, "eps_improved")
		tb.Compare("eps_improved", got.Epsilon, want)
		if privacytest.RelErr(got.Epsilon, want) > 1e-9 {
			t.Errorf("%v: improved %.17g at order %g", row, got.Epsilon, got.Order)
		}
		if got, want := epsilonOf(t, RDP{Classic}, m, 1, delta).Epsilon, tb.Float(row, "eps_bun_steinke"); privacytest.RelErr(got, want) > 1e-9 {
			t.Errorf("%v: classic %.17g, want %.17g", row, got, want)
		}
	}
}

func TestSharedPoissonOptimalOrders(t *testing.T) {
	tb := privacytest.SharedVectors(t, "rdp_poisson_public.csv")
	for _, row := range tb.Rows {
		m := PoissonGaussian{tb.Float(row, "q_num") / tb.Float(row, "q_den"), tb.Float(row, "sigma"), AddRemove, false}
		steps, delta := tb.Int(row, "steps"), tb.Float(row, "delta")
		for column, a := range map[string]RDP{"eps_opt_improved": {}, "eps_opt_classic": {Classic}} {
			g := epsilonOf(t, a, m, steps, delta)
			tb.Compare(column, g.Epsilon, tb.Float(row, column))
			if want := tb.Float(row, column); privacytest.RelErr(g.Epsilon, want) > 1e-9 {
				t.Errorf("%s: %s %.15g at order %g, want %.15g", row[0], column, g.Epsilon, g.Order, want)
			}
		}
	}
}

// TestTwoPointRenyi compares with the definition where it does not cancel.
func TestTwoPointRenyi(t *testing.T) {
	for _, categories := range []int64{2, 5, 100} {
		for _, eps := range []float64{0.3, 1, 4, 20} {
			c := RandomizedResponse{eps, categories}.RenyiCurve()
			total := math.Exp(eps) + float64(categories-1)
			p, q := math.Exp(eps)/total, 1/total
			for _, order := range []float64{1.5, 2, 5, 20} {
				want := math.Log(math.Pow(p, order)*math.Pow(q, 1-order)+math.Pow(q, order)*math.Pow(p, 1-order)+
					float64(categories-2)*q) / (order - 1)
				if got := c.RDP(order); privacytest.RelErr(got, want) > 1e-11 {
					t.Errorf("%d answers, eps %g, order %g: %.15g, want %.15g", categories, eps, order, got, want)
				}
			}
		}
	}
	for _, eps := range []float64{600, 2000} {
		if got := pureRenyi(eps).RDP(1.0001); !(got > 0 && got <= eps) {
			t.Errorf("eps %g: %g", eps, got)
		}
	}
}

func TestSelection(t *testing.T) {
	for _, method := range []SelectionMethod{Exponential, PermuteAndFlip, ReportNoisyMax} {
		m := Selection{method, 0.5, ReplaceOne}
		if got := epsilonOf(t, Pure{}, m, 4, 0).Epsilon; got != 2 {
			t.Errorf("%s: pure epsilon %g", m.Name(), got)
		}
		for _, order := range []float64{1.1, 2, 50} {
			if got := m.RenyiCurve().RDP(order); got > 0.5 || got > pureRenyi(0.5).RDP(order) {
				t.Errorf("%s order %g: %g", m.Name(), order, got)
			}
		}
	}
	exponential := epsilonOf(t, RDP{}, Selection{Exponential, 0.5, ReplaceOne}, 100, 1e-6).Epsilon
	flip := epsilonOf(t, RDP{}, Selection{PermuteAndFlip, 0.5, ReplaceOne}, 100, 1e-6).Epsilon
	if exponential >= flip {
		t.Errorf("bounded range %g, pure %g", exponential, flip)
	}
	if err := (Selection{7, -1, 0}).Validate(); len(FieldErrors(err)) != 3 {
		t.Errorf("errors %v", err)
	}
}

func BenchmarkPureEpsilon(b *testing.B) {
	for _, rule := range []PureRule{Basic, Advanced, Optimal} {
		a := Pure{rule}
		b.Run(a.Name(), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				require.NoError(b, require.ErrOf(Epsilon(a, Laplace{1, 10, AddRemove}, 100, 1e-6)))
			}
		})
	}
}

// Counts whose product is too large are refused, not wrapped around.
func TestNestedCounts(t *testing.T) {
	inner := Composition{{Gaussian{1, 1, AddRemove}, 1 << 32}}
	for _, count := range []int64{1 << 31, 1 << 32, 1<<32 + 1, math.MaxInt64} {
		fields := FieldErrors(Composition{{inner, count}}.Validate())
		if len(fields) != 1 || fields[0].Field != "parts[0].count" {
			t.Errorf("%d times 2^32: %v", count, fields)
		}
	}
	if err := (Composition{{inner, 1<<31 - 1}}).Validate(); err != nil {
		t.Error(err)
	}
}

// Two candidates, whose utilities move the logarithm of their odds by ε, are nearly the worst that the
// exponential mechanism can be given if ε is small.
func TestExponentialMechanismOfTwo(t *testing.T) {
	for _, epsilon := range []float64{0.01, 0.3, 2} {
		curve := Selection{Exponential, epsilon, ReplaceOne}.RenyiCurve()
		for _, order := range []float64{1.5, 2, 7} {
			worst := 0.0
			for logit := -3.0; logit <= 3; logit += 0.01 {
				p, q := 1/(1+math.Exp(-logit)), 1/(1+math.Exp(-logit+epsilon))
				moment := math.Pow(p, order)*math.Pow(q, 1-order) + math.Pow(1-p, order)*math.Pow(1-q, 1-order)
				worst = math.Max(worst, math.Log(moment)/(order-1))
			}
			rho := curve.RDP(order)
			if rho < worst*(1-1e-9) || epsilon < 0.1 && rho > 1.01*worst {
				t.Errorf("ε = %g, order %g: ρ = %g, two candidates have %g", epsilon, order, rho, worst)
			}
		}
	}
}

func TestComposeErrors(t *testing.T) {
	for _, tc := range []struct {
		field          string
		epsilon, delta float64
		k              int64
		total          float64
	}{
		{"epsilon", 0, 0, 1, 0.5}, {"delta", 1, -0.1, 1, 0.5}, {"delta", 1, 1, 1, 0.5}, {"steps", 1, 0, 0, 0.5},
		{"total", 1, 0, 1, 0}, {"total", 1, 0, 1, 1}, {"total", 1, 0.1, 2, 0.15},
	} {
		_, advancedErr := ComposeAdvanced(tc.epsilon, tc.delta, tc.k, tc.total)
		_, optimalErr := ComposeOptimal(tc.epsilon, tc.delta, tc.k, tc.total)
		for _, err := range []error{advancedErr, optimalErr} {
			if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != tc.field {
				t.Errorf("%+v: %v", tc, err)
			}
		}
	}
}

// Equal parts are composed exactly, not on a grid.
func TestOptimalOfEqualParts(t *testing.T) {
	for _, k := range []int64{2, 17, 400} {
		want, err := ComposeOptimal(0.3, 0, k, 1e-6)
		require.NoError(t, err)
		if got := epsilonOf(t, Pure{Optimal}, RandomizedResponse{0.3, 2}, k, 1e-6).Epsilon; privacytest.RelErr(got, want) > 1e-13 {
			t.Errorf("%d runs: %.16g, want %.16g", k, got, want)
		}
	}
}

// Every guarantee has an adjacency.
func TestAdjacencies(t *testing.T) {
	for _, m := range []Mechanism{
		Gaussian{1, 1, ReplaceOne}, Laplace{1, 1, ReplaceOne}, RandomizedResponse{1, 2}, SparseVector{1, 10, ReplaceOne},
		Selection{Exponential, 1, ReplaceOne}, FixedSizeGaussian{100, 10, 1}, PoissonGaussian{0.1, 1, ReplaceOne, false},
		OutputPerturbation{}, ObjectivePerturbation{}, Composition{{FixedSizeGaussian{100, 10, 1}, 1}},
	} {
		if m.Adjacency() != ReplaceOne {
			t.Errorf("%T: %v", m, m.Adjacency())
		}
	}
}
