package choose_test

import (
	"net/http"
	"strings"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/web/webtest"
)

func TestWhy(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "first", 24)
	webtest.Contains(t, s.Get(t, "/studies/first/why?metric=error", http.StatusOK), `hx-get="/studies/first/parts/importance?metric=error"`, `hx-get="/studies/first/parts/gain?metric=error"`, "being fitted")
	for part, texts := range map[string][]string{
		"importance":              {"Share of the variance of epsilon", "Share of the variance of error", "momentum", "bars"},
		"slices":                  {"the other parameters are held at", "slice-epochs", "slice-noise", "slice-kind", "error with its 90 % interval"},
		"slices?metric=epsilon":   {"epsilon with its 90 % interval"},
		"contour":                 {"error over epochs and noise", "heat0", "heat8", "dots over", "The map as a table"},
		"contour?x=kind&y=epochs": {"error over kind and epochs", "&lt;script&gt;"},
		"fit":                     {"Predicted against measured error", "of 24 measurements lie within", "/studies/first/trials/1"},
		"gain":                    {"10 more runs", "hypervolume", "with a probability of", "Per run"},
	} {
		body := s.Get(t, "/studies/first/parts/"+part, http.StatusOK)
		webtest.Contains(t, body, texts...)
		if strings.Contains(body, "<script") || strings.Contains(body, "style=") || strings.Contains(body, "NaN") && !strings.HasPrefix(part, "contour") {
			t.Errorf("%s: %s", part, body)
		}
	}
	// An ε is rounded up along a parameter, and in a map.
	resp, err := dparetov1.NewAnalysisServiceClient(s.Conn).AnalyzeSlices(t.Context(), &dparetov1.AnalyzeSlicesRequest{Name: "studies/first"})
	require.NoError(t, err)
	body := s.Get(t, "/studies/first/parts/slices?metric=epsilon", http.StatusOK)
	webtest.Contains(t, body, "ε of one run, δ = 1e-5, add-remove adjacency")
	for _, slice := range resp.GetSlices() {
		for _, p := range slice.GetPoints() {
			if slice.GetMetric() == "epsilon" {
				webtest.Contains(t, body, "<td class=\"n\">"+show.NumberUp(p.GetPrediction().GetMedian())+"</td>")
			}
		}
	}
	contour, err := dparetov1.NewAnalysisServiceClient(s.Conn).AnalyzeContour(t.Context(), &dparetov1.AnalyzeContourRequest{Name: "studies/first", Metric: "epsilon", XParameter: "epochs", YParameter: "noise"})
	require.NoError(t, err)
	body = s.Get(t, "/studies/first/parts/contour?metric=epsilon&x=epochs&y=noise", http.StatusOK)
	for _, p := range contour.GetPredictions() {
		webtest.Contains(t, body, "<td class=\"n\">"+show.NumberUp(p.GetMedian())+"</td>")
	}
	webtest.Contains(t, s.Get(t, "/studies/first/why?wait=1", http.StatusOK), "Share of the variance of error", "Predicted against measured error", "10 more runs", "contour-map")
	webtest.Contains(t, s.Get(t, "/studies/first/parts/contour?x=kind&y=kind", http.StatusUnprocessableEntity), `role="alert"`)
	webtest.Contains(t, s.Get(t, "/studies/first/parts/contour?x=%3Cb%3E&y=kind", http.StatusUnprocessableEntity), "&lt;b&gt;")
}

func TestWhyWithoutResults(t *testing.T) {
	s := webtest.New(t, server.Options{})
	measured(t, s, "empty", 0)
	s.Create(t.Context(), t, "plain", &dparetov1.Study{Spec: webtest.SimpleSpec()})
	webtest.Contains(t, s.Get(t, "/studies/empty/why?wait=1", http.StatusOK), "othing has been measured yet")
	webtest.Contains(t, s.Get(t, "/studies/plain/why?wait=1", http.StatusOK), "The study has one parameter only.")
}

// A study with random stopping shows a sentence in place of what it must not show.
func TestChooseRefused(t *testing.T) {
	s := webtest.New(t, server.Options{})
	ledgers(t, s)
	spec := dpSpec()
	spec.Parameters, spec.Budget = spec.GetParameters()[:3], nil
	spec.RandomStopping = &dparetov1.RandomStoppingSpec{MeanTrials: 10, Distribution: &dparetov1.RandomStoppingSpec_Eta{Eta: 1}, Metric: "error", Delta: 1e-5}
	spec.TrainLedger = "ledgers/train"
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	require.NoError(t, require.ErrOf(studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "secret", Study: &dparetov1.Study{Spec: spec}})))
	webtest.Contains(t, s.Get(t, "/studies/secret/choose?wait=1", http.StatusOK), `role="alert"`, "random_stopping")
	if n := strings.Count(s.Get(t, "/studies/secret/why?wait=1", http.StatusOK), `role="alert"`); n != 5 {
		t.Errorf("%d of 5 sections are refused", n)
	}
}

// ledgers creates a ledger of training records and one of test records.
func ledgers(t testing.TB, s *webtest.Site) {
	t.Helper()
	releases := dparetov1.NewReleaseServiceClient(s.Conn)
	for id, adjacency := range map[string]dparetov1.Adjacency{"train": dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, "test": dparetov1.Adjacency_ADJACENCY_REPLACE_ONE} {
		_, err := releases.CreateLedger(t.Context(), &dparetov1.CreateLedgerRequest{LedgerId: id, Ledger: &dparetov1.Ledger{Records: 10000, Epsilon: 1000, Delta: 1e-3, Adjacency: adjacency}})
		require.NoError(t, err)
	}
}

// A private study shows what its noisy values show, and its ledger.
func TestChoosePrivate(t *testing.T) {
	s := webtest.New(t, server.Options{})
	ledgers(t, s)
	spec := dpSpec()
	spec.Metrics[1].Transform = dparetov1.Transform_TRANSFORM_LOGIT
	spec.TrainLedger, spec.TestLedger = "ledgers/train", "ledgers/test"
	spec.PrivateMode = &dparetov1.PrivateModeSpec{TestSetSize: 10000, TestEpsilon: 2, TrainEpsilon: 500, Delta: 1e-5}
	studies := dparetov1.NewStudyServiceClient(s.Conn)
	require.NoError(t, require.ErrOf(studies.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "private", Study: &dparetov1.Study{Spec: spec}})))
	for range 8 {
		resp, err := studies.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/private", WorkerId: "w"})
		require.NoError(t, err)
		value := 0.25
		for _, trial := range resp.GetTrials() {
			_, err := studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Measurement{
				Measurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"error": {Value: &value}}},
			}})
			require.NoError(t, err)
		}
	}
	webtest.Contains(t, s.Get(t, "/studies/private/choose?wait=1", http.StatusOK), "Recommended with", "runs of the search together")
	webtest.Contains(t, s.Get(t, "/studies/private/why?wait=1", http.StatusOK), "Share of the variance of error")
}
