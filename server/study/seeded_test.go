package study_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
	"github.com/dpareto/dpareto/server/study"
)

// seeded completes a trial with a measurement of a seeded run.
func seeded(trial *dparetov1.Trial, errors ...float64) *dparetov1.CompleteTrialRequest {
	req := servertest.Completion(trial, errors...)
	req.GetMeasurement().Seeded = true
	return req
}

func hasSeeded(warnings []*dparetov1.Warning) bool {
	return slices.ContainsFunc(warnings, func(w *dparetov1.Warning) bool { return w.GetCode() == study.WarnSeeded })
}

// A seeded run is marked on its trial, in fronts, in what all runs cost, and in releases: no ε for
// the training records is stated. The test records, which the server's own noise protects, keep
// theirs.
func TestSeededRun(t *testing.T) {
	f := servertest.Start(t)
	ledger := f.NewLedger("l", 200)
	name := f.Create("s", servertest.FixedSpec(2, ledger))
	f.Tell(f.One(name, "w"), 0.3)
	trial := f.One(name, "w")
	resp, err := f.Studies.CompleteTrial(t.Context(), seeded(trial, 0.2))
	require.NoError(t, err)
	if got := resp.GetTrial(); !hasSeeded(got.GetWarnings()) || !got.GetFinalMeasurement().GetSeeded() {
		t.Errorf("trial %v", got)
	}
	if other := f.Trial(name + "/trials/1"); hasSeeded(other.GetWarnings()) {
		t.Errorf("a trial that was not seeded: %v", other)
	}
	for _, kind := range []dparetov1.FrontKind{dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_POSTERIOR} {
		if front := f.Front(name, kind); !hasSeeded(front.GetWarnings()) {
			t.Errorf("front without a warning: %v", front.GetWarnings())
		}
	}
	recommended, err := f.Fronts.QueryFront(t.Context(), &dparetov1.QueryFrontRequest{
		Name: name, Bounds: map[string]float64{"epsilon": 1e6}, MeasuredOnly: true,
	})
	if err != nil || !hasSeeded(recommended.GetWarnings()) {
		t.Errorf("recommended %v, %v", recommended, err)
	}
	records := f.Export(name)
	for _, r := range records {
		if r.GetTrial() != nil {
			r.GetTrial().GetTrial().Warnings = nil
		}
	}
	other := servertest.Start(t)
	other.NewLedger("l", 200)
	require.NoError(t, require.ErrOf(other.ImportRecords(records)))
	if trial := other.Trial(name + "/trials/2"); !hasSeeded(trial.GetWarnings()) {
		t.Errorf("an import without warnings: %v", trial)
	}
	if l := other.Ledger(name, 0); !hasSeeded(l.GetWarnings()) || !math.IsInf(l.GetComposed().GetEpsilon(), 1) {
		t.Errorf("an import without warnings: %v", l)
	}
	if l := f.Ledger(name, 0); !hasSeeded(l.GetWarnings()) || !math.IsInf(l.GetComposed().GetEpsilon(), 1) {
		t.Errorf("what all runs cost: %v", l)
	}
	released, err := f.Releases().ReleaseBest(t.Context(), &dparetov1.ReleaseBestRequest{Name: name, Metric: "error", Epsilon: 1})
	require.NoError(t, err)
	r := released.GetRelease()
	if !hasSeeded(r.GetWarnings()) || !math.IsInf(r.GetTrainingGuarantee().GetEpsilon(), 1) || r.GetGuarantee().GetEpsilon() != 1 {
		t.Errorf("release %v", r)
	}
}

// Intermediate and imported measurements mark their trials too, and a trial stays marked when it
// is handed out again.
func TestSeededMeasurements(t *testing.T) {
	f := servertest.Start(t)
	name := f.Create("s", servertest.SGDSpec())
	trial := f.One(name, "w")
	m := servertest.Measurement(1, 0.5)
	m.Seeded = true
	require.NoError(t, require.ErrOf(f.Studies.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: m,
	})))
	require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken()})))
	again := f.Tell(f.One(name, "w"), 0.4)
	if again.GetName() != trial.GetName() || !hasSeeded(again.GetWarnings()) {
		t.Errorf("trial %v", again)
	}
	imported, err := f.Studies.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: name, Trial: &dparetov1.Trial{
		Parameters: trial.GetParameters(), FinalMeasurement: &dparetov1.Measurement{Seeded: true, Metrics: servertest.Measurement(0, 0.3).GetMetrics()},
	}})
	if err != nil || !hasSeeded(imported.GetTrial().GetWarnings()) {
		t.Errorf("imported %v, %v", imported, err)
	}
}

// Studies whose guarantees cover the training records refuse seeded runs. The trial can still be
// completed by one that is not.
func TestSeededRunsAreRefused(t *testing.T) {
	for id, spec := range map[string]*dparetov1.StudySpec{"private": servertest.PrivateSpec(4, 8), "stopping": servertest.SearchSpec(10, 0)} {
		f := servertest.Start(t)
		name := f.Create(id, spec)
		trial := f.One(name, "w")
		_, err := f.Studies.CompleteTrial(t.Context(), seeded(trial, 0.2))
		servertest.WantCode(t, err, codes.InvalidArgument, "measurement.seeded: must be false")
		if fields := servertest.Violated(err); strings.Join(fields, " ") != "measurement.seeded" {
			t.Errorf("%s: fields %v", id, fields)
		}
		if _, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(trial, 0.2)); err != nil {
			t.Errorf("%s: without a seed: %v", id, err)
		}
	}
}
