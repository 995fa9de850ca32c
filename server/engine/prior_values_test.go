package engine_test

import (
	"fmt"
	"math"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// clipSpec is a study of an error that depends on x in [0, 1] and, if it varies clip, on that in
// [0.1, 10]. Its other objective is x itself.
func clipSpec(variesClip bool) *dparetov1.StudySpec {
	parameter := func(id string, least, most float64, scale dparetov1.Scale) *dparetov1.ParameterSpec {
		return &dparetov1.ParameterSpec{
			Id: id, Scale: scale, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Min: least, Max: most}},
		}
	}
	spec := &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{parameter("x", 0, 1, dparetov1.Scale_SCALE_LINEAR)},
		Metrics: []*dparetov1.MetricSpec{
			{
				Id: "cost", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(2.0),
				Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{Function: &dparetov1.ComputedSource_Expression{Expression: "x"}}},
			},
			{
				Id: "error", Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE,
				Transform: dparetov1.Transform_TRANSFORM_IDENTITY, ReferenceValue: new(3.0),
				Source: &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{}},
			},
		},
		Seed: new(uint64(1)),
	}
	if variesClip {
		spec.Parameters = append(spec.Parameters, parameter("clip", 0.1, 10, dparetov1.Scale_SCALE_LOG))
	}
	return spec
}

// clipError is the error at a configuration.
func clipError(x, clip float64) float64 {
	return math.Cos(2*math.Pi*x) + 0.5*math.Pow(math.Log10(clip), 2) + 1
}

// A study over x and clip learns from one over x alone what the error is at the clip of that, where it
// has no trial of its own.
func TestPriorValuesEnterTheModel(t *testing.T) {
	f := servertest.Start(t)
	const fixed = 0.5
	add := func(study string, parameters map[string]*dparetov1.Value, y float64) {
		t.Helper()
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: parameters, FinalMeasurement: servertest.Measurement(0, y),
		}})))
	}
	old := f.Create("old", clipSpec(false))
	for i := range 17 {
		x := float64(i) / 16
		add(old, map[string]*dparetov1.Value{"x": servertest.DoubleValue(x)}, clipError(x, fixed))
	}
	// wrong returns the largest error of the medians at clip, and the widest interval.
	wrong := func(id string, change func(*dparetov1.StudySpec)) (largest, widest float64) {
		t.Helper()
		n := 0
		spec := clipSpec(true)
		spec.Algorithm = &dparetov1.AlgorithmSpec{InitialTrials: 1}
		change(spec)
		study := f.Create(id, spec)
		for i := range 6 {
			x, clip := float64(i)/5, 2+float64(i)
			add(study, map[string]*dparetov1.Value{"x": servertest.DoubleValue(x), "clip": servertest.DoubleValue(clip)}, clipError(x, clip))
		}
		request := &dparetov1.SuggestTrialsRequest{Parent: study, WorkerId: "w", Count: 5}
		for _, x := range []float64{0.1, 0.3, 0.5, 0.7, 0.9} {
			request.Conditions = append(request.Conditions, &dparetov1.SuggestionCondition{
				FixedParameters: map[string]*dparetov1.Value{"x": servertest.DoubleValue(x), "clip": servertest.DoubleValue(fixed)},
			})
		}
		resp, err := f.Studies.SuggestTrials(t.Context(), request)
		if err != nil || len(resp.GetTrials()) != 5 {
			t.Fatalf("%v, %v", resp, err)
		}
		for _, trial := range resp.GetTrials() {
			expected := trial.GetProvenance().GetPredictions()["error"]
			if expected == nil {
				continue // a configuration of the initial design
			}
			n++
			largest = max(largest, math.Abs(expected.GetMedian()-clipError(trial.GetParameters()["x"].GetDoubleValue(), fixed)))
			widest = max(widest, expected.GetUpper()-expected.GetLower())
		}
		if n < 2 {
			t.Fatalf("%s: %d predictions", id, n)
		}
		return largest, widest
	}
	without, wide := wrong("without", func(*dparetov1.StudySpec) {})
	with, narrow := wrong("with", func(s *dparetov1.StudySpec) {
		s.PriorStudies = []string{old}
		s.PriorValues = map[string]*dparetov1.Value{"clip": servertest.DoubleValue(fixed)}
	})
	said := fmt.Sprintf("medians are wrong by %.3f without a prior, and by %.3f with one; intervals are %.3f and %.3f wide", without, with, wide, narrow)
	t.Log(said)
	if !(with < without/3 && narrow < wide) {
		t.Error(said)
	}
	// The prior values come back with an export.
	records := f.Export("studies/with")
	if got := records[0].GetStudy().GetStudy().GetSpec().GetPriorValues()["clip"].GetDoubleValue(); got != fixed {
		t.Errorf("exported prior value %g", got)
	}
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: "studies/with"})))
	if _, err := f.ImportRecords(records); err != nil {
		t.Error(err)
	}
}
