package demo

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func TestSparkline(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0, 7}, "▁█"},
		{[]float64{0, 1, 2, 3, 4, 5, 6, 7}, "▁▂▃▄▅▆▇█"},
		{[]float64{3, 3}, "██"},
		{[]float64{0, 50, 51, 52, 53, 54, 55, 56, 57, 57}, "▁▁▂▃▄▅▆▇██"}, // the scale begins at 50
	} {
		if got := sparkline(tt.values); got != tt.want {
			t.Errorf("sparkline(%v) = %s, want %s", tt.values, got, tt.want)
		}
	}
}

func double(x float64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
}

func integer(x int64) *dparetov1.Value {
	return &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: x}}
}

// svtResult returns a result with the given configurations on the front, whose errors are
// what is claimed.
func svtResult(t *testing.T, claimed float64, configurations ...sparsevector.FrontPoint) *result {
	t.Helper()
	content, err := studies.File("svt")
	require.NoError(t, err)
	file, err := studyfile.Parse(content)
	require.NoError(t, err)
	r := &result{
		study: file.Study, elapsed: 3 * time.Second, observed: new(dparetov1.Front),
		front: &dparetov1.Front{
			Objectives: []string{"epsilon", "error"}, Reference: map[string]float64{"epsilon": 10, "error": 1},
			Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR, Hypervolume: 9,
		},
	}
	r.study.Name = "studies/svt"
	for _, c := range configurations {
		r.front.Points = append(r.front.Points, &dparetov1.FrontPoint{
			Trial:      "studies/svt/trials/1",
			Parameters: map[string]*dparetov1.Value{"cutoff": integer(c.Cutoff), "noise_scale": double(c.NoiseScale)},
			Values: map[string]*dparetov1.FrontValue{
				"epsilon": {Value: sparsevector.Epsilon(c.Cutoff, c.NoiseScale)}, "error": {Value: claimed},
			},
		})
	}
	return r
}

// The true hypervolume takes the expected errors of the configurations, whatever errors
// the front claims.
func TestTrueHypervolume(t *testing.T) {
	front := sparsevector.ExactFront(10)
	r := svtResult(t, 0.01, front...)
	r.compareExact()
	if got, want := r.hypervolume(), r.exact.exactHypervolume; math.Abs(got-want) > 1e-9 {
		t.Errorf("the configurations of the exact front have the hypervolume %g, want %g", got, want)
	}
	for i, p := range front {
		if got := r.exact.trueErrors[i]; math.Abs(got-p.Error) > 1e-9 {
			t.Errorf("point %d: true error %g, want %g", i, got, p.Error)
		}
	}
}

func TestRecommendation(t *testing.T) {
	r := svtResult(t, 0.5,
		sparsevector.FrontPoint{Cutoff: 1, NoiseScale: 100},
		sparsevector.FrontPoint{Cutoff: 30, NoiseScale: 100},
		sparsevector.FrontPoint{Cutoff: 30, NoiseScale: 1},
	)
	for i, e := range []float64{0.9, 0.8, 0.1} {
		r.front.Points[i].Values["error"].Value = e
	}
	if got := r.recommendation(1); !strings.Contains(got, "error 0.8000 at ε = 0.8025 with cutoff 30, noise_scale 100.0") {
		t.Errorf("recommendation %q", got)
	}
	if got := r.recommendation(0.01); !strings.Contains(got, "no configuration") {
		t.Errorf("recommendation %q", got)
	}
}

func TestOverTime(t *testing.T) {
	r := new(result)
	if got := r.overTime(); got != "" {
		t.Errorf("without trials: %q", got)
	}
	for i := range 5 {
		r.hypervolumes = append(r.hypervolumes, &dparetov1.HypervolumePoint{Hypervolume: float64(i + 1)})
	}
	if got := r.overTime(); !strings.HasSuffix(got, "\n   1: 1.000  2: 2.000  4: 4.000  5: 5.000\n") {
		t.Errorf("over time: %q", got)
	}
}

func TestFigure(t *testing.T) {
	r := svtResult(t, 0.5, sparsevector.FrontPoint{Cutoff: 30, NoiseScale: 100})
	r.study.Spec.CheckpointParameter = "cutoff"
	third := &dparetov1.MetricSpec{
		Id: "cost", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
	}
	r.study.Spec.Metrics = append(r.study.Spec.Metrics, third)
	measurement := func(step int64, epsilon, mean float64) *dparetov1.Measurement {
		return &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{
			"epsilon": {Value: &epsilon}, "error": {Value: &mean},
		}}
	}
	r.trials = []*dparetov1.Trial{
		{
			State:            dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
			Measurements:     []*dparetov1.Measurement{measurement(1, 0.1, 0.9), measurement(2, 0.2, 0.8)},
			FinalMeasurement: measurement(2, 0.2, 0.8),
		},
		{State: dparetov1.TrialState_TRIAL_STATE_INFEASIBLE},
		{State: dparetov1.TrialState_TRIAL_STATE_ACTIVE, Measurements: []*dparetov1.Measurement{measurement(1, 0.3, 0.7)}},
	}
	f := r.figure()
	if len(f.Points) != 2 || !f.Points[0].Minor || f.Points[1].Minor || f.Points[1].X != 0.2 || f.Points[1].Y != 0.8 {
		t.Errorf("points %+v", f.Points)
	}
	want := []string{
		"ε of one run, pure (δ = 0), replace-one adjacency, closed form",
		"3 trials, hypervolume 9.000, the first 2 of 3 objectives",
	}
	if !slices.Equal(f.Subtitle, want) {
		t.Errorf("subtitle %q", f.Subtitle)
	}
	if !f.X.Log || f.X.Label != "ε of one run" || f.X.Reference != 10 || f.Y.Log || f.Y.Label != "error (ratio)" {
		t.Errorf("axes %+v, %+v", f.X, f.Y)
	}
	r.front.Warnings = []*dparetov1.Warning{{Code: "SEEDED"}}
	if got := r.figure().Subtitle; len(got) != 3 || got[1] != "not for release: trials were seeded, so that no ε holds for them" {
		t.Errorf("subtitle of seeded runs %q", got)
	}
	r.front.Points = append(r.front.Points, &dparetov1.FrontPoint{BeyondReference: true})
	if n := len(r.figure().Front); n != 1 {
		t.Errorf("%d points on the line of the front, want the one within the box", n)
	}
	if p := f.Front[0]; p.Y != 0.5 || p.Lower != 0.5 || p.Upper != 0.5 {
		t.Errorf("front %+v", f.Front)
	}
}
