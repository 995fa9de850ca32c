package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
)

// simple returns a service with the study studies/s, whose designer is d.
func simple(t *testing.T, d suggest.Designer) *enginetest.Service {
	t.Helper()
	s := enginetest.With(t, d)
	s.Simple(t)
	return s
}

// A designer that fails, panics or comes short locks nobody out.
func TestBrokenDesigner(t *testing.T) {
	for name, d := range map[string]enginetest.Designer{
		"error": func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error) {
			return nil, errors.New("broken")
		},
		"panic": func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error) {
			panic("broken")
		},
		"outside": func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error) {
			return []suggest.Suggestion{{Point: []float64{7}}}, nil
		},
		"wrong dimension": func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error) {
			return []suggest.Suggestion{{Point: []float64{0.1, 0.2}}}, nil
		},
		"short": func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error) {
			return nil, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := simple(t, d)
			trial := s.Ask(t, "w")
			if p := trial.GetProvenance(); p.GetAlgorithm() != "quasi_random" || !strings.Contains(p.GetFallbackReason(), "fake failed") {
				t.Errorf("provenance %v", p)
			}
			if again := s.Ask(t, "w"); again.GetName() != trial.GetName() {
				t.Errorf("the worker holds %s and got %s", trial.GetName(), again.GetName())
			}
		})
	}
}

// While a suggestion is being computed results are accepted, trials can be created,
// and concurrent requests are answered together afterwards.
func TestSlowDesigner(t *testing.T) {
	started, proceed := make(chan int, 10), make(chan struct{})
	random := random.New()
	s := simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		started <- r.Count
		<-proceed
		return random.Suggest(ctx, p, h, r)
	}))
	results := make(chan *dparetov1.Trial)
	request := func(worker string) {
		resp, err := s.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: worker})
		if err != nil {
			t.Error(err)
			results <- nil
			return
		}
		results <- resp.GetTrials()[0]
	}
	go request("a")
	if n := <-started; n != 1 {
		t.Errorf("first batch of %d", n)
	}
	go request("b")
	go request("c")
	for waiting := 0; waiting < 2; { // until both are in the queue
		waiting = s.Engine.Waiting()
	}
	// The study's writes go on meanwhile.
	y := 0.5
	created, err := s.CreateTrial(t.Context(), &dparetov1.CreateTrialRequest{Parent: "studies/s", Trial: &dparetov1.Trial{
		Parameters:       map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.25}}},
		FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"y": {Value: &y}}},
	}})
	require.NoError(t, err)
	close(proceed)
	names := map[string]bool{created.GetTrial().GetName(): true}
	for range 3 {
		names[(<-results).GetName()] = true
	}
	if len(names) != 4 {
		t.Errorf("trials %v", names)
	}
	<-started // the first batch again, because the imported trial took its number
	if n := <-started; n != 2 {
		t.Errorf("second batch of %d, want both requests together", n)
	}
}

// createAt asks for a trial with a value of the parameter.
func createAt(ctx context.Context, s *enginetest.Service, x float64) error {
	_, err := s.CreateTrial(ctx, &dparetov1.CreateTrialRequest{Parent: "studies/s", Trial: &dparetov1.Trial{
		Parameters:       map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}},
		FinalMeasurement: &dparetov1.Measurement{Metrics: map[string]*dparetov1.MetricValue{"y": {Value: new(0.5)}}},
	}})
	return err
}

// Users who create trials faster than the designer suggests them do not keep workers
// from theirs. Every suggestion has draws of its own, and says what it was made from.
func TestTrialsAreCreatedDuringEverySuggestion(t *testing.T) {
	var s *enginetest.Service
	var drawn []int64 // first number of every call of the designer
	s = simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		drawn = append(drawn, r.Number)
		for range 3 {
			if err := createAt(ctx, s, 0.25); err != nil {
				return nil, err
			}
		}
		return random.New().Suggest(ctx, p, h, r)
	}))
	seen := make(map[int64]bool)
	for i, conditions := range [][]*dparetov1.SuggestionCondition{
		nil,
		{{FixedParameters: map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.5}}}}},
	} {
		drawn = nil
		count := int32(2) // in one pass
		if conditions != nil {
			count = 1
		}
		resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{
			Parent: "studies/s", WorkerId: strconv.Itoa(i), Count: count, Conditions: conditions,
		})
		if err != nil || len(resp.GetTrials()) != int(count) {
			t.Fatalf("%v: %v", err, resp)
		}
		if len(drawn) != engine.MaxRounds {
			t.Errorf("%d rounds, want %d", len(drawn), engine.MaxRounds)
		}
		for j, trial := range resp.GetTrials() {
			number, p := drawn[len(drawn)-1]+int64(j), trial.GetProvenance()
			if p.GetDrawnFor() != number || trial.GetNumber() != number+3 || p.GetFallbackReason() != "" || seen[number] {
				t.Errorf("trial %d, drawn for %d, want %d: %v", trial.GetNumber(), p.GetDrawnFor(), number, p)
			}
			seen[number] = true
			// The revision of the study when the last round began, which is before its creations.
			if want := trial.GetRevision() - int64(j) - 4; p.GetStudyRevision() != want {
				t.Errorf("made from revision %d, want %d", p.GetStudyRevision(), want)
			}
		}
	}
}

// Trials that are drawn in different ways at the same time are those that would be drawn
// one after the other.
func TestDrawsAreNotShared(t *testing.T) {
	random := random.New()
	s := simple(t, random)
	const greedy, modest, asked = 3 * engine.MaxBatch, 4, 25
	var calls errgroup.Group
	request := func(req *dparetov1.SuggestTrialsRequest) func() error {
		return func() error {
			resp, err := s.SuggestTrials(t.Context(), req)
			if n := len(resp.GetTrials()); err == nil && n != int(req.GetCount()) {
				return fmt.Errorf("%d trials instead of %d: %v", n, req.GetCount(), resp.GetEndReason())
			}
			return err
		}
	}
	noResume := false
	for i := range modest {
		worker := strconv.Itoa(i)
		calls.Go(func() error {
			for range asked {
				if err := request(&dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: worker, Count: 1, Resume: &noResume})(); err != nil {
					return err
				}
				if err := createAt(t.Context(), s, 0.25); err != nil {
					return err
				}
			}
			return nil
		})
		calls.Go(request(&dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "greedy" + worker, Count: greedy}))
		calls.Go(request(&dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "picky" + worker, Count: 1, Conditions: []*dparetov1.SuggestionCondition{
			{FixedParameters: map[string]*dparetov1.Value{"x": {Kind: &dparetov1.Value_DoubleValue{DoubleValue: 0.5}}}},
		}}))
	}
	require.NoError(t, calls.Wait())
	list, err := s.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/s", PageSize: 1000})
	require.NoError(t, err)
	study, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/s"})
	require.NoError(t, err)
	compiled, err := spec.Compile("spec", study.GetStudy().GetSpec())
	require.NoError(t, err)
	suggested := 0
	for _, trial := range list.GetTrials() {
		x := trial.GetParameters()["x"].GetDoubleValue()
		if trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
			continue
		}
		suggested++
		if x == 0.5 {
			continue // its condition says so
		}
		alone, err := random.Suggest(t.Context(), compiled.Problem, new(suggest.History),
			suggest.Request{Count: 1, Seed: study.GetStudy().GetSeed(), Number: trial.GetNumber()})
		if err != nil || x != alone[0].Point[0] || trial.GetProvenance().GetDrawnFor() != 0 {
			t.Errorf("trial %d is at %v, drawn for %d; alone it would be at %v: %v", trial.GetNumber(), x, trial.GetProvenance().GetDrawnFor(), alone, err)
		}
	}
	if want := modest * (asked + greedy + 1); suggested != want {
		t.Errorf("%d trials, want %d", suggested, want)
	}
}

// A caller that gives up gets its trial when it asks again.
func TestAbandonedRequest(t *testing.T) {
	started, proceed := make(chan struct{}, 10), make(chan struct{})
	random := random.New()
	s := simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		started <- struct{}{}
		<-proceed
		return random.Suggest(ctx, p, h, r)
	}))
	ctx, cancel := context.WithCancel(t.Context())
	failed := make(chan error)
	go func() {
		_, err := s.SuggestTrials(ctx, &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w"})
		failed <- err
	}()
	<-started
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	close(proceed)
	if trial := s.Ask(t, "w"); trial.GetNumber() != 1 {
		t.Errorf("trial %d, want 1: nothing was created for nobody", trial.GetNumber())
	}
}

// A worker that asks for many trials delays another by one pass, not by all of them.
func TestGreedyRequest(t *testing.T) {
	started, proceed := make(chan int, 100), make(chan struct{})
	random := random.New()
	s := simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		started <- r.Count
		<-proceed
		return random.Suggest(ctx, p, h, r)
	}))
	request := func(worker string, count int32) chan *dparetov1.SuggestTrialsResponse {
		done := make(chan *dparetov1.SuggestTrialsResponse, 1)
		go func() {
			resp, err := s.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: worker, Count: count})
			if err != nil {
				t.Error(err)
			}
			done <- resp
		}()
		return done
	}
	greedy := request("greedy", 100)
	if n := <-started; n != engine.MaxBatch {
		t.Errorf("first pass of %d", n)
	}
	modest := request("modest", 1)
	for waiting := 0; waiting < 1; { // until it is in the queue
		waiting = s.Engine.Waiting()
	}
	proceed <- struct{}{}
	proceed <- struct{}{} // the second pass serves both
	if resp := <-modest; len(resp.GetTrials()) != 1 {
		t.Errorf("%d trials", len(resp.GetTrials()))
	}
	close(proceed)
	resp := <-greedy
	numbers := make(map[int64]bool)
	for _, trial := range resp.GetTrials() {
		numbers[trial.GetNumber()] = true
	}
	if len(numbers) != 100 || resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED {
		t.Errorf("%d different trials, %s", len(numbers), resp.GetEndReason())
	}
}

// A call that waits for a suggestion when the server closes is told to try again.
func TestCloseDuringSuggestion(t *testing.T) {
	started := make(chan struct{})
	s := simple(t, enginetest.Designer(func(ctx context.Context, _ *suggest.Problem, _ *suggest.History, _ suggest.Request) ([]suggest.Suggestion, error) {
		close(started)
		<-ctx.Done()
		return nil, ctx.Err()
	}))
	failed := make(chan error)
	go func() {
		_, err := s.SuggestTrials(context.Background(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w"})
		failed <- err
	}()
	<-started
	s.Close()
	if err := failure.Status(<-failed); status.Code(err) != codes.Unavailable {
		t.Errorf("error %v", err)
	}
	_, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w"})
	if status.Code(failure.Status(err)) != codes.Unavailable {
		t.Errorf("after Close: %v", err)
	}
}

// A demand that fails after some of its trials were created goes on with them when it is
// repeated: no more are created than were asked for.
func TestRepeatAfterPartOfDemand(t *testing.T) {
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	calls := 0
	s := simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		if calls++; calls == 2 {
			giveUp()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		return random.New().Suggest(ctx, p, h, r)
	}))
	req := &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w", Count: engine.MaxBatch + 4, RequestId: "x"}
	if _, err := s.SuggestTrials(ctx, req); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v", err)
	}
	list := func() []*dparetov1.Trial {
		resp, err := s.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: "studies/s"})
		require.NoError(t, err)
		return resp.GetTrials()
	}
	before := list()
	if len(before) != engine.MaxBatch {
		t.Fatalf("%d trials were created", len(before))
	}
	var answers [2]*dparetov1.SuggestTrialsResponse
	for i := range answers {
		var err error
		if answers[i], err = s.SuggestTrials(t.Context(), req); err != nil {
			t.Fatal(err)
		}
	}
	if d := cmp.Diff(answers[0], answers[1], protocmp.Transform()); d != "" {
		t.Error(d)
	}
	tokens := protocmp.IgnoreFields(&dparetov1.Lease{}, "token") // only the worker's answer has them
	if d := cmp.Diff(list(), answers[0].GetTrials(), protocmp.Transform(), tokens); d != "" || len(answers[0].GetTrials()) != engine.MaxBatch+4 {
		t.Errorf("%d trials: %s", len(answers[0].GetTrials()), d)
	}
	if d := cmp.Diff(before, answers[0].GetTrials()[:engine.MaxBatch], protocmp.Transform(), tokens); d != "" {
		t.Errorf("the first trials have changed: %s", d)
	}
}

// neighbourKV calls the function of one Update first behind the write of a neighbour, which is
// thrown away with what the function wrote: a commit was tried again without it.
type neighbourKV struct {
	store.KV
	updates   atomic.Int64 // until the one
	neighbour func(*store.Store) error
}

func (k *neighbourKV) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	return k.KV.Update(ctx, scopes, func(w store.ReadWriter) error {
		if k.updates.Add(-1) == 0 {
			first := store.NewOverlay(w)
			records, err := store.NewReader(ctx, nested{first})
			if err == nil {
				err = k.neighbour(records)
			}
			if err != nil {
				return err
			}
			_ = fn(first) // whatever it says
		}
		return fn(w)
	})
}

// nested is a store within an Update.
type nested struct{ w store.ReadWriter }

func (o nested) View(_ context.Context, fn func(store.Reader) error) error { return fn(o.w) }
func (o nested) Update(_ context.Context, _ store.Scopes, fn func(store.ReadWriter) error) error {
	return fn(o.w)
}
func (nested) Close() error { return nil }

// A pass that is out of date in the first call of its function, and not in the second, hands out
// no trial that nobody gets.
func TestSuggestionAfterRerun(t *testing.T) {
	kv := &neighbourKV{neighbour: func(records *store.Store) error {
		return records.Update(t.Context(), store.In(store.StudyScope("s")), func(tx *store.Tx) error {
			record, err := tx.Study("s")
			if err != nil {
				return err
			}
			record.NextTrialNumber++
			return tx.PutStudy("s", record)
		})
	}}
	s := enginetest.New(t, enginetest.Options{
		Around:   func(db store.KV) store.KV { kv.KV = db; return kv },
		Designer: enginetest.Always(enginetest.At(0.5)),
	})
	s.Simple(t)
	kv.updates.Store(3) // the first Update, whose function runs twice, finds nothing to hand out
	s.Ask(t, "another")
	study, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/s"})
	require.NoError(t, err)
	if n := study.GetStudy().GetTrialCounts().GetActive(); kv.updates.Load() > 0 || n != 1 {
		t.Errorf("%d trials are active, 1 was asked for", n)
	}
}

// A suggestion from a space that grows while it is made is made again.
func TestSpaceGrowsDuringSuggestion(t *testing.T) {
	var s *enginetest.Service
	var most []float64
	s = simple(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		most = append(most, p.Space.Parameters[0].Max)
		if len(most) == 1 {
			resp, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: "studies/s"})
			if err != nil {
				return nil, err
			}
			resp.GetStudy().GetSpec().GetParameters()[0].GetDoubleDomain().Max *= 2
			mask := &fieldmaskpb.FieldMask{Paths: []string{"spec.parameters"}}
			if _, err := s.UpdateStudy(t.Context(), &dparetov1.UpdateStudyRequest{Study: resp.GetStudy(), UpdateMask: mask}); err != nil {
				return nil, err
			}
		}
		return random.New().Suggest(ctx, p, h, r)
	}))
	resp, err := s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w"})
	if err != nil || len(resp.GetTrials()) != 1 {
		t.Fatalf("%v, %v", resp, err)
	}
	if len(most) != 2 || most[1] != 2*most[0] || resp.GetTrials()[0].GetProvenance().GetFallbackReason() != "" {
		t.Errorf("made in spaces up to %v: %v", most, resp.GetTrials())
	}
}

// Metrics count prepared suggestions, and suggestions by a fallback designer.
func TestSuggestionsAreCounted(t *testing.T) {
	random := random.New()
	broken := errors.New("the model is broken")
	outcomes, entered := make(chan error, 2), make(chan struct{}, 2)
	outcomes <- nil
	outcomes <- broken
	s := enginetest.With(t, enginetest.Designer(func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		entered <- struct{}{}
		if err := <-outcomes; err != nil {
			return nil, err
		}
		return random.Suggest(ctx, p, h, r)
	}))
	front.NewTotals(s.Studies, s.Store, front.New(front.Options{Studies: s.Studies, Histories: s.Histories}), s.Metrics) // counts
	s.Runs(t, enginetest.ModelBased)
	trial := s.AskRun(t) // nothing was prepared
	<-entered
	s.Complete(t, trial, enginetest.ErrorAt(0, 0.5))
	<-entered   // the preparation knows its history
	s.AskRun(t) // the stand-in's, which was prepared
	err := testutil.GatherAndCompare(s.Metrics.Gatherer(), strings.NewReader(`# HELP dpareto_prepared_suggestions_total Passes of a model-based designer, by whether the suggestion had been prepared in the background (hit) or not (miss).
# TYPE dpareto_prepared_suggestions_total counter
dpareto_prepared_suggestions_total{result="hit"} 1
dpareto_prepared_suggestions_total{result="miss"} 1
# HELP dpareto_suggestion_fallbacks_total Trials created from suggestions of another designer because the study's designer failed.
# TYPE dpareto_suggestion_fallbacks_total counter
dpareto_suggestion_fallbacks_total 1
# HELP dpareto_suggestions_total Trials created from suggestions, by the designer that made the suggestion.
# TYPE dpareto_suggestions_total counter
dpareto_suggestions_total{designer="quasi_random"} 1
dpareto_suggestions_total{designer="random"} 1
`), "dpareto_prepared_suggestions_total", "dpareto_suggestion_fallbacks_total", "dpareto_suggestions_total")
	if err != nil {
		t.Error(err)
	}
}
