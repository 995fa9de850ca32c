package analysis_test

import (
	"maps"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// log ε of the sparse vector technique is log (1 + (2C)^⅓)(1 + (2C)^⅔) − log b, so that its variance
// is a sum of two. Integers at the ends of a range have half the mass of others.
func TestImportanceOfComputedMetric(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	resp, err := f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: study})
	require.NoError(t, err)
	if len(resp.GetWarnings()) != 1 || resp.GetWarnings()[0].GetCode() != "NO_MODEL" {
		t.Errorf("warnings %v of a study without results", resp.GetWarnings())
	}
	if len(resp.GetObjectives()) != 1 || resp.GetObjectives()[0].GetTransform() != dparetov1.Transform_TRANSFORM_LOG {
		t.Fatalf("objectives %v", resp.GetObjectives())
	}
	var mean, square float64
	for c := 1.0; c <= 30; c++ {
		weight := 1. / 29
		if c == 1 || c == 30 {
			weight /= 2
		}
		root := math.Cbrt(2 * c)
		v := math.Log((1 + root) * (1 + root*root))
		mean, square = mean+weight*v, square+weight*v*v
	}
	cutoff, noise := square-mean*mean, math.Pow(math.Log(1e4), 2)/12
	want := map[string]float64{"cutoff": cutoff / (cutoff + noise), "noise_scale": noise / (cutoff + noise)}
	o := resp.GetObjectives()[0]
	if v := o.GetVariance(); math.Abs(v.GetValue()-cutoff-noise) > 0.03*(cutoff+noise) || !(v.GetLower() < v.GetUpper()) {
		t.Errorf("variance %v, want %g", v, cutoff+noise)
	}
	for _, p := range o.GetParameters() {
		for _, index := range []*dparetov1.IntervalEstimate{p.GetFirstOrder(), p.GetTotal()} {
			if math.Abs(index.GetValue()-want[p.GetParameter()]) > 0.02 {
				t.Errorf("%s: %v, want %g", p.GetParameter(), index, want[p.GetParameter()])
			}
		}
	}
}

func TestAnalysesOfStudy(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	for i := range 12 {
		noise := math.Pow(10, -1.5+float64(i)/4)
		require.NoError(t, require.ErrOf(f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: study, Trial: &dparetov1.Trial{
			Parameters: servertest.Sparse(int64(1+i*7%12*2), noise), FinalMeasurement: servertest.Measurement(0, servertest.SVTError(noise)),
		}})))
	}
	importance, err := f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: study})
	require.NoError(t, err)
	if len(importance.GetObjectives()) != 2 || len(importance.GetWarnings()) != 0 {
		t.Fatalf("%v", importance)
	}
	errors := importance.GetObjectives()[1].GetParameters()
	if c, n := errors[0].GetTotal().GetValue(), errors[1].GetTotal().GetValue(); !(n > 0.8 && c < n) {
		t.Errorf("an error that depends on the noise alone: total indices %g of the cutoff, %g of the noise", c, n)
	}
	again, err := f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: study})
	if diff := cmp.Diff(importance, again, protocmp.Transform()); err != nil || diff != "" {
		t.Errorf("%v: asked again (-first +second):\n%s", err, diff)
	}

	slices, err := f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: study, Points: 5})
	require.NoError(t, err)
	onFront := false
	for _, p := range f.Front(study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR).GetPoints() {
		onFront = onFront || cmp.Equal(p.GetParameters(), slices.GetParameters(), protocmp.Transform())
	}
	if len(slices.GetSlices()) != 4 || !onFront {
		t.Errorf("%d slices at %v", len(slices.GetSlices()), slices.GetParameters())
	}
	for _, s := range slices.GetSlices() {
		checkSlice(f, study, slices.GetParameters(), s)
	}

	contour, err := f.Analyses().AnalyzeContour(t.Context(), &dparetov1.AnalyzeContourRequest{
		Name: study, Metric: "epsilon", XParameter: "noise_scale", YParameter: "cutoff", Points: 3, Parameters: servertest.Sparse(4, 1),
	})
	require.NoError(t, err)
	if len(contour.GetXValues()) != 3 || len(contour.GetYValues()) != 3 || len(contour.GetPredictions()) != 9 {
		t.Fatalf("%v", contour)
	}
	for i, p := range contour.GetPredictions() {
		c, b := float64(contour.GetYValues()[i/3].GetIntValue()), contour.GetXValues()[i%3].GetDoubleValue()
		root := math.Cbrt(2 * c)
		if want := (1 + root) * (1 + root*root) / b; math.Abs(p.GetMedian()-want) > 1e-9*want || p.GetLower() != p.GetUpper() {
			t.Errorf("ε %v at C = %g and b = %g, want %g", p, c, b, want)
		}
	}
}

// checkSlice checks the values of a slice of 5 points, and its predictions by PredictMetrics.
func checkSlice(f *servertest.Fixture, study string, centre map[string]*dparetov1.Value, s *dparetov1.Slice) {
	f.T.Helper()
	req := &dparetov1.PredictMetricsRequest{Name: study}
	previous := math.Inf(-1)
	for _, p := range s.GetPoints() {
		v := p.GetValue().GetDoubleValue() + float64(p.GetValue().GetIntValue())
		if v <= previous {
			f.T.Errorf("%s of %s: value %g after %g", s.GetMetric(), s.GetParameter(), v, previous)
		}
		previous = v
		parameters := maps.Clone(centre)
		parameters[s.GetParameter()] = p.GetValue()
		req.Configurations = append(req.Configurations, &dparetov1.Configuration{Parameters: parameters})
	}
	resp, err := f.Fronts.PredictMetrics(f.T.Context(), req)
	if err != nil || len(req.GetConfigurations()) != 5 {
		f.T.Fatalf("%d points, %v", len(req.GetConfigurations()), err)
	}
	for i, p := range s.GetPoints() {
		want := resp.GetPredictions()[i].GetPredictions()[s.GetMetric()]
		if computed := resp.GetPredictions()[i].GetComputedMetrics()[s.GetMetric()]; computed != nil {
			want = &dparetov1.MetricPrediction{Median: computed.GetValue(), Lower: computed.GetValue(), Upper: computed.GetValue()}
		}
		got := p.GetPrediction()
		for _, pair := range [][2]float64{{got.GetMedian(), want.GetMedian()}, {got.GetLower(), want.GetLower()}, {got.GetUpper(), want.GetUpper()}} {
			if math.Abs(pair[0]-pair[1]) > 1e-9*math.Abs(pair[1]) {
				f.T.Errorf("%s of %s at %v: %v, want %v", s.GetMetric(), s.GetParameter(), p.GetValue(), got, want)
			}
		}
	}
}

func TestAnalysesRefuse(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("svt", servertest.SVTSpec())
	full := servertest.FullRequest(t)
	require.NoError(t, require.ErrOf(f.Studies.CreateStudy(t.Context(), full)))
	contour := func(change func(*dparetov1.AnalyzeContourRequest)) error {
		req := &dparetov1.AnalyzeContourRequest{
			Name: study, Metric: "epsilon", XParameter: "cutoff", YParameter: "noise_scale", Parameters: servertest.Sparse(4, 1),
		}
		change(req)
		return require.ErrOf(f.Analyses().AnalyzeContour(t.Context(), req))
	}
	sgd := servertest.FullParameters()
	sgd["optimizer"] = servertest.Value("sgd")
	delete(sgd, "beta")
	for _, tt := range []struct {
		field string
		err   error
	}{
		{"points", require.ErrOf(f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: study, Points: 1}))},
		{"points", require.ErrOf(f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: study, Points: 201}))},
		{`parameters["cutoff"]`, require.ErrOf(f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: study, Parameters: servertest.Sparse(31, 1)}))},
		{"name", require.ErrOf(f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: "svt"}))},
		{"points", contour(func(r *dparetov1.AnalyzeContourRequest) { r.Points = 61 })},
		{"metric", contour(func(r *dparetov1.AnalyzeContourRequest) { r.Metric = "accuracy" })},
		{"x_parameter", contour(func(r *dparetov1.AnalyzeContourRequest) { r.XParameter = "" })},
		{"y_parameter", contour(func(r *dparetov1.AnalyzeContourRequest) { r.YParameter = "cutoff" })},
		{"y_parameter", contour(func(r *dparetov1.AnalyzeContourRequest) {
			r.Name, r.Parameters, r.XParameter, r.YParameter = "studies/full", sgd, "rate", "beta"
		})},
	} {
		servertest.WantCode(t, tt.err, codes.InvalidArgument, tt.field)
	}
	servertest.WantCode(t, require.ErrOf(f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: "studies/none"})), codes.NotFound, "does not exist")
	servertest.WantCode(t, require.ErrOf(f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: "studies/none"})), codes.NotFound, "does not exist")
	servertest.WantCode(t, contour(func(r *dparetov1.AnalyzeContourRequest) { r.Name = "studies/none" }), codes.NotFound, "does not exist")
}

// Without a model and a configuration there is no place to look at; with one, computed metrics can
// be shown. Conditional parameters are shown where they exist.
func TestSlicesWithoutModel(t *testing.T) {
	f := servertest.Start(t)
	require.NoError(t, require.ErrOf(f.Studies.CreateStudy(t.Context(), servertest.FullRequest(t))))
	resp, err := f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: "studies/full"})
	if err != nil || len(resp.GetSlices()) != 0 || len(resp.GetParameters()) != 0 || len(resp.GetWarnings()) != 1 {
		t.Errorf("%v, %v", resp, err)
	}
	sgd := servertest.FullParameters()
	sgd["optimizer"] = servertest.Value("sgd")
	delete(sgd, "beta")
	for name, parameters := range map[string]map[string]*dparetov1.Value{"adam": servertest.FullParameters(), "sgd": sgd} {
		resp, err := f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: "studies/full", Parameters: parameters, Points: 3})
		require.NoError(t, err)
		found := make(map[string]int)
		for _, s := range resp.GetSlices() {
			if s.GetMetric() != "epsilon" {
				t.Errorf("a slice of %s without a model", s.GetMetric())
			}
			found[s.GetParameter()] = len(s.GetPoints())
		}
		for id := range servertest.FullParameters() {
			if _, ok := found[id]; ok != (parameters[id] != nil) {
				t.Errorf("%s: slice along %s: %v", name, id, ok)
			}
		}
		if found["optimizer"] != 2 {
			t.Errorf("%d optimizers", found["optimizer"])
		}
	}
}

// What is released of a study in private mode may be analysed; a study with random stopping shows
// nothing of its trials.
func TestAnalysesOfPrivateStudies(t *testing.T) {
	t.Parallel()
	f := servertest.Start(t)
	private := f.Create("private", servertest.PrivateSpec(4, 1000))
	f.Tell(f.One(private, "w"), 0.3)
	resp, err := f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: private})
	if err != nil || len(resp.GetObjectives()) != 2 {
		t.Errorf("private mode: %v, %v", resp, err)
	}
	hidden := f.Create("hidden", servertest.SearchSpec(5, 1))
	for _, err := range []error{
		require.ErrOf(f.Analyses().AnalyzeImportance(t.Context(), &dparetov1.AnalyzeImportanceRequest{Name: hidden})),
		require.ErrOf(f.Analyses().AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: hidden})),
		require.ErrOf(f.Analyses().AnalyzeContour(t.Context(), &dparetov1.AnalyzeContourRequest{Name: hidden, Metric: "error", XParameter: "sigma", YParameter: "x"})),
	} {
		servertest.WantCode(t, err, codes.FailedPrecondition, "random_stopping")
	}
}
