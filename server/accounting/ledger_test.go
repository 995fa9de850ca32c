package accounting

import (
	"context"
	"errors"
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
)

// Many different Gaussian mechanisms, more than are composed exactly, are bounded by Rényi
// divergences: above the exact ε of one with the root of the sum of the squares of μ
// (Balle and Wang 2018, Theorem 8), and not by much.
func TestLedgerOfManyMechanisms(t *testing.T) {
	environment, err := expression.NewEnvironment([]expression.Variable{{Name: "sigma", Type: expression.Double}})
	require.NoError(t, err)
	const delta = 1e-5
	var fields invalid.Fields
	f := Compile("privacy", &fields, environment, &dparetov1.PrivacySpec{
		Mechanism: &dparetov1.PrivacySpec_Gaussian{Gaussian: &dparetov1.GaussianMechanism{Sensitivity: "1", StandardDeviation: "sigma"}},
		Delta:     delta, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE,
	})
	if f == nil {
		t.Fatal(fields.Err())
	}
	l := NewLedger(f)
	squares := 0.0
	for i := range 1200 {
		sigma := 20 + 0.1*float64(i)
		require.NoError(t, l.Charge(map[string]any{"sigma": sigma}, 2))
		squares += 2 / (sigma * sigma)
	}
	exact := func(epsilon float64) float64 {
		mu := math.Sqrt(squares)
		phi := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
		return phi(mu/2-epsilon/mu) - math.Exp(epsilon)*phi(-mu/2-epsilon/mu)
	}
	fixed, err := l.Composed(t.Context(), delta)
	require.NoError(t, err)
	if e := fixed.GetEpsilon(); l.Mechanisms() != 1200 || fixed.GetSteps() != 2400 || exact(e) > delta || exact(0.9*e) < delta ||
		fixed.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_RDP {
		t.Errorf("ε = %g has δ = %g; %v", e, exact(e), fixed)
	}
	adaptive, err := l.Adaptive(t.Context(), delta)
	if err != nil || !(adaptive.GetEpsilon() > fixed.GetEpsilon() && adaptive.GetEpsilon() < 1.3*fixed.GetEpsilon()) ||
		adaptive.GetAdjacency() != dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
		t.Errorf("%v, %v", adaptive, err)
	}
	if err := l.Charge(map[string]any{"sigma": -1.0}, 1); err == nil || l.Mechanisms() != 1200 {
		t.Errorf("a charge for nothing: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.Adaptive(ctx, delta); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}
