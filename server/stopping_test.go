package server

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// at returns a designer that always suggests one configuration.
func at(q ...float64) fakeDesigner {
	return fakeDesigner{func(_ context.Context, _ *suggest.Problem, _ *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		suggestions := make([]suggest.Suggestion, r.Count)
		for i := range suggestions {
			suggestions[i] = suggest.Suggestion{Point: space.Point(q).Clone(), Designer: "fake"}
		}
		return suggestions, nil
	}}
}

// A run is told to stop when its known objectives leave the reference: at a loss of one
// per epoch, of which there may be less than 32, after 31 epochs.
func TestStopUselessRuns(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		x      float64
		stops  bool
	}{
		"by default":    {nil, 1, true},
		"switched off":  {func(asked *dparetov1.StudySpec) { asked.DisableEarlyStopping = true }, 1, false},
		"useful to end": {nil, 0.25, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := serviceWith(t, at(tc.x, 64))
			study := runs(t, s, func(asked *dparetov1.StudySpec) {
				checkpoints(asked)
				if tc.change != nil {
					tc.change(asked)
				}
			})
			trial := askRun(t, s)
			if resp := report(t, s, trial, errorAt(4, 0.5), errorAt(30, 0.4)); resp.GetShouldStop() {
				t.Errorf("at 30 epochs: %v", resp)
			}
			resp := report(t, s, trial, errorAt(31, 0.3))
			if resp.GetShouldStop() != tc.stops || tc.stops && !strings.Contains(resp.GetStopReason(), "epochs above 31") {
				t.Errorf("at 31 epochs: %v", resp)
			}
			done := completeRun(t, s, trial, nil)
			if done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || done.GetFinalMeasurement().GetStep() != 31 {
				t.Errorf("completed: %v", done)
			}
			if h := historyOf(t, s.Server, study); len(h.Evaluations) != 3 || h.Evaluations[2].Point[1] != 31 {
				t.Errorf("evaluations %v", h.Evaluations)
			}
		})
	}
}

// What was found of a run before its study changed says nothing afterwards.
func TestStopsByTheSpecOfNow(t *testing.T) {
	var s *studyService
	var next func() // is called before the next Update
	kv := hookedKV{update: func() error {
		if call := next; call != nil {
			next = nil
			call()
		}
		return nil
	}}
	s = serviceOver(t, kv, Options{}, func(*spec.Study) suggest.Designer { return at(1, 64) })
	study := runs(t, s, checkpoints)
	study.Spec.DisableEarlyStopping = true
	trial := askRun(t, s)
	next = func() { // after the study was read
		if _, err := s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
			Study: study, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.disable_early_stopping"}},
		}); err != nil {
			t.Error(err)
		}
	}
	if resp := report(t, s, trial, errorAt(31, 0.3)); resp.GetShouldStop() {
		t.Errorf("a run of a study that stops none: %v", resp)
	}
}

// Trials that a user asked for run to their end.
func TestRequestedRunsAreNotStopped(t *testing.T) {
	s := serviceWith(t, at(1, 64))
	runs(t, s, checkpoints)
	_, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/runs", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
		"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
		"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if resp := report(t, s, askRun(t, s), errorAt(60, 0.5)); resp.GetShouldStop() {
		t.Error(resp)
	}
}

// The model judges a run in the background, one measurement at a time, and its verdict
// goes out with the next answer; a verdict on an earlier attempt does not count.
func TestStopHopelessRuns(t *testing.T) {
	// What the server reads in the background waits while there is a hold.
	var hold atomic.Pointer[chan struct{}]
	judging := make(chan struct{}, 10)
	wait := func(ctx context.Context) {
		if held := hold.Load(); held != nil && ctx.Done() != t.Context().Done() {
			judging <- struct{}{}
			<-*held
		}
	}
	judge := func() (release func()) {
		held := make(chan struct{})
		hold.Store(&held)
		return func() {
			hold.Store(nil)
			close(held)
		}
	}
	const initial = 12
	designer := fakeDesigner{func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		if r.Number <= initial {
			return suggest.NewQuasiRandom().Suggest(ctx, p, h, r)
		}
		return at(0.4, 64).Suggest(ctx, p, h, r)
	}}
	s := serviceOver(t, hookedKV{view: wait}, Options{}, func(*spec.Study) suggest.Designer { return designer })
	study := runs(t, s, func(asked *dparetov1.StudySpec) {
		checkpoints(asked)
		asked.Algorithm.InitialTrials = 8
		asked.Budget = &dparetov1.Budget{MaxTrials: initial + 2} // nothing is prepared afterwards
	})
	for range initial { // only the smallest rates are on the front
		trial := askRun(t, s)
		completeRun(t, s, trial, errorAt(0, 0.1+0.8*trial.GetParameters()["x"].GetDoubleValue()))
	}
	trial, second := askRun(t, s), askRun(t, s)

	release := judge()
	report(t, s, trial, errorAt(1, 0.5))
	<-judging
	// While it is judged measurements are taken, and no second judgement begins.
	if resp := report(t, s, trial, errorAt(2, 0.5), errorAt(3, 0.5)); resp.GetShouldStop() {
		t.Error(resp)
	}
	time.Sleep(20 * time.Millisecond) // time for another to begin
	if len(judging) != 0 {
		t.Error("it was judged twice")
	}
	release()
	var renewed *dparetov1.RenewLeasesResponse_Result
	for !renewed.GetShouldStop() { // the verdict is noted soon after it is given
		resp, err := s.RenewLeases(t.Context(), &dparetov1.RenewLeasesRequest{
			Parent: "studies/runs", LeaseTokens: map[string]string{trial.GetName(): trial.GetLease().GetToken()},
		})
		if err != nil {
			t.Fatal(err)
		}
		renewed = resp.GetResults()[trial.GetName()]
	}
	if resp := report(t, s, trial, errorAt(4, 0.5)); !resp.GetShouldStop() || !strings.Contains(resp.GetStopReason(), "model") {
		t.Error(resp)
	}
	if done := completeRun(t, s, trial, nil); done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		t.Error(done)
	}

	// Another attempt starts anew.
	release = judge()
	report(t, s, second, errorAt(1, 0.5))
	<-judging
	failure := &dparetov1.Failure{Reason: "r", Retryable: true}
	if _, err := s.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: second.GetName(), LeaseToken: second.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: failure},
	}); err != nil {
		t.Fatal(err)
	}
	release()
	cached, err := s.studies.get(study)
	if err != nil {
		t.Fatal(err)
	}
	for given := false; !given; time.Sleep(time.Millisecond) {
		cached.stopping.mu.Lock()
		given = cached.stopping.judged[second.GetNumber()].hopeless
		cached.stopping.mu.Unlock()
	}
	again := askRun(t, s)
	if again.GetName() != second.GetName() {
		t.Fatalf("got %s", again.GetName())
	}
	if resp := report(t, s, again, errorAt(1, 0.5)); resp.GetShouldStop() {
		t.Error(resp)
	}
}

// The judge's model is that of the completed trials: a run with a larger error at every
// step than another of less loss is told to stop, after the initial trials.
func TestModelStopsRuns(t *testing.T) {
	s := serviceWith(t, fakeDesigner{suggest: suggest.NewQuasiRandom().Suggest})
	study := runs(t, s, func(asked *dparetov1.StudySpec) {
		checkpoints(asked)
		asked.Algorithm.InitialTrials = 8
	})
	judged := func(trial *dparetov1.Trial) bool {
		hopeless, err := s.isHopeless(t.Context(), "runs", study.GetUid(), trial, 64)
		if err != nil {
			t.Fatal(err)
		}
		return hopeless
	}
	// The error is 0.1 + 0.8x: only the smallest rates are on the front.
	errorOf := func(trial *dparetov1.Trial) float64 { return 0.1 + 0.8*trial.GetParameters()["x"].GetDoubleValue() }
	cached, err := s.studies.get(study)
	if err != nil {
		t.Fatal(err)
	}
	completed := func(x float64, step int64, value float64) *dparetov1.Measurement {
		m, _, err := cached.compiled.Measurement("measurement", space.Point{x, 64}, errorAt(step, value), false)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	bad := func(n int) *dparetov1.Trial {
		return &dparetov1.Trial{
			Number: 100, Name: "studies/runs/trials/100",
			Parameters: map[string]*dparetov1.Value{
				"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.9}},
				"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
			},
			Measurements: []*dparetov1.Measurement{completed(0.9, 1, 0.82), completed(0.9, 2, 0.82)}[:n],
		}
	}
	for i := range 12 {
		trial := askRun(t, s)
		if i < 8 && judged(bad(1)) {
			t.Errorf("judged after %d trials", i)
		}
		completeRun(t, s, trial, errorAt(0, errorOf(trial)))
	}
	if !judged(bad(1)) || !judged(bad(2)) {
		t.Error("the run is not hopeless")
	}
	good := bad(1)
	good.Parameters["x"] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0}}
	good.Measurements[0] = completed(0, 1, 0.1)
	if judged(good) {
		t.Error("a leading run is hopeless")
	}
}
