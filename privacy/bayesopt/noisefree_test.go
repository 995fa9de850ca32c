package bayesopt

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// Independent computation for A = 1, τ = 0.1 and d = 2.
func TestNoiseFree(t *testing.T) {
	a := NoiseFree{Candidates: 100, Epsilon: 0.5, Delta: 0.05, Correlation: 0.95, Dimension: 2, A: 1, Tau: 0.1}
	s, err := a.Scales()
	require.NoError(t, err)
	near(t, "regret", s.Regret, 0.7865, 4)
	near(t, "regret", s.Sensitivity-s.Distance, 0.7865, 4)
	if want := 2 * math.Sqrt(0.05*math.Log(4000)); math.Abs(s.Distance-want) > 1e-12 {
		t.Errorf("c = %g, want %g", s.Distance, want)
	}
	if math.Abs(s.LaplaceScale-2*s.Sensitivity) > 1e-9 {
		t.Errorf("scale %g of sensitivity %g", s.LaplaceScale, s.Sensitivity)
	}
	if st := a.Statement(); st.Condition != Conditional || len(st.Assumptions) != 2 {
		t.Errorf("statement without its conditions: %+v", st)
	}
	for field, change := range map[string]func(*NoiseFree){
		"candidates":  func(a *NoiseFree) { a.Candidates = 0 },
		"epsilon":     func(a *NoiseFree) { a.Epsilon = 0 },
		"delta":       func(a *NoiseFree) { a.Delta = 1 },
		"correlation": func(a *NoiseFree) { a.Correlation = -0.1 },
		"dimension":   func(a *NoiseFree) { a.Dimension = 0 },
		"a":           func(a *NoiseFree) { a.A = 0 },
		"tau":         func(a *NoiseFree) { a.Tau = 0 },
	} {
		wrong := a
		change(&wrong)
		_, err := wrong.Scales()
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("want an error for %s, got %v", field, err)
		}
	}
}
