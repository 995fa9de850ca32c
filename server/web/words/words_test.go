package words

import (
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// An ε that meets a bound is printed as at least itself and at most the bound, any other rounded up.
func TestEpsilonWithin(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 10_000 {
		epsilon := math.Exp(8*rng.Float64() - 4)
		bound := epsilon * (1 + 2e-3*(rng.Float64()-0.2))
		printed, err := strconv.ParseFloat(EpsilonWithin(epsilon, bound), 64)
		if err != nil || printed < epsilon || epsilon <= bound && printed > bound {
			t.Fatalf("%v within %v is printed as %s", epsilon, bound, EpsilonWithin(epsilon, bound))
		}
	}
	if got := EpsilonWithin(0.03748520081450309, 0.03749); got != "0.03749" {
		t.Errorf("got %s", got)
	}
}

// A bound is called one only where it is known.
func TestGuarantee(t *testing.T) {
	g := &dparetov1.PrivacyGuarantee{Epsilon: 1.00001, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, Accountant: dparetov1.Accountant_ACCOUNTANT_RDP}
	if got := Guarantee(g); !strings.HasPrefix(got, "ε ≤ 1.001, δ = 1e-5, add-remove adjacency, ") || !strings.HasSuffix(got, "accountant, an upper bound") {
		t.Error(got)
	}
	g.Epsilon = math.Inf(1)
	if got := Guarantee(g); got != "no bound on ε is known" {
		t.Error(got)
	}
}

func TestMinus(t *testing.T) {
	for text, want := range map[string]string{"-0.5": "−0.5", "-1e-05": "−1e-05", "1e-05": "1e-05", "": ""} {
		if got := Minus(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}
