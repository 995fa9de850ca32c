package study_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/servertest"
)

// add reports errors of runs at a step.
func add(f *servertest.Fixture, trial *dparetov1.Trial, step int64, errors ...float64) error {
	_, err := f.Studies.AddMeasurement(f.T.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: servertest.Measurement(step, errors...),
	})
	return err
}

// must fails the test on an error.
func must(f *servertest.Fixture, err error) {
	f.T.Helper()
	require.NoError(f.T, err)
}

// again hands a trial out to another worker, an hour after its last sign of life.
func again(f *servertest.Fixture, study, worker string, trial *dparetov1.Trial) *dparetov1.Trial {
	f.T.Helper()
	f.Clock.Advance(time.Hour)
	next := f.One(study, worker)
	if next.GetName() != trial.GetName() {
		f.T.Fatalf("%s is handed out instead of %s", next.GetName(), trial.GetName())
	}
	return next
}

// release gives a trial back.
func release(f *servertest.Fixture, trial *dparetov1.Trial, reason string) *dparetov1.Trial {
	f.T.Helper()
	resp, err := f.Studies.ReleaseTrial(f.T.Context(), &dparetov1.ReleaseTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: reason,
	})
	must(f, err)
	return resp.GetTrial()
}

// curve renders the errors of measurements.
func curve(measurements []*dparetov1.Measurement) string {
	var all []string
	for _, m := range measurements {
		all = append(all, fmt.Sprintf("%d:%g", m.GetStep(), m.GetMetrics()["error"].GetValue()))
	}
	return strings.Join(all, " ")
}

// attempts renders past attempts.
func attempts(trial *dparetov1.Trial) string {
	var all []string
	for _, a := range trial.GetPastAttempts() {
		all = append(all, fmt.Sprintf("%d %s %s %q [%s]", a.GetNumber(), a.GetWorkerId(),
			strings.TrimPrefix(a.GetOutcome().String(), "ATTEMPT_OUTCOME_"), a.GetReason(), curve(a.GetMeasurements())))
	}
	return strings.Join(all, ", ")
}

// A late result comes with the curve of its own run. The run of the worker that held the trial
// meanwhile is kept apart, and the worker is told.
func TestLateResultHasItsOwnCurve(t *testing.T) {
	f, to := servertest.Start(t), servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	study := f.Create("sgd", spec)
	a := f.One(study, "a")
	must(f, add(f, a, 1, 0.5))
	began := f.Clock.Now()
	b := again(f, study, "b", a)
	must(f, add(f, b, 1, 0.99))
	must(f, add(f, b, 2, 0.98))
	f.Tell(a, 0.1)
	check := func(f *servertest.Fixture) {
		t.Helper()
		got := f.Trial(a.GetName())
		if c, final := curve(got.GetMeasurements()), got.GetFinalMeasurement().GetMetrics()["error"].GetValue(); c != "1:0.5" || final != 0.1 {
			t.Errorf("the trial ends with %g after %s, want 0.1 after 1:0.5", final, c)
		}
		if past, want := attempts(got), `2 b OVERTAKEN "" [1:0.99 2:0.98]`; past != want || got.GetWorkerId() != "a" || got.GetAttempt() != 2 || !got.GetStartTime().AsTime().Equal(began) {
			t.Errorf("%d attempts, the shown one of %s since %v: %s, want %s", got.GetAttempt(), got.GetWorkerId(), got.GetStartTime().AsTime(), past, want)
		}
		if list, _ := f.Pages(&dparetov1.ListTrialsRequest{Parent: study, PageSize: 10}); len(list[0].GetPastAttempts()) != 0 {
			t.Errorf("the list has past attempts: %v", list)
		}
	}
	check(f)
	f.Restart()
	check(f)
	servertest.WantCode(t, add(f, b, 3, 0.97), codes.FailedPrecondition, "SUCCEEDED")
	_, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(b, 0.96))
	servertest.WantCode(t, err, codes.FailedPrecondition, "already")
	exported := servertest.Lines(t, f.Export(study))
	require.NoError(t, require.ErrOf(to.ImportRecords(servertest.Parse(t, exported))))
	check(to)
	if got := servertest.Lines(t, to.Export(study)); got != exported {
		t.Errorf("exported again: %s\nwant: %s", got, exported)
	}
	// The front knows the run that counts alone.
	for _, p := range f.Front(study, dparetov1.FrontKind_FRONT_KIND_OBSERVED).GetPoints() {
		if v := p.GetValues()["error"].GetValue(); v != 0.1 && v != 0.5 {
			t.Errorf("a point of the front has error %g", v)
		}
	}
}

// However an attempt ends, its measurements stay readable, and no other attempt's stand in for them.
func TestPastAttempts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	spec.Lease = &dparetov1.LeasePolicy{MaxAttempts: 9}
	study := f.Create("sgd", spec)
	trial := f.One(study, "a")
	must(f, add(f, trial, 2, 0.2))
	must(f, add(f, trial, 1, 0.1))
	released := trial
	require.NoError(t, require.ErrOf(f.Studies.ReleaseTrial(t.Context(), &dparetov1.ReleaseTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Reason: "preempted",
	})))
	if got := f.Trial(trial.GetName()); len(got.GetMeasurements()) != 0 || len(got.GetPastAttempts()) != 1 || got.GetWorkerId() != "" {
		t.Errorf("queued trial %v", got)
	}
	trial = f.One(study, "b")
	must(f, add(f, trial, 1, 0.3))
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(),
		Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: "disk", Retryable: true}},
	})))
	trial = f.One(study, "c")
	must(f, add(f, trial, 1, 0.4))
	trial = f.One(study, "c")
	must(f, add(f, trial, 1, 0.6))
	trial = again(f, study, "d", trial)
	must(f, add(f, trial, 1, 0.7))
	f.Restart()
	past := `1 a RELEASED "preempted" [1:0.1 2:0.2], 2 b FAILED "disk" [1:0.3], 3 c RESUMED "" [1:0.4], 4 c LOST "" [1:0.6]`
	if got := f.Trial(trial.GetName()); attempts(got) != past || curve(got.GetMeasurements()) != "1:0.7" {
		t.Errorf("measured %s after %s", curve(got.GetMeasurements()), attempts(got))
	}
	// The first worker comes back, and has nothing to add to what it reported.
	done := servertest.Completion(released)
	done.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}}
	resp, err := f.Studies.CompleteTrial(t.Context(), done)
	require.NoError(t, err)
	if got := resp.GetTrial(); curve(got.GetMeasurements()) != "1:0.1 2:0.2" || curve([]*dparetov1.Measurement{got.GetFinalMeasurement()}) != "2:0.2" || len(got.GetPastAttempts()) != 0 {
		t.Errorf("completed %v", got)
	}
	_, past, _ = strings.Cut(past, ", ")
	if got := f.Trial(trial.GetName()); attempts(got) != past+`, 5 d OVERTAKEN "" [1:0.7]` {
		t.Errorf("past attempts %s", attempts(got))
	}
	must(f, func() error {
		_, err := f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: trial.GetName()})
		return err
	}())
	if got := f.Export(study)[1].GetTrial(); !got.GetDeleted() || len(got.GetTrial().GetPastAttempts()) != 4 {
		t.Errorf("exported %v", got)
	}
}

// All attempts together are bounded, and the bound keeps no trial from its result.
func TestAllAttemptsAreBounded(t *testing.T) {
	// Every measurement has ε with its assumptions: such a trial is a little larger than 4 MiB.
	f := servertest.StartWith(t, func(o *server.Options) { o.Limits.RequestBytes = 8 << 20 })
	spec := servertest.SGDSpec()
	spec.CheckpointParameter = ""
	study := f.Create("sgd", spec)
	trial := f.One(study, "a")
	exported := f.Export(study)
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	stored := exported[1].GetTrial()
	now := timestamppb.New(f.Clock.Now())
	stored.Trial.Attempt = 4
	stored.LeaseTokens = nil
	for n := range int32(4) {
		stored.LeaseTokens = append(stored.GetLeaseTokens(), fmt.Sprint("token ", n+1))
	}
	full := &dparetov1.Attempt{WorkerId: "a", StartTime: now, EndTime: now, Outcome: dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_LOST}
	for step := range int64(2000) {
		full.Measurements = append(full.Measurements, &dparetov1.Measurement{Step: step, Metrics: map[string]*dparetov1.MetricValue{
			"error": {Value: new(0.5)}, "epsilon": trial.GetComputedMetrics()["epsilon"],
		}})
	}
	for n := range int32(3) {
		attempt := proto.CloneOf(full)
		attempt.Number = n + 1
		if n == 2 {
			attempt.Measurements = attempt.GetMeasurements()[1:]
		}
		stored.Trial.PastAttempts = append(stored.Trial.PastAttempts, attempt)
	}
	require.NoError(t, require.ErrOf(f.ImportRecords(exported)))
	trial.Lease.Token = "token 4"
	must(f, add(f, trial, 1, 0.5))
	servertest.WantCode(t, add(f, trial, 2, 0.5), codes.ResourceExhausted, "6000 measurements")
	must(f, add(f, trial, 1, 0.5)) // again
	f.Tell(trial, 0.4)
}

// A trial that waits shows nothing of the attempts that have ended, and neither does one that fails
// while it waits.
func TestQueuedTrialShowsNoAttempt(t *testing.T) {
	f := servertest.StartSeeded(t, 3)
	spec := servertest.PrivateSpec(3, 20)
	spec.PrivateMode.TrainingShards = 2
	study := f.Create("s", spec)
	trial := f.One(study, "a")
	for trial.GetTrainingShard() == 0 { // shards take turns
		release(f, trial, "")
		trial = f.One(study, "a")
	}
	shard := trial.GetTrainingShard()
	check := func(got *dparetov1.Trial) {
		t.Helper()
		if got.GetStartTime() != nil || got.GetTrainingShard() != 0 {
			t.Errorf("a trial that is %v began at %v, on shard %d", got.GetState(), got.GetStartTime(), got.GetTrainingShard())
		}
		if past := got.GetPastAttempts(); len(past) > 0 && (past[len(past)-1].GetStartTime() == nil || past[len(past)-1].GetTrainingShard() != shard) {
			t.Errorf("past attempts %v", past)
		}
	}
	check(release(f, trial, "preempted"))
	check(f.Trial(trial.GetName()))
	stopped, err := f.Studies.StopTrial(t.Context(), &dparetov1.StopTrialRequest{Name: trial.GetName()})
	must(f, err)
	check(stopped.GetTrial())
}

// Workers cannot give a trial back without end: its past attempts come in one message.
func TestReleasesAreBounded(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	first := f.One(study, "a")
	trial := first
	for n := 0; trial.GetName() == first.GetName(); n++ {
		if n == 1200 {
			t.Fatalf("released %d times, the trial has %d bytes", n, proto.Size(f.Trial(first.GetName())))
		}
		release(f, trial, strings.Repeat("\U0001f512", 2000))
		trial = f.One(study, "a")
	}
	got := f.Trial(first.GetName())
	if n := len(got.GetPastAttempts()); n != 100 || got.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || !strings.Contains(got.GetStateReason(), "handed out 100 times") {
		t.Errorf("%d past attempts, %v: %s", n, got.GetState(), got.GetStateReason())
	}
}

// The noisy values of an attempt that is overtaken stay noisy and paid for, and a late result is not
// drawn twice. The trial shows the shard on which its result was trained.
func TestLateResultOfPrivateStudies(t *testing.T) {
	f := servertest.StartSeeded(t, 3)
	spec := servertest.WithCheckpoints(servertest.PrivateSpec(3, 20), 20)
	spec.PrivateMode.TrainingShards = 2
	study := f.Create("s", spec)
	a := f.One(study, "a")
	must(f, add(f, a, 2, 0.5))
	kept := f.Trial(a.GetName()).GetMeasurements()[0]
	b := again(f, study, "b", a)
	if a.GetTrainingShard() == b.GetTrainingShard() {
		t.Fatalf("both attempts on shard %d", a.GetTrainingShard())
	}
	must(f, add(f, b, 3, 0.25))
	request := servertest.Completion(a)
	request.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: servertest.Measurement(2, 0.5)}
	require.NoError(t, require.ErrOf(f.Studies.CompleteTrial(t.Context(), request)))
	got := f.Trial(a.GetName())
	if !proto.Equal(got.GetFinalMeasurement().GetMetrics()["error"], kept.GetMetrics()["error"]) || got.GetTrainingShard() != a.GetTrainingShard() {
		t.Errorf("completed %v, after %v on shard %d", got, kept, a.GetTrainingShard())
	}
	past := got.GetPastAttempts()
	if len(past) != 1 || past[0].GetTrainingShard() != b.GetTrainingShard() || past[0].GetMeasurements()[0].GetMetrics()["error"].GetValue() == 0.25 {
		t.Errorf("past attempts %v", past)
	}
	if spent := f.Study(study).GetPublication().GetSpent().GetValues(); spent != 2 {
		t.Errorf("%d values are paid for, want 2", spent)
	}
}

// A lost attempt of a hidden study is its result: it is not made again, a late report does not count, and
// nothing of it is kept or shown.
func TestLostAttemptsOfHiddenStudies(t *testing.T) {
	f := servertest.StartSeeded(t, 5)
	study := f.WithTrials("s", servertest.SearchSpec(10, 1), 3)
	a := f.One(study, "a")
	must(f, add(f, a, 1, 0.5))
	f.Clock.Advance(time.Hour)
	if b := f.One(study, "b"); b.GetName() == a.GetName() {
		t.Fatalf("%s is handed out again", a.GetName())
	}
	_, err := f.Studies.CompleteTrial(t.Context(), servertest.Completion(a, 0.3))
	servertest.WantCode(t, err, codes.FailedPrecondition, "")
	_, err = f.Studies.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: a.GetName()})
	servertest.WantCode(t, err, codes.FailedPrecondition, "shows only its best trial")
	lost := f.Export(study)[1].GetTrial().GetTrial()
	if lost.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED || len(lost.GetMeasurements())+len(lost.GetFinalMeasurement().GetMetrics()) != 0 {
		t.Errorf("kept %v", lost)
	}
}

// An attempt that was overtaken is paid with all of its runs.
func TestLedgerOfOvertakenAttempts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	spec.Replicates = 3
	study := f.Create("sgd", spec)
	a := f.One(study, "a")
	b := again(f, study, "b", a)
	must(f, add(f, b, 1, 0.5, 0.6, 0.7))
	f.Tell(a, 0.1, 0.2, 0.3)
	runs := make(map[dparetov1.LedgerOutcome]int64)
	for _, e := range f.Ledger(study, 0).GetEntries() {
		runs[e.GetOutcome()] = e.GetRuns()
	}
	if runs[dparetov1.LedgerOutcome_LEDGER_OUTCOME_SUCCEEDED] != 3 || runs[dparetov1.LedgerOutcome_LEDGER_OUTCOME_ABANDONED] != 3 {
		t.Errorf("charged runs %v, want 3 that succeeded and 3 abandoned", runs)
	}
}

// Accounting again changes past attempts and running ones like all other runs.
func TestReaccountPastAttempts(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SGDSpec()
	spec.DisableEarlyStopping = true
	study := f.Create("sgd", spec)
	trial := f.One(study, "a")
	must(f, add(f, trial, 1, 0.5))
	trial = again(f, study, "b", trial)
	must(f, add(f, trial, 1, 0.6))
	before := f.Trial(trial.GetName())
	privacy := proto.CloneOf(spec.GetMetrics()[0].GetComputed().GetPrivacy())
	privacy.Delta /= 100
	f.Reaccount(study, privacy, false)
	after := f.Trial(trial.GetName())
	epsilon := func(m []*dparetov1.Measurement) float64 { return m[0].GetMetrics()["epsilon"].GetValue() }
	past, running := epsilon(after.GetPastAttempts()[0].GetMeasurements()), epsilon(after.GetMeasurements())
	if past != running || !(running > epsilon(before.GetMeasurements())) {
		t.Errorf("epsilon %g of the past attempt, %g of the running one, was %g", past, running, epsilon(before.GetMeasurements()))
	}
	must(f, add(f, trial, 2, 0.4))
	f.Tell(trial, 0.3)
}

// An import takes attempts only as a server could have written them.
func TestImportRefusesAttempts(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("sgd", servertest.SGDSpec())
	trial := f.One(study, "a")
	must(f, add(f, trial, 1, 0.5))
	trial = again(f, study, "b", trial)
	trial = again(f, study, "c", trial)
	f.Tell(trial, 0.1)
	held := f.One(study, "a")
	must(f, add(f, held, 1, 0.5))
	again(f, study, "b", held)
	exported := servertest.Lines(t, f.Export(study))
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	const path = "record.trial.trial.past_attempts"
	for name, tc := range map[string]struct {
		number int
		field  string
		change func(*dparetov1.Trial)
	}{
		"missing":     {1, path, func(t *dparetov1.Trial) { t.PastAttempts = t.GetPastAttempts()[:1] }},
		"too many":    {2, path, func(t *dparetov1.Trial) { t.PastAttempts = append(t.PastAttempts, t.GetPastAttempts()[0]) }},
		"held":        {2, path, func(t *dparetov1.Trial) { t.PastAttempts[0].Number = 2 }},
		"order":       {1, path + "[1].number", func(t *dparetov1.Trial) { slices.Reverse(t.GetPastAttempts()) }},
		"worker":      {1, path + "[0].worker_id", func(t *dparetov1.Trial) { t.PastAttempts[0].WorkerId = "" }},
		"outcome":     {1, path + "[0].outcome", func(t *dparetov1.Trial) { t.PastAttempts[0].Outcome = 99 }},
		"reason":      {1, path + "[0].reason", func(t *dparetov1.Trial) { t.PastAttempts[0].Reason = strings.Repeat("x", 2001) }},
		"time":        {1, path + "[1].end_time", func(t *dparetov1.Trial) { t.PastAttempts[1].EndTime = nil }},
		"measurement": {1, path + "[0].measurements[0].step", func(t *dparetov1.Trial) { t.PastAttempts[0].Measurements[0].Step = -1 }},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := f.ImportRecords(servertest.SetTrial(tc.number, func(r *dparetov1.ExportedTrial) { tc.change(r.GetTrial()) })(servertest.Parse(t, exported)))
			if fields := servertest.Violated(err); !slices.Contains(fields, tc.field) {
				t.Errorf("error %v of fields %v, want one of %s", err, fields, tc.field)
			}
		})
	}
	if _, err := f.ImportRecords(servertest.Parse(t, exported)); err != nil {
		t.Errorf("without a fault: %v", err)
	}
}
