package privacy

import (
	"fmt"
	"math"
	"testing"
)

// TestRepeatedSelection: totals for a Gaussian base, δ = 1e-6, as computed by an
// independent implementation on a fixed list of orders, to its precision.
func TestRepeatedSelection(t *testing.T) {
	for _, tc := range []struct{ mu, eta, gamma, mean, eps float64 }{
		{0.1, 1, 0.1, 10, 0.898080}, {0.1, 0, 0.00154212, 100, 0.878410}, {0.25, 1, 0.1, 10, 2.271369},
		{0.25, 0, 0.0269183, 10, 1.901966}, {0.25, 0.5, 0.0625, 10, 2.097049}, {0.25, 2, 0.17082, 10, 2.577066},
		{0.25, 1, 0.01, 100, 2.824108}, {0.5, 1, 0.01, 100, 5.646345}, {1, 0, 0.0269183, 10, 7.869161},
	} {
		m := RepeatedSelection{Gaussian{tc.mu, 1, AddRemove}, 1, tc.eta, tc.gamma}
		if got := m.MeanRuns(); relErr(got, tc.mean) > 1e-5 {
			t.Errorf("%+v: mean %g", tc, got)
		}
		if got := epsilonOf(t, RDP{}, m, 1, 1e-6).Epsilon; got > tc.eps*(1+1e-6) || got < tc.eps*(1-2e-3) {
			t.Errorf("%+v: epsilon %.8g", tc, got)
		}
	}
}

func TestSharedRepeatedSelection(t *testing.T) {
	tb := sharedVectors(t, "randtune_public.csv")
	for _, row := range tb.rows {
		if tb.text(row, "eta") == "inf" || tb.text(row, "base") != "wor_thm27" {
			continue
		}
		var base FixedSizeGaussian
		var steps int64
		if _, err := fmt.Sscanf(tb.text(row, "base_params"), "n=%d;m=%d;sigma=%g;steps=%d",
			&base.DatasetSize, &base.BatchSize, &base.NoiseMultiplier, &steps); err != nil {
			t.Fatal(err)
		}
		m := RepeatedSelection{base, steps, tb.float(row, "eta"), tb.float(row, "gamma")}
		got := epsilonOf(t, RDP{}, m, 1, tb.float(row, "delta")).Epsilon
		if want := tb.float(row, "eps_dense"); relErr(got, want) > 1e-4 {
			t.Errorf("%s: epsilon %.9g, want %.9g", row[0], got, want)
		}
	}
}

// TestRepeatedSelectionOfPure: a pure ε-DP base gives at most (2+η)·ε.
func TestRepeatedSelectionOfPure(t *testing.T) {
	for _, eta := range []float64{0, 0.5, 1, 2} {
		m := RepeatedSelection{Laplace{1, 5, ReplaceOne}, 1, eta, 0.01}
		limit := m.RenyiCurve().RDP(1e9)
		if limit > (2+eta)*0.2+1e-6 {
			t.Errorf("eta %g: %g at a large order", eta, limit)
		}
	}
	if err := (RepeatedSelection{nil, 0, -1, math.NaN()}).Validate(); len(FieldErrors(err)) != 4 {
		t.Errorf("errors %v", err)
	}
	if err := (RepeatedSelection{Gaussian{0, 1, AddRemove}, 1, 1, 0.5}).Validate(); len(FieldErrors(err)) != 1 {
		t.Errorf("errors %v", err)
	}
}
