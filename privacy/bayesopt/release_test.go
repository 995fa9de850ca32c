package bayesopt

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// The choice is distributed like the exponential mechanism, and the maximum has Laplace noise,
// both with the corrected sensitivities.
func TestNoisyRelease(t *testing.T) {
	a := Noisy{Candidates: 3, Evaluations: 10, Epsilon: 20, Delta: 0.05, Noise: 0.1, Correlation: 0.99, InformationGain: 5}
	s, err := a.Scales()
	require.NoError(t, err)
	const runs = 40_000
	means := []float64{0.5, -1, 0}
	source := noise.Seeded(9)
	counts, above, absolute := make([]float64, 3), 0.0, 0.0
	for range runs {
		chosen, statement, err := a.ReleaseCandidate(source, means)
		if err != nil || statement.Condition != Conditional {
			t.Fatal(statement, err)
		}
		counts[chosen]++
		best, statement, err := a.ReleaseMaximum(source, 2)
		if err != nil || statement.Epsilon != 20 || statement.Delta != 0.05 {
			t.Fatal(statement, err)
		}
		absolute += math.Abs(best - 2)
		if best > 2 {
			above++
		}
	}
	total := 0.0
	for _, m := range means {
		total += math.Exp(20 * m / (2 * s.ChoiceSensitivity))
	}
	for i, m := range means {
		p := math.Exp(20*m/(2*s.ChoiceSensitivity)) / total
		if math.Abs(counts[i]/runs-p) > 5*math.Sqrt(p*(1-p)/runs) {
			t.Errorf("candidate %d: %g, want %g", i, counts[i]/runs, p)
		}
	}
	if scale := absolute / runs; math.Abs(scale-s.LaplaceScale) > 5*s.LaplaceScale/math.Sqrt(runs) {
		t.Errorf("mean magnitude %g, want %g", scale, s.LaplaceScale)
	}
	if math.Abs(above/runs-0.5) > 5*0.5/math.Sqrt(runs) {
		t.Errorf("share above: %g", above/runs)
	}
}

func TestNoisyReleaseErrors(t *testing.T) {
	a := Noisy{Candidates: 2, Evaluations: 10, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.99}
	for _, means := range [][]float64{{1}, {1, math.NaN()}, {math.Inf(1), 0}} {
		_, _, err := a.ReleaseCandidate(noise.Seeded(1), means)
		if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != "means" {
			t.Errorf("%v: %v", means, err)
		}
	}
	_, _, err := a.ReleaseMaximum(noise.Seeded(1), math.Inf(-1))
	if fields := privacy.FieldErrors(err); len(fields) != 1 || fields[0].Field != "best" {
		t.Errorf("no maximum: %v", err)
	}
	a.Epsilon = 0
	if _, _, err := a.ReleaseCandidate(noise.Seeded(1), []float64{0, 0}); err == nil {
		t.Error("no ε")
	}
	if _, _, err := a.ReleaseMaximum(noise.Seeded(1), 0); err == nil {
		t.Error("no ε")
	}
}

// Both releases of Algorithm 1 are audited where its assumption holds: on posterior means,
// and on maxima, that are as far apart as the corrected sensitivities allow.
func TestNoisyAudit(t *testing.T) {
	a := Noisy{Candidates: 2, Evaluations: 10, Epsilon: 1, Delta: 0.05, Noise: 0.1, Correlation: 0.99, InformationGain: 5}
	s, err := a.Scales()
	require.NoError(t, err)
	broken := a
	broken.Epsilon = 2
	source := noise.Seeded(10)
	// The first candidate is chosen rarely, and e^−ε as often when both means move.
	candidate := func(a Noisy) func(bool) bool {
		const handicap = 4
		first, second := []float64{-handicap * s.ChoiceSensitivity, 0}, []float64{-(handicap + 1) * s.ChoiceSensitivity, s.ChoiceSensitivity}
		return func(isSecond bool) bool {
			means := first
			if isSecond {
				means = second
			}
			chosen, _, err := a.ReleaseCandidate(source, means)
			require.NoError(t, err)
			return chosen == 0
		}
	}
	maximum := func(a Noisy) func(bool) bool {
		return func(isSecond bool) bool {
			best := 0.0
			if isSecond {
				best = s.MaximumSensitivity
			}
			released, _, err := a.ReleaseMaximum(source, best)
			require.NoError(t, err)
			return released < 0
		}
	}
	for name, event := range map[string]func(Noisy) func(bool) bool{"candidate": candidate, "maximum": maximum} {
		t.Run(name, func(t *testing.T) {
			privacytest.Audit{Epsilon: a.Epsilon, Runs: 100_000, Power: 0.8, Event: event(a), Broken: event(broken)}.Check(t)
		})
	}
}
