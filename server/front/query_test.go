package front_test

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

func TestQueryFront(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SparseSpec())
	query := func(req *dparetov1.QueryFrontRequest) *dparetov1.QueryFrontResponse {
		t.Helper()
		req.Name = study
		resp, err := f.Fronts.QueryFront(t.Context(), req)
		require.NoError(t, err)
		return resp
	}
	atMost := map[string]float64{"epsilon": 3}
	if resp := query(&dparetov1.QueryFrontRequest{Bounds: atMost}); resp.GetReachable() || resp.GetParameters() != nil || len(resp.GetWarnings()) != 1 {
		t.Errorf("an empty study answers %v", resp)
	}
	f.TrialsOfSparse(study)

	t.Run("smallest error", func(t *testing.T) {
		resp := query(&dparetov1.QueryFrontRequest{Bounds: atMost})
		cutoff, noise := resp.GetParameters()["cutoff"].GetIntValue(), resp.GetParameters()["noise_scale"].GetDoubleValue()
		epsilon := resp.GetPrivacy().GetEpsilon()
		if !resp.GetReachable() || resp.GetOptimize() != "error" || epsilon > 3 || epsilon < 3*(1-1e-6) ||
			math.Abs(epsilon-servertest.SparseEpsilon(cutoff, noise)) > 1e-12*epsilon || resp.GetReached()["epsilon"] != epsilon {
			t.Errorf("%v", resp)
		}
		// The truth: at ε = 3 the cutoff of 10 is best, with an error of 0.3.
		p := resp.GetPredictions()["error"]
		if truth := servertest.SparseError(cutoff, noise); truth > 0.31 || math.Abs(p.GetMedian()-truth) > 0.02 || resp.GetReached()["error"] != p.GetMedian() {
			t.Errorf("error %.4f, expected %v, best 0.3", truth, p)
		}
		if len(resp.GetTrials()) != 0 || resp.GetRuns() != 0 || len(resp.GetWarnings()) != 1 || resp.GetWarnings()[0].GetCode() != "NOT_MEASURED" {
			t.Errorf("a prediction passes for a measurement: %v", resp)
		}
		if again := query(&dparetov1.QueryFrontRequest{Bounds: atMost}); cmp.Diff(resp, again, protocmp.Transform()) != "" {
			t.Errorf("again: %v", again)
		}
		f.Restart()
		if again := query(&dparetov1.QueryFrontRequest{Bounds: atMost}); cmp.Diff(resp, again, protocmp.Transform()) != "" {
			t.Errorf("after a restart: %v", again)
		}
	})
	t.Run("measured only", func(t *testing.T) {
		resp := query(&dparetov1.QueryFrontRequest{Bounds: atMost, MeasuredOnly: true})
		if !resp.GetReachable() || len(resp.GetTrials()) != 1 || resp.GetRuns() != 2 || len(resp.GetWarnings()) != 0 || resp.GetPrivacy().GetEpsilon() > 3 {
			t.Errorf("%v", resp)
		}
		trial, err := f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: resp.GetTrials()[0]})
		if err != nil || cmp.Diff(trial.GetTrial().GetParameters(), resp.GetParameters(), protocmp.Transform()) != "" {
			t.Errorf("%v is not of %v, %v", resp, trial, err)
		}
	})
	t.Run("smallest epsilon", func(t *testing.T) {
		resp := query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.2}})
		// 0.1 + 0.8/(1+ε) = 0.2 at ε = 7.
		if epsilon := resp.GetPrivacy().GetEpsilon(); !resp.GetReachable() || resp.GetOptimize() != "epsilon" || math.Abs(epsilon-7) > 0.7 {
			t.Errorf("%v", resp)
		}
		sure := query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.2}, Confidence: 0.95})
		if sure.GetPrivacy().GetEpsilon() < resp.GetPrivacy().GetEpsilon() || sure.GetReached()["error"] > 0.2 ||
			sure.GetPredictions()["error"].GetMedian() >= sure.GetReached()["error"] {
			t.Errorf("with confidence: %v", sure)
		}
	})
	t.Run("not reachable", func(t *testing.T) {
		resp := query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.01}})
		if resp.GetReachable() || !(resp.GetReached()["error"] > 0.01 && resp.GetReached()["error"] < 0.2) || len(resp.GetParameters()) != 2 {
			t.Errorf("%v", resp)
		}
		resp = query(&dparetov1.QueryFrontRequest{Bounds: map[string]float64{"error": 0.15, "epsilon": 2}})
		if resp.GetReachable() || resp.GetReached()["error"] <= 0.15 && resp.GetReached()["epsilon"] <= 2 {
			t.Errorf("%v", resp)
		}
	})
	t.Run("refused", func(t *testing.T) {
		for field, req := range map[string]*dparetov1.QueryFrontRequest{
			"bounds":            {},
			`bounds["cutoff"]`:  {Bounds: map[string]float64{"cutoff": 1}},
			`bounds["epsilon"]`: {Bounds: map[string]float64{"epsilon": math.Inf(1)}},
			`bounds["epsilon"]: must be positive and finite, is 0`:                {Bounds: map[string]float64{"epsilon": 0}},
			`bounds["epsilon"]: must be positive and finite, is -1`:               {Bounds: map[string]float64{"epsilon": -1}},
			`bounds["error"]: must be in [0, 1] under TRANSFORM_LOGIT, is -1e+17`: {Bounds: map[string]float64{"error": -1e17}},
			"confidence":      {Bounds: atMost, Confidence: 1},
			"optimize":        {Bounds: atMost, Optimize: "cutoff"},
			"studies/{study}": {Name: "svt"},
		} {
			if req.GetName() == "" {
				req.Name = study
			}
			_, err := f.Fronts.QueryFront(t.Context(), req)
			servertest.WantCode(t, err, codes.InvalidArgument, field)
		}
	})
}

func TestPredictMetrics(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SparseSpec())
	req := &dparetov1.PredictMetricsRequest{Name: study, Configurations: []*dparetov1.Configuration{
		{Parameters: servertest.Sparse(10, 9)}, {Parameters: servertest.Sparse(20, 30)},
	}}
	resp, err := f.Fronts.PredictMetrics(t.Context(), req)
	if err != nil || len(resp.GetPredictions()) != 2 || len(resp.GetPredictions()[0].GetPredictions()) != 0 || len(resp.GetWarnings()) != 1 {
		t.Fatalf("of an empty study: %v, %v", resp, err)
	}
	if got, want := resp.GetPredictions()[1].GetComputedMetrics()["epsilon"].GetValue(), servertest.SparseEpsilon(20, 30); math.Abs(got-want) > 1e-12*want {
		t.Errorf("ε = %v, want %v", got, want)
	}
	f.TrialsOfSparse(study)
	// The first is a configuration of the posterior front.
	front := f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	point := front.GetPoints()[len(front.GetPoints())/2]
	req.Configurations = append(req.Configurations, &dparetov1.Configuration{Parameters: point.GetParameters()})
	if resp, err = f.Fronts.PredictMetrics(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	for i, configuration := range []struct {
		cutoff int64
		noise  float64
	}{{10, 9}, {20, 30}} {
		p := resp.GetPredictions()[i].GetPredictions()["error"]
		truth := servertest.SparseError(configuration.cutoff, configuration.noise)
		if !(p.GetLower() < p.GetMedian() && p.GetMedian() < p.GetUpper()) || math.Abs(p.GetMedian()-truth) > 0.03 {
			t.Errorf("%v: %v, truth %v", configuration, p, truth)
		}
		if len(resp.GetPredictions()[i].GetPredictions()) != 1 {
			t.Error("a computed metric has a prediction")
		}
	}
	got, want := resp.GetPredictions()[2].GetPredictions()["error"], point.GetValues()["error"]
	if got.GetMedian() != want.GetValue() || got.GetLower() != want.GetLower() || got.GetUpper() != want.GetUpper() {
		t.Errorf("%v, the front says %v", got, want)
	}
	if resp.GetRevision() != front.GetRevision() {
		t.Errorf("revision %d, the front has %d", resp.GetRevision(), front.GetRevision())
	}
	req.Configurations[1] = &dparetov1.Configuration{Parameters: servertest.Sparse(99, 9)}
	_, err = f.Fronts.PredictMetrics(t.Context(), req)
	servertest.WantCode(t, err, codes.InvalidArgument, `configurations[1].parameters["cutoff"]`)
	_, err = f.Fronts.PredictMetrics(t.Context(), &dparetov1.PredictMetricsRequest{Name: study})
	servertest.WantCode(t, err, codes.InvalidArgument, "configurations")
}

// A metric without noise that changes its value from one configuration to the next follows no model. What is reported is what was
// measured, without intervals and confidence, and says so.
func TestReportsWithoutModel(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	metric := func(id string, reference float64) *dparetov1.MetricSpec {
		return &dparetov1.MetricSpec{
			Id: id, Role: dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE, Goal: dparetov1.Goal_GOAL_MINIMIZE, ReferenceValue: &reference,
			Transform: dparetov1.Transform_TRANSFORM_IDENTITY,
			Source:    &dparetov1.MetricSpec_Reported{Reported: &dparetov1.ReportedSource{Noise: dparetov1.Noise_NOISE_NONE}},
		}
	}
	study := f.Create("rough", &dparetov1.StudySpec{
		Parameters: []*dparetov1.ParameterSpec{{Id: "x", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: &dparetov1.ParameterSpec_DoubleDomain{DoubleDomain: &dparetov1.DoubleDomain{Max: 1}}}},
		Metrics:    []*dparetov1.MetricSpec{metric("size", 2), metric("loss", 3)},
	})
	value := func(v float64) *dparetov1.MetricValue { return &dparetov1.MetricValue{Value: &v} }
	for i := range 60 {
		x := float64(i) / 60
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters:       map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}},
			FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"size": value(x), "loss": value(2 - float64(i%2))}},
		}})))
	}
	hasCodes := func(warnings []*dparetov1.Warning, codes ...string) {
		t.Helper()
		var got []string
		for _, w := range warnings {
			got = append(got, w.GetCode())
		}
		if cmp.Diff(codes, got) != "" {
			t.Errorf("warnings %v, want %v", got, codes)
		}
	}
	front, err := f.Fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: study, Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	require.NoError(t, err)
	hasCodes(front.GetFront().GetWarnings(), "NO_TRUSTED_MODEL")
	if n := len(front.GetFront().GetPoints()); n != 2 {
		t.Errorf("%d points on the front", n)
	}
	for _, p := range front.GetFront().GetPoints() {
		for id, v := range p.GetValues() {
			if v.Lower != nil || v.Upper != nil || v.GetValue() != v.GetObserved() {
				t.Errorf("%s: %v", id, v)
			}
		}
	}
	for _, confidence := range []float64{0.5, 0.9} {
		resp, err := f.Fronts.QueryFront(t.Context(), &dparetov1.QueryFrontRequest{Name: study, Bounds: map[string]float64{"loss": 1.5}, Confidence: confidence, MeasuredOnly: true})
		require.NoError(t, err)
		codes := []string{"NO_TRUSTED_MODEL"}
		if confidence > 0.5 {
			codes = append(codes, "NO_CONFIDENCE")
		}
		hasCodes(resp.GetWarnings(), codes...)
		if resp.GetReachable() != (confidence == 0.5) || resp.GetReached()["loss"] != 1 || len(resp.GetPredictions()) != 0 {
			t.Errorf("confidence %g: %v", confidence, resp)
		}
	}
	predicted, err := f.Fronts.PredictMetrics(t.Context(), &dparetov1.PredictMetricsRequest{Name: study, Configurations: []*dparetov1.Configuration{
		{Parameters: map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.5}}}},
	}})
	if err != nil || len(predicted.GetPredictions()[0].GetPredictions()) != 0 {
		t.Errorf("%v, %v", predicted, err)
	}
	hasCodes(predicted.GetWarnings(), "NO_TRUSTED_MODEL")
}
