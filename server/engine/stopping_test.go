package engine_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/fieldmaskpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
)

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
			s := enginetest.With(t, enginetest.At(tc.x, 64))
			study := s.Runs(t, func(asked *dparetov1.StudySpec) {
				enginetest.Checkpoints(asked)
				if tc.change != nil {
					tc.change(asked)
				}
			})
			trial := s.AskRun(t)
			if resp := s.Report(t, trial, enginetest.ErrorAt(4, 0.5), enginetest.ErrorAt(30, 0.4)); resp.GetShouldStop() {
				t.Errorf("at 30 epochs: %v", resp)
			}
			resp := s.Report(t, trial, enginetest.ErrorAt(31, 0.3))
			if resp.GetShouldStop() != tc.stops || tc.stops && !strings.Contains(resp.GetStopReason(), "epochs above 31") {
				t.Errorf("at 31 epochs: %v", resp)
			}
			done := s.Complete(t, trial, nil)
			if done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || done.GetFinalMeasurement().GetStep() != 31 {
				t.Errorf("completed: %v", done)
			}
			if h := historyOf(t, s, study); len(h.Evaluations) != 3 || h.Evaluations[2].Point[1] != 31 {
				t.Errorf("evaluations %v", h.Evaluations)
			}
		})
	}
}

// What was found of a run before its study changed says nothing afterwards.
func TestStopsByTheSpecOfNow(t *testing.T) {
	for name, tc := range map[string]struct {
		first []*dparetov1.Measurement // before the study changes
	}{
		"while it is found out": {nil},
		"when it is known":      {[]*dparetov1.Measurement{enginetest.ErrorAt(4, 0.5)}},
	} {
		t.Run(name, func(t *testing.T) {
			var s *enginetest.Service
			var next func() // is called before an Update
			hooks := enginetest.Hooks{Update: func(context.Context) error {
				if call := next; call != nil {
					next = nil
					call()
				}
				return nil
			}}
			s = enginetest.New(t, enginetest.Options{Around: hooks.Around, Designer: enginetest.Always(enginetest.At(1, 64))})
			study := s.Runs(t, enginetest.Checkpoints)
			study.Spec.DisableEarlyStopping = true
			trial := s.AskRun(t)
			s.Report(t, trial, tc.first...)
			next = func() {
				if _, err := s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{
					Study: study, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"spec.disable_early_stopping"}},
				}); err != nil {
					t.Error(err)
				}
			}
			if resp := s.Report(t, trial, enginetest.ErrorAt(31, 0.3)); resp.GetShouldStop() || next != nil {
				t.Errorf("a run of a study that stops none: %v; the study was changed: %t", resp, next == nil)
			}
		})
	}
}

// Trials that a user asked for run to their end.
func TestRequestedRunsAreNotStopped(t *testing.T) {
	s := enginetest.With(t, enginetest.At(1, 64))
	s.Runs(t, enginetest.Checkpoints)
	_, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/runs", Trial: &dparetov1.Trial{Parameters: map[string]*dparetov1.Value{
		"x":      {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 1}},
		"epochs": {Kind: &dparetov1.Value_IntValue{IntValue: 64}},
	}}})
	require.NoError(t, err)
	if resp := s.Report(t, s.AskRun(t), enginetest.ErrorAt(60, 0.5)); resp.GetShouldStop() {
		t.Error(resp)
	}
}

// The model judges a run in the background, one measurement at a time, and its verdict
// goes out with the next answer; a verdict on an earlier attempt does not count.
func TestStopUnpromisingRuns(t *testing.T) {
	// What a judgement reads waits while there is a hold. (Suggestions read under contexts of their
	// own, which end early.)
	var s *enginetest.Service
	var hold atomic.Pointer[chan struct{}]
	judging := make(chan struct{}, 10)
	wait := func(ctx context.Context) {
		if held := hold.Load(); held != nil && ctx.Done() == s.Background.Context().Done() {
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
	designer := enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		if r.Number <= initial {
			return quasirandom.New().Suggest(ctx, p, h, r)
		}
		return enginetest.At(0.4, 64).Suggest(ctx, p, h, r)
	})
	s = enginetest.New(t, enginetest.Options{Around: enginetest.Hooks{View: wait}.Around, Designer: enginetest.Always(designer)})
	study := s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Checkpoints(asked)
		asked.Algorithm.InitialTrials = 8
		asked.Budget = &dparetov1.Budget{MaxTrials: initial + 2} // nothing is prepared afterwards
	})
	for range initial { // only the smallest rates are on the front
		trial := s.AskRun(t)
		s.Complete(t, trial, enginetest.ErrorAt(0, 0.1+0.8*trial.GetParameters()["x"].GetDoubleValue()))
	}
	trial, second := s.AskRun(t), s.AskRun(t)

	release := judge()
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	<-judging
	// While it is judged measurements are taken, and no second judgement begins.
	if resp := s.Report(t, trial, enginetest.ErrorAt(2, 0.5), enginetest.ErrorAt(3, 0.5)); resp.GetShouldStop() {
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
		require.NoError(t, err)
		renewed = resp.GetResults()[trial.GetName()]
	}
	if resp := s.Report(t, trial, enginetest.ErrorAt(4, 0.5)); !resp.GetShouldStop() || !strings.Contains(resp.GetStopReason(), "model") {
		t.Error(resp)
	}
	if done := s.Complete(t, trial, nil); done.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		t.Error(done)
	}

	// Another attempt starts anew.
	release = judge()
	s.Report(t, second, enginetest.ErrorAt(1, 0.5))
	<-judging
	release()
	cached, err := s.Get(&storev1.StudyRecord{Study: study})
	require.NoError(t, err)
	for given := false; !given; time.Sleep(time.Millisecond) {
		given = s.Engine.JudgedUnpromising(cached, second.GetNumber())
	}
	failure := &dparetov1.Failure{Reason: "r", Retryable: true}
	require.NoError(t, require.ErrOf(s.CompleteTrial(t.Context(), &dparetov1.CompleteTrialRequest{
		Name: second.GetName(), LeaseToken: second.GetLease().GetToken(), Outcome: &dparetov1.CompleteTrialRequest_Failure{Failure: failure},
	})))
	again := s.AskRun(t)
	if again.GetName() != second.GetName() {
		t.Fatalf("got %s", again.GetName())
	}
	if resp := s.Report(t, again, enginetest.ErrorAt(1, 0.5)); resp.GetShouldStop() {
		t.Error(resp)
	}
}

// The judge's model is that of the completed trials: a run with a larger error at every
// step than another of less loss is told to stop, after the initial trials.
func TestModelStopsRuns(t *testing.T) {
	s := enginetest.With(t, enginetest.Designer(quasirandom.New().Suggest))
	study := s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Checkpoints(asked)
		asked.Algorithm.InitialTrials = 8
	})
	judged := func(trial *dparetov1.Trial) bool {
		unpromising, err := s.Engine.IsUnpromising(t.Context(), "runs", study.GetUid(), trial, 64)
		require.NoError(t, err)
		return unpromising
	}
	// The error is 0.1 + 0.8x: only the smallest rates are on the front.
	errorOf := func(trial *dparetov1.Trial) float64 { return 0.1 + 0.8*trial.GetParameters()["x"].GetDoubleValue() }
	cached, err := s.Get(&storev1.StudyRecord{Study: study})
	require.NoError(t, err)
	completed := func(x float64, step int64, value float64) *dparetov1.Measurement {
		m, _, err := cached.Compiled.Measurements.Accept("measurement", space.Point{x, 64}, enginetest.ErrorAt(step, value), false)
		require.NoError(t, err)
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
		trial := s.AskRun(t)
		if i < 8 && judged(bad(1)) {
			t.Errorf("judged after %d trials", i)
		}
		s.Complete(t, trial, enginetest.ErrorAt(0, errorOf(trial)))
	}
	if !judged(bad(1)) || !judged(bad(2)) {
		t.Error("the run is not unpromising")
	}
	good := bad(1)
	good.Parameters["x"] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0}}
	good.Measurements[0] = completed(0, 1, 0.1)
	if judged(good) {
		t.Error("a leading run is unpromising")
	}
}

// Judging a run fits nothing that the default designer has not fitted for the run's suggestion.
func TestJudgingFitsNothing(t *testing.T) {
	climbs := engine.CountFits(t)
	s := enginetest.New(t, enginetest.Options{})
	study := s.Runs(t, func(asked *dparetov1.StudySpec) {
		enginetest.Checkpoints(asked)
		asked.Algorithm.InitialTrials = 8
	})
	for range 12 {
		trial := s.AskRun(t)
		x, epochs := trial.GetParameters()["x"].GetDoubleValue(), trial.GetParameters()["epochs"].GetIntValue()
		for step := int64(1); step < epochs; step *= 2 {
			s.Report(t, trial, enginetest.ErrorAt(step, 0.1+0.8*x+0.1/float64(step)))
		}
		s.Complete(t, trial, enginetest.ErrorAt(0, 0.1+0.8*x))
	}
	trial := s.AskRun(t)
	before := climbs.Load()
	if before == 0 {
		t.Error("the designer has fitted nothing")
	}
	cached, err := s.Get(&storev1.StudyRecord{Study: study})
	require.NoError(t, err)
	m, _, err := cached.Compiled.Measurements.Accept("measurement", space.Point{0.9, 64}, enginetest.ErrorAt(1, 0.9), false)
	require.NoError(t, err)
	trial.Measurements = []*dparetov1.Measurement{m}
	require.NoError(t, require.ErrOf(s.Engine.IsUnpromising(t.Context(), "runs", study.GetUid(), trial, 64)))
	if n := climbs.Load() - before; n != 0 {
		t.Errorf("judging climbs %d times", n)
	}
}

// Nothing is kept of the runs of complete trials, whatever their workers still say.
func TestCompleteTrialsAreForgotten(t *testing.T) {
	s := enginetest.With(t, enginetest.At(0.25, 64))
	cached, err := s.Get(&storev1.StudyRecord{Study: s.Runs(t, enginetest.Checkpoints)})
	require.NoError(t, err)
	trial := s.AskRun(t)
	s.Report(t, trial, enginetest.ErrorAt(1, 0.5))
	if n := s.Engine.UsefulKnown(cached); n != 1 {
		t.Errorf("the last useful step of %d trials is kept, want 1", n)
	}
	s.Complete(t, trial, nil)
	gone := s.AskRun(t)
	_, later := s.Engine.ShouldStop(cached, gone, 1)
	s.Complete(t, gone, enginetest.ErrorAt(0, 0.5))
	require.NoError(t, later(t.Context()))
	late := &dparetov1.AddMeasurementRequest{Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: enginetest.ErrorAt(2, 0.4)}
	if _, err := s.AddMeasurement(t.Context(), late); err == nil {
		t.Error("a complete trial was measured")
	}
	if n := s.Engine.UsefulKnown(cached); n != 0 {
		t.Errorf("the last useful step of %d trials is kept, want 0", n)
	}
}
