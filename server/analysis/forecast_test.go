package analysis_test

import (
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// The privacy budget of a private study limits the runs of a forecast: it cannot be raised.
func TestForecastOfPrivateStudy(t *testing.T) {
	f := servertest.Start(t)
	analyses := dparetov1.NewAnalysisServiceClient(f.Conn)
	study := f.Create("private", servertest.PrivateSpec(40, 2))
	forecast := func(runs int32) *dparetov1.ForecastGainResponse {
		t.Helper()
		resp, err := analyses.ForecastGain(t.Context(), &dparetov1.ForecastGainRequest{Name: study, Runs: runs})
		require.NoError(t, err)
		return resp
	}
	codesOf := func(resp *dparetov1.ForecastGainResponse) map[string]bool {
		found := make(map[string]bool)
		for _, w := range resp.GetWarnings() {
			found[w.GetCode()] = true
		}
		return found
	}
	for i := range 4 {
		f.Tell(f.One(study, "w"), 0.5-0.05*float64(i))
	}
	before := forecast(50)
	n := len(before.GetPoints())
	if n == 0 || n >= 36 || !codesOf(before)["FEWER_RUNS"] {
		t.Fatalf("%d runs, warnings %v", n, before.GetWarnings())
	}
	for {
		resp := f.Ask(study, "w", 1)
		if len(resp.GetTrials()) == 0 {
			break
		}
		f.Tell(resp.GetTrials()[0], 0.4)
	}
	if s := f.Study(study); s.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED {
		t.Fatalf("state %v", s.GetState())
	}
	after := forecast(10)
	if len(after.GetPoints()) != 0 || after.GetHypervolume() <= 0 || !codesOf(after)["FEWER_RUNS"] || codesOf(after)["BUDGET_SPENT"] {
		t.Errorf("after the budget is spent: %v", after)
	}
	v, err := analyses.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: study})
	if err != nil || len(v.GetObjectives()) != 1 || len(v.GetObjectives()[0].GetPoints()) == 0 {
		t.Errorf("%v, %v", v, err)
	}
}

// What a study hides is not analysed.
func TestAnalysesOfHiddenStudy(t *testing.T) {
	f := servertest.Start(t)
	analyses := dparetov1.NewAnalysisServiceClient(f.Conn)
	study := f.Create("hidden", servertest.SearchSpec(3, 0))
	_, err := analyses.CrossValidate(t.Context(), &dparetov1.CrossValidateRequest{Name: study})
	servertest.WantCode(t, err, codes.FailedPrecondition, "random_stopping")
	_, err = analyses.ForecastGain(t.Context(), &dparetov1.ForecastGainRequest{Name: study})
	servertest.WantCode(t, err, codes.FailedPrecondition, "random_stopping")
}
