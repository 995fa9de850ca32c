package tuning

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/moments"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestRepeatedSelection: totals for a Gaussian base, δ = 1e-6, as computed by an
// independent implementation on a fixed list of orders, to its precision.
func TestRepeatedSelection(t *testing.T) {
	for _, tc := range []struct{ mu, eta, gamma, mean, eps float64 }{
		{0.1, 1, 0.1, 10, 0.898080}, {0.1, 0, 0.00154212, 100, 0.878410}, {0.25, 1, 0.1, 10, 2.271369},
		{0.25, 0, 0.0269183, 10, 1.901966}, {0.25, 0.5, 0.0625, 10, 2.097049}, {0.25, 2, 0.17082, 10, 2.577066},
		{0.25, 1, 0.01, 100, 2.824108}, {0.5, 1, 0.01, 100, 5.646345}, {1, 0, 0.0269183, 10, 7.869161},
	} {
		m := RepeatedSelection{privacy.Gaussian{Sensitivity: tc.mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, tc.eta, tc.gamma}
		if got := m.MeanRuns(); privacytest.RelErr(got, tc.mean) > 1e-5 {
			t.Errorf("%+v: mean %g", tc, got)
		}
		if got := epsilonOf(t, privacy.RDP{}, m, 1, 1e-6).Epsilon; got > tc.eps*(1+1e-6) || got < tc.eps*(1-2e-3) {
			t.Errorf("%+v: epsilon %.8g", tc, got)
		}
	}
}

// tuningBase returns the base mechanism of a row and its number of steps.
func tuningBase(t *testing.T, tb privacytest.Table, row []string) (base privacy.Mechanism, steps int64) {
	t.Helper()
	var err error
	params := tb.Text(row, "base_params")
	switch kind := tb.Text(row, "base"); kind {
	case "wor_thm27":
		var m privacy.FixedSizeGaussian
		_, err = fmt.Sscanf(params, "n=%d;m=%d;sigma=%g;steps=%d", &m.DatasetSize, &m.BatchSize, &m.NoiseMultiplier, &steps)
		base = stated{m, moments.NewFixedSize(m.Rate(), m.NoiseMultiplier)}
	case "poisson":
		var num, den float64
		m := privacy.PoissonGaussian{Neighbours: privacy.AddRemove}
		_, err = fmt.Sscanf(params, "q_num=%g;q_den=%g;sigma=%g;steps=%d", &num, &den, &m.NoiseMultiplier, &steps)
		m.SamplingProbability = num / den
		base = m
	case "gauss":
		m := privacy.Gaussian{Sensitivity: 1, Neighbours: privacy.AddRemove}
		_, err = fmt.Sscanf(params, "sigma=%g;steps=%d", &m.StandardDeviation, &steps)
		base = m
	default:
		t.Fatalf("unknown base %q", kind)
	}
	require.NoError(t, err)
	return base, steps
}

// fixedOrders is the list of Rényi orders of the reference implementation.
func fixedOrders() []float64 {
	var orders []float64
	for i := 1; i < 100; i++ {
		orders = append(orders, 1+float64(i)/10)
	}
	for i := 11; i < 64; i++ {
		orders = append(orders, float64(i))
	}
	return append(orders, 128, 256, 512, 1024)
}

// TestSharedRepeatedSelection covers all distributions of K and all bases. The
// reference takes the δ̂ of the Poisson distribution from Rényi divergences and minimises
// over fixed orders, or over dense ones.
func TestSharedRepeatedSelection(t *testing.T) {
	tb := privacytest.SharedVectors(t, "randtune_public.csv")
	for _, row := range tb.Rows {
		base, steps := tuningBase(t, tb, row)
		delta, mean := tb.Float(row, "delta"), tb.Float(row, "mean")
		var m, exact privacy.RenyiMechanism
		if tb.Text(row, "eta") == "inf" {
			p := PoissonSelection{base, steps, mean}
			profile, err := privacy.RDP{}.Curve(base)
			require.NoError(t, err)
			m, exact = stated{p, p.renyiCurve(profile)}, p
		} else {
			r := RepeatedSelection{base, steps, tb.Float(row, "eta"), tb.Float(row, "gamma")}
			if privacytest.RelErr(r.MeanRuns(), mean) > 1e-8 {
				t.Errorf("%s: mean %g", row[0], r.MeanRuns())
			}
			m, exact = r, r
		}
		got := epsilonOf(t, privacy.RDP{}, m, 1, delta).Epsilon
		want := tb.Float(row, "eps_dense")
		tb.Compare("eps_dense", got, want)
		if privacytest.RelErr(got, want) > 1e-3 {
			t.Errorf("%s: epsilon %.9g, want %.9g", row[0], got, want)
		}
		if best := epsilonOf(t, privacy.RDP{}, exact, 1, delta).Epsilon; best > want*(1+1e-5) {
			t.Errorf("%s: epsilon %.9g with the exact profile, without %.9g", row[0], best, want)
		}
		curve := m.RenyiCurve()
		for _, order := range []float64{2, 4, 8, 16, 32} {
			least := curve.RDP(order)
			if _, poisson := exact.(PoissonSelection); !poisson { // the least of larger orders
				for _, other := range fixedOrders() {
					if other >= order {
						least = math.Min(least, curve.RDP(other))
					}
				}
			}
			want := tb.Float(row, fmt.Sprintf("rdp_out_%g", order))
			if least > want*(1+1e-4) || least < want*(1-5e-3) {
				t.Errorf("%s order %g: rdp %.12g, want %.12g", row[0], order, least, want)
			}
		}
	}
}

// stated is a mechanism with another curve.
type stated struct {
	privacy.Mechanism
	curve privacy.RenyiCurve
}

func (m stated) RenyiCurve() privacy.RenyiCurve { return m.curve }

// TestPoissonSelection: ε for Gaussian bases, δ = 1e-6, with δ̂ from their exact
// profile, by independent computations.
func TestPoissonSelection(t *testing.T) {
	for _, tc := range []struct{ mu, mean, eps float64 }{{0.25, 10, 2.039366}, {0.25, 100, 6.97}} {
		m := PoissonSelection{privacy.Gaussian{Sensitivity: tc.mu, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, tc.mean}
		got := epsilonOf(t, privacy.RDP{}, m, 1, 1e-6).Epsilon
		if got > tc.eps*(1+1e-3) || got < tc.eps*(1-1e-2) {
			t.Errorf("%+v: epsilon %.8g", tc, got)
		}
		// Theorem 6 by hand at one order.
		const order = 9.0
		logDelta, _ := gaussian.Profile(tc.mu, math.Log(order/(order-1)))
		want := order*tc.mu*tc.mu/2 + tc.mean*math.Exp(logDelta) + math.Log(tc.mean)/(order-1)
		if rho := m.RenyiCurve().RDP(order); privacytest.RelErr(rho, want) > 1e-8 {
			t.Errorf("%+v: rdp %.12g, want %.12g", tc, rho, want)
		}
	}
	if err := (PoissonSelection{nil, 0, -1}).Validate(); len(privacy.FieldErrors(err)) != 3 {
		t.Errorf("errors %v", err)
	}
	if err := (PoissonSelection{privacy.Gaussian{Sensitivity: 0, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1}).Validate(); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("errors %v", err)
	}
}

// TestRepeatedSelectionOfPure: a pure ε-DP base gives at most (2+η)·ε.
func TestRepeatedSelectionOfPure(t *testing.T) {
	for _, eta := range []float64{0, 0.5, 1, 2} {
		m := RepeatedSelection{privacy.Laplace{Sensitivity: 1, Scale: 5, Neighbours: privacy.ReplaceOne}, 1, eta, 0.01}
		limit := m.RenyiCurve().RDP(1e9)
		if limit > (2+eta)*0.2+1e-6 {
			t.Errorf("eta %g: %g at a large order", eta, limit)
		}
	}
	if err := (RepeatedSelection{nil, 0, -1, math.NaN()}).Validate(); len(privacy.FieldErrors(err)) != 4 {
		t.Errorf("errors %v", err)
	}
	if err := (RepeatedSelection{privacy.Gaussian{Sensitivity: 0, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, 0.5}).Validate(); len(privacy.FieldErrors(err)) != 1 {
		t.Errorf("errors %v", err)
	}
}

// TestSelectionGamma: closed forms of the geometric distribution, E[K] = 1/γ, and of η = 2,
// E[K] = 2/(γ(1 + γ)); elsewhere the mean itself, from above.
func TestSelectionGamma(t *testing.T) {
	for _, tc := range []struct{ eta, mean, gamma float64 }{
		{1, 10, 0.1}, {1, 1e6, 1e-6}, {1, 1.5, 2.0 / 3},
		{2, 10, (math.Sqrt(1+8.0/10) - 1) / 2}, {0, 10, 0.0269183}, {0, 100, 0.00154212}, {0.5, 10, 0.0625},
	} {
		got, err := SelectionGamma(tc.eta, tc.mean)
		if err != nil || privacytest.RelErr(got, tc.gamma) > 5e-6 || tc.eta >= 1 && privacytest.RelErr(got, tc.gamma) > 1e-11 {
			t.Errorf("eta %g, mean %g: gamma %.12g, %v, want %.12g", tc.eta, tc.mean, got, err, tc.gamma)
		}
	}
	for _, eta := range []float64{-0.9, -0.5, -0.01, 0, 1e-9, 0.3, 1, 5, 50} {
		for _, mean := range []float64{1 + 1e-9, 1.01, 2, 7, 300} {
			gamma, err := SelectionGamma(eta, mean)
			if err != nil {
				t.Errorf("eta %g, mean %g: %v", eta, mean, err)
				continue
			}
			got := RepeatedSelection{Eta: eta, Gamma: gamma}.MeanRuns()
			if got < mean*(1-1e-14) || got > mean*(1+1e-9) {
				t.Errorf("eta %g: gamma %g gives a mean of %.15g, want %.15g", eta, gamma, got, mean)
			}
		}
	}
	for _, tc := range []struct {
		eta, mean float64
		field     string
	}{{-1, 2, "eta"}, {math.NaN(), 2, "eta"}, {1, 1, "mean"}, {1, math.Inf(1), "mean"}, {-0.999, 1e9, "mean"}} {
		_, err := SelectionGamma(tc.eta, tc.mean)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != tc.field {
			t.Errorf("eta %g, mean %g: error %v", tc.eta, tc.mean, err)
		}
	}
}

// TestNegativeShape: the mean and the probability of one candidate by summing the
// weights P(K = k) ∝ (1−γ)^k·Γ(k+η)/k! of the truncated negative binomial distribution.
func TestNegativeShape(t *testing.T) {
	const eta, gamma = -0.5, 0.2
	var total, mean float64
	for k := 1; k < 500; k++ {
		gammaRatio, _ := math.Lgamma(float64(k) + eta)
		factorial, _ := math.Lgamma(float64(k) + 1)
		weight := math.Exp(gammaRatio - factorial + float64(k)*math.Log1p(-gamma))
		total += weight
		mean += float64(k) * weight
	}
	m := RepeatedSelection{Base: privacy.Gaussian{Sensitivity: 0.1, StandardDeviation: 1, Neighbours: privacy.AddRemove}, Steps: 1, Eta: eta, Gamma: gamma}
	if got := m.MeanRuns(); privacytest.RelErr(got, mean/total) > 1e-12 {
		t.Errorf("mean %.15g, want %.15g", got, mean/total)
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
}
