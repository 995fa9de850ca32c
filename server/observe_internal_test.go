package server

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// Suggestions that were prepared, and those of a designer that stands in for another,
// are counted.
func TestSuggestionsAreCounted(t *testing.T) {
	random := suggest.NewRandom()
	broken := errors.New("the model is broken")
	outcomes, entered := make(chan error, 2), make(chan struct{}, 2)
	outcomes <- nil
	outcomes <- broken
	s := serviceWith(t, fakeDesigner{func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		entered <- struct{}{}
		if err := <-outcomes; err != nil {
			return nil, err
		}
		return random.Suggest(ctx, p, h, r)
	}})
	runs(t, s, modelBased)
	trial := askRun(t, s) // nothing was prepared
	<-entered
	completeRun(t, s, trial, errorAt(0, 0.5))
	<-entered    // the preparation knows its history
	askRun(t, s) // the stand-in's, which was prepared
	err := testutil.GatherAndCompare(s.metrics.Gatherer(), strings.NewReader(`# HELP dpareto_prepared_suggestions_total Passes of a model-based designer, by whether the suggestion had been prepared in the background (hit) or not (miss).
# TYPE dpareto_prepared_suggestions_total counter
dpareto_prepared_suggestions_total{result="hit"} 1
dpareto_prepared_suggestions_total{result="miss"} 1
# HELP dpareto_suggestion_fallbacks_total Trials created from suggestions of another designer because the study's had failed.
# TYPE dpareto_suggestion_fallbacks_total counter
dpareto_suggestion_fallbacks_total 1
# HELP dpareto_suggestions_total Trials created from suggestions, by the designer that really made them.
# TYPE dpareto_suggestions_total counter
dpareto_suggestions_total{designer="quasi_random"} 1
dpareto_suggestions_total{designer="random"} 1
`), "dpareto_prepared_suggestions_total", "dpareto_suggestion_fallbacks_total", "dpareto_suggestions_total")
	if err != nil {
		t.Error(err)
	}
}

// What counting, logging and (absent) tracing cost a call.
func BenchmarkObserve(b *testing.B) {
	s := New(Options{Logger: slog.New(slog.DiscardHandler)})
	defer s.Close()
	req := &dparetov1.CompleteTrialRequest{Name: "studies/svt/trials/17", LeaseToken: "0123456789abcdef"}
	info := &grpc.UnaryServerInfo{FullMethod: dparetov1.StudyService_CompleteTrial_FullMethodName}
	handler := func(context.Context, any) (any, error) { return req, nil }
	b.ReportAllocs()
	for b.Loop() {
		if _, err := s.observe(b.Context(), req, info, handler); err != nil {
			b.Fatal(err)
		}
	}
}

// Nobody who completes a trial waits for a scrape, however long that computes.
func TestScrapesHoldNobodyUp(t *testing.T) {
	type scrape struct{}
	scraping, release := make(chan struct{}), make(chan struct{})
	views := 0
	kv := hookedKV{view: func(ctx context.Context) {
		if ctx.Value(scrape{}) == nil {
			return
		}
		if views++; views == 2 { // after the studies are counted: of what is computed
			close(scraping)
			<-release
		}
	}}
	s := serviceOver(t, kv, Options{}, designerOf)
	runs(t, s, nil)
	first, second := askRun(t, s), askRun(t, s)
	completeRun(t, s, first, errorAt(0, 0.5))
	s.recent.add("other", "other") // so that the result to come is news
	scraped := make(chan error)
	go func() {
		_, err := s.totals(context.WithValue(context.Background(), scrape{}, true))
		scraped <- err
	}()
	<-scraping
	completed := make(chan struct{})
	go func() {
		defer close(completed)
		completeRun(t, s, second, errorAt(0, 0.4))
	}()
	select {
	case <-completed:
	case <-time.After(10 * time.Second):
		t.Error("the scrape holds up a result")
	}
	close(release)
	if err := <-scraped; err != nil {
		t.Error(err)
	}
	<-completed
}

// What a request is about, wherever its name stands.
func TestSubject(t *testing.T) {
	for _, tt := range []struct {
		request      any
		study, trial string
	}{
		{&dparetov1.GetStudyRequest{Name: "studies/a"}, "a", ""},
		{&dparetov1.CompleteTrialRequest{Name: "studies/a/trials/7"}, "a", "7"},
		{&dparetov1.CreateTrialRequest{Parent: "studies/a", Trial: &dparetov1.Trial{Name: "ignored"}}, "a", ""},
		{&dparetov1.CreateStudyRequest{StudyId: "a"}, "a", ""},
		{&dparetov1.UpdateStudyRequest{Study: &dparetov1.Study{Name: "studies/a"}}, "a", ""},
		{&dparetov1.UpdateTrialRequest{Trial: &dparetov1.Trial{Name: "studies/a/trials/7"}}, "a", "7"},
		{&dparetov1.UpdateTrialRequest{}, "", ""},
		{&dparetov1.ListStudiesRequest{}, "", ""},
		{&dparetov1.GetStudyRequest{Name: "elsewhere/a"}, "", ""},
	} {
		if study, trial := subject(tt.request); study != tt.study || trial != tt.trial {
			t.Errorf("%T: study %q, trial %q, want %q and %q", tt.request, study, trial, tt.study, tt.trial)
		}
	}
}
