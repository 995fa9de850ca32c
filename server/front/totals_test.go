package front

import (
	"context"
	"testing"

	"github.com/dpareto/dpareto/server/enginetest"
)

// Nobody who completes a trial waits for a scrape, however long that computes.
func TestScrapesHoldNobodyUp(t *testing.T) {
	completeDuringView(t, 2) // after the studies are counted: of what is computed
}

// Who completes a trial does not wait until the hypervolumes are computed, whose history is locked.
func TestHypervolumesKeepNobodyWaiting(t *testing.T) {
	completeDuringView(t, 3) // of the trials
}

// completeDuringView completes a trial while a scrape holds a view of the store, counted from 1.
func completeDuringView(t *testing.T, view int) {
	t.Helper()
	type scrape struct{}
	scraping, release := make(chan struct{}), make(chan struct{})
	views := 0
	hooks := enginetest.Hooks{View: func(ctx context.Context) {
		if ctx.Value(scrape{}) == nil {
			return
		}
		if views++; views == view {
			close(scraping)
			<-release
		}
	}}
	s := enginetest.New(t, enginetest.Options{Around: hooks.Around})
	totals := NewTotals(s.Studies, s.Store, frontsOf(s), s.Metrics)
	s.Runs(t, nil)
	first, second := s.AskRun(t), s.AskRun(t)
	s.Complete(t, first, enginetest.ErrorAt(0, 0.5))
	totals.recent.add("other", "other") // so that the result to come is news
	scraped := make(chan error, 1)
	go func() {
		_, err := totals.totals(context.WithValue(context.Background(), scrape{}, true))
		scraped <- err
	}()
	<-scraping
	if totals.recent.computing.TryLock() {
		t.Error("no hypervolume is being computed")
		totals.recent.computing.Unlock()
	}
	s.Complete(t, second, enginetest.ErrorAt(0, 0.4)) // the scrape does not hold it up
	close(release)
	if err := <-scraped; err != nil {
		t.Error(err)
	}
}

func TestRecentStudies(t *testing.T) {
	var r recentStudies
	for i := range 2 * maxRecent {
		id := string(rune('a' + i))
		r.add(id, id)
		r.add(id, id)
	}
	r.add("z", "z")
	if len(r.studies) != maxRecent || r.studies[0].id != "z" || r.studies[1].id != string(rune('a'+2*maxRecent-1)) {
		t.Errorf("%d studies, the last ones %s and %s", len(r.studies), r.studies[0].id, r.studies[1].id)
	}
}
