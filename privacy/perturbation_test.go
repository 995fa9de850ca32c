package privacy

import (
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

func TestOutputPerturbation(t *testing.T) {
	// Evaluated independently for logistic regression, B = 1, δ = 1e-6; with the
	// radius 1/γ of the original experiments and without projection.
	for _, tc := range []struct {
		n                                     int64
		gamma, sigma, wu, epsWu, tight, epsIs float64
	}{
		{30956, 0.0001, 0.1, 1.2921566, 144.05444, 0.6460783, 50.833944},
		{30956, 0.001, 0.1, 0.12921566, 6.5592895, 0.06460783, 2.9915242},
		{30956, 0.1, 0.1, 0.0012921566, 0.04438121, 0.0006460783, 0.021003746},
		{30956, 1, 10, 0.00012921566, 1.3418596e-05, 6.460783e-05, 4.2143819e-06},
		{1000, 0.01, 1, 0.4, 1.7656482, 0.2, 0.83411755},
		{40000, 0.001, 0.5, 0.1, 0.83411755, 0.05, 0.39685738},
	} {
		wu := OutputPerturbation{tc.n, tc.gamma, 1, tc.sigma, 1 / tc.gamma}
		tight := OutputPerturbation{tc.n, tc.gamma, 1, tc.sigma, 0}
		if privacytest.RelErr(wu.L2Sensitivity(), tc.wu) > 1e-7 || privacytest.RelErr(tight.L2Sensitivity(), tc.tight) > 1e-7 {
			t.Errorf("%+v: sensitivities %g, %g", tc, wu.L2Sensitivity(), tight.L2Sensitivity())
		}
		for _, a := range []Accountant{GDP{}, Exact{}} {
			if got := epsilonOf(t, a, wu, 1, 1e-6).Epsilon; privacytest.RelErr(got, tc.epsWu) > 1e-7 {
				t.Errorf("%+v: %s epsilon %.9g", tc, a.Name(), got)
			}
			if got := epsilonOf(t, a, tight, 1, 1e-6).Epsilon; privacytest.RelErr(got, tc.epsIs) > 1e-7 {
				t.Errorf("%+v: %s epsilon %.9g without projection", tc, a.Name(), got)
			}
		}
	}
	if err := (OutputPerturbation{0, -1, 0, 0, -1}).Validate(); len(FieldErrors(err)) != 5 {
		t.Errorf("errors %v", err)
	}
}

func TestObjectivePerturbation(t *testing.T) {
	// β and τ − λ evaluated independently: original, continuous, rank-one with
	// split 1/2 and 1/10.
	for _, tc := range []struct {
		n                       int64
		lambda, eps             float64
		beta, delta, betaC, dC  float64
		betaHalf, dHalf, beta10 float64
		d10                     float64
	}{
		{4, 0.05, 1, 0.25, 0.17005073, 0.25, 0.17005073, 0.25, 0.04634338, 0.45, 0.54427075},
		{4, 0.05, 2, 0.18906978, 0, 0.5, 0.04634338, 0.59453489, 0, 0.9, 0.23229097},
		{4, 0.05, 4, 1.1890698, 0, 1.1890698, 0, 1.5945349, 0, 1.8, 0.077077799},
		{10000, 1e-6, 0.1, 0.025, 0.00098655208, 0.025, 0.00098655208, 0.025, 0.00048660416, 0.045, 0.0024865208},
		{10000, 1e-3, 0.1, 0.025307387, 0, 0.025307387, 0, 0.037653694, 0, 0.045, 0.0014875208},
		{10000, 1e-3, 1, 0.47530739, 0, 0.47530739, 0, 0.48765369, 0, 0.48765369, 0},
	} {
		check := func(rule ObjectiveCalibration, split, beta, delta float64) {
			t.Helper()
			m := ObjectivePerturbation{tc.n, tc.lambda, 0.25, tc.eps, rule, split}
			gotBeta, tau := m.Calibrate()
			if diff := tau - tc.lambda - delta; privacytest.RelErr(gotBeta, beta) > 1e-7 || diff > 1e-7*tau || diff < -1e-7*tau {
				t.Errorf("%+v: beta %.9g, added regularisation %.9g, want %.9g and %.9g", m, gotBeta, tau-tc.lambda, beta, delta)
			}
			if got := epsilonOf(t, Pure{}, m, 3, 0).Epsilon; got != 3*tc.eps {
				t.Errorf("%+v: three runs cost %g", m, got)
			}
		}
		check(Chaudhuri, 0, tc.beta, tc.delta)
		check(ContinuousChaudhuri, 0, tc.betaC, tc.dC)
		check(RankOne, 0.5, tc.betaHalf, tc.dHalf)
		check(RankOne, 0.1, tc.beta10, tc.d10)
	}
	beta, tau := ObjectivePerturbation{1000, 1e-5, 0.25, 1, RankOne, 0}.Calibrate()
	beta2, tau2 := ObjectivePerturbation{1000, 1e-5, 0.25, 1, RankOne, 0.05}.Calibrate()
	if beta != beta2 || tau != tau2 {
		t.Errorf("default split: %g, %g; 0.05: %g, %g", beta, tau, beta2, tau2)
	}
	if err := (ObjectivePerturbation{0, 0, 0, 0, 9, 1}).Validate(); len(FieldErrors(err)) != 6 {
		t.Errorf("errors %v", err)
	}
}
