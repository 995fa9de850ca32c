package analysis_test

import (
	"slices"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/analysis"
	"github.com/dpareto/dpareto/server/engine"
)

func forecast(t *testing.T, a *analysis.Analyses, runs int32) *dparetov1.ForecastGainResponse {
	t.Helper()
	resp, err := a.ForecastGain(t.Context(), &dparetov1.ForecastGainRequest{Name: "studies/runs", Runs: runs})
	require.NoError(t, err)
	return resp
}

func TestForecastGain(t *testing.T) {
	s := trained(t, 10, func(asked *dparetov1.StudySpec) {
		asked.Cost = &dparetov1.CostSpec{Measure: &dparetov1.CostSpec_CheckpointParameter{CheckpointParameter: new(dparetov1.CheckpointParameterCost)}}
	})
	a, fronts := analysesOf(s)
	f := forecast(t, a, 0)
	posterior, err := fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	require.NoError(t, err)
	if want := posterior.GetFront().GetHypervolume(); f.GetHypervolume() < want*(1-1e-9) || f.GetHypervolume() > want*(1+1e-9) {
		t.Errorf("hypervolume %v, of the front %v", f.GetHypervolume(), want)
	}
	if len(f.GetPoints()) != 10 || f.GetCostUnit() != "epochs" || len(f.GetWarnings()) != 0 {
		t.Fatalf("%v", f)
	}
	for k, p := range f.GetPoints() {
		g := p.GetGain()
		if int(p.GetRuns()) != k+1 || !(g.GetLower() <= g.GetUpper()) || p.GetProbability() < 0 || p.GetProbability() > 1 {
			t.Errorf("point %v", p)
		}
		if k > 0 && !(p.GetCost() > f.GetPoints()[k-1].GetCost()) {
			t.Errorf("%d runs cost %v, one less %v", k+1, p.GetCost(), f.GetPoints()[k-1].GetCost())
		}
	}
	if g := f.GetPoints()[9].GetGain(); !(g.GetValue() > 0) {
		t.Errorf("gain %v", g)
	}
	if again := forecast(t, a, 10); !proto.Equal(f, again) {
		t.Errorf("%v, then %v", f, again)
	}
	// What is forecast is what the designer hands out.
	before, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/runs"})
	if err != nil || before.GetStudy().GetTrialCounts().GetSucceeded() != 10 || before.GetStudy().GetTrialCounts().GetActive() != 0 {
		t.Fatalf("%v, %v: a forecast creates trials", before, err)
	}
	s.AskRun(t)
	pending := forecast(t, a, 3)
	if got := warnings(pending.GetWarnings()); !slices.Equal(got, []string{"RUNS_PENDING"}) || len(pending.GetPoints()) != 3 {
		t.Errorf("%v", pending)
	}
}

// The forecast starts from the hypervolume of the front, constant points included, and nothing that
// they beat is a gain.
func TestForecastBesideConstantPoints(t *testing.T) {
	forecastBeside := func(e float64) *dparetov1.ForecastGainResponse {
		s := trained(t, 10, func(asked *dparetov1.StudySpec) {
			asked.ConstantPoints = []*dparetov1.ConstantPoint{{Id: "none", Values: map[string]float64{"loss": 0, "error": e}}}
		})
		a, fronts := analysesOf(s)
		f := forecast(t, a, 3)
		posterior, err := fronts.GetFront(t.Context(), &dparetov1.GetFrontRequest{Name: "studies/runs", Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
		require.NoError(t, err)
		if want := posterior.GetFront().GetHypervolume(); f.GetHypervolume() < want*(1-1e-9) || f.GetHypervolume() > want*(1+1e-9) {
			t.Errorf("beside an error of %g: hypervolume %v, of the front %v", e, f.GetHypervolume(), want)
		}
		return f
	}
	beside, beaten := forecastBeside(0.5), forecastBeside(-9) // which no draw of the model reaches
	if len(beside.GetPoints()) != 3 || !(beside.GetPoints()[2].GetGain().GetValue() > 0) {
		t.Errorf("beside an error of 0.5: %v", beside)
	}
	for _, p := range beaten.GetPoints() {
		if g := p.GetGain(); g.GetValue() != 0 || g.GetUpper() != 0 || p.GetProbability() != 0 {
			t.Errorf("where nothing can be better: %v", p)
		}
	}
}

// A proposal is what the designer hands out next.
func TestProposalIsHandedOut(t *testing.T) {
	s := trained(t, 10, nil)
	studyNow, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/runs"})
	require.NoError(t, err)
	p, err := engine.Propose(t.Context(), s.Engine, "runs", studyNow.GetStudy().GetUid(), 3)
	if err != nil || len(p.Next) != 3 || len(p.Pending) != 0 || p.Number != 11 {
		t.Fatalf("%+v, %v", p, err)
	}
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/runs", WorkerId: "w", Count: 3})
	require.NoError(t, err)
	for i, trial := range resp.GetTrials() {
		if got := trial.GetParameters()["x"].GetDoubleValue(); got != p.Next[i][0] {
			t.Errorf("trial %d has x = %v, proposed was %v", i, got, p.Next[i][0])
		}
	}
	_, err = engine.Propose(t.Context(), s.Engine, "runs", "another", 3)
	wantCode(t, err, codes.NotFound)
}

// Budgets that can be raised do not limit a forecast, which says so.
func TestForecastBeyondTheBudget(t *testing.T) {
	for most, want := range map[int64][]string{10: {"BUDGET_SPENT"}, 12: {"BUDGET_SPENT"}, 14: nil} {
		s := trained(t, 10, func(asked *dparetov1.StudySpec) { asked.Budget = &dparetov1.Budget{MaxTrials: most} })
		a, _ := analysesOf(s)
		f := forecast(t, a, 4)
		if got := warnings(f.GetWarnings()); !slices.Equal(got, want) || len(f.GetPoints()) != 4 {
			t.Errorf("budget of %d trials: %d points, warnings %v", most, len(f.GetPoints()), f.GetWarnings())
		}
	}
}

// A space that has no more configurations limits the runs.
func TestForecastOfASmallSpace(t *testing.T) {
	s := trained(t, 10, func(asked *dparetov1.StudySpec) {
		asked.Algorithm.Name = dparetov1.Algorithm_ALGORITHM_GRID
		asked.GetParameters()[0].GridLevels, asked.GetParameters()[1].GridLevels = 3, 2
	})
	a, _ := analysesOf(s)
	f := forecast(t, a, 50)
	if len(f.GetPoints()) != 6 || f.GetPoints()[5].GetCost() != 6 || f.GetCostUnit() != "runs" || !slices.Equal(warnings(f.GetWarnings()), []string{"FEWER_RUNS"}) {
		t.Errorf("%v", f)
	}
}

func TestForecastGainRefuses(t *testing.T) {
	s := trained(t, 0, nil)
	a, _ := analysesOf(s)
	f := forecast(t, a, 5)
	if len(f.GetPoints()) != 0 || !slices.Equal(warnings(f.GetWarnings()), []string{"NO_MODEL"}) {
		t.Errorf("%v", f)
	}
	for _, req := range []*dparetov1.ForecastGainRequest{{Name: "runs"}, {Name: "studies/runs", Runs: -1}, {Name: "studies/runs", Runs: 51}} {
		_, err := a.ForecastGain(t.Context(), req)
		wantCode(t, err, codes.InvalidArgument)
	}
	_, err := a.ForecastGain(t.Context(), &dparetov1.ForecastGainRequest{Name: "studies/other"})
	wantCode(t, err, codes.NotFound)
}
