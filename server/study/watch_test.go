package study_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/publish/private"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// A reader that is slower than the changes come gets the last state of what changed, and
// nothing that has changed is missing.
func TestSlowWatch(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Simple(t)
	const trials, changes = 3*study.MaxWatched + 1, 50
	require.NoError(t, require.ErrOf(s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w", Count: trials})))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	notes := make(map[int64]string)
	sent := 0
	err := s.Watch(ctx, &dparetov1.WatchStudyRequest{Name: "studies/s"}, func(change *dparetov1.WatchStudyResponse) error {
		if sent++; sent == 1 { // the study itself; now the last trial changes often before it is read
			for i := range changes {
				if _, err := s.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
					Trial:      &dparetov1.Trial{Name: resource.TrialName("s", trials), Note: strconv.Itoa(i + 1)},
					UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
				}); err != nil {
					return err
				}
			}
		}
		notes[change.GetTrial().GetNumber()] = change.GetTrial().GetNote()
		if change.GetRevision() == 1+trials+changes {
			cancel()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if len(notes) != trials+1 || sent != trials+1 || notes[trials] != strconv.Itoa(changes) {
		t.Errorf("%d changes of %d trials, the last with note %q", sent, len(notes)-1, notes[trials])
	}
	if n := s.Watched(); n != 0 {
		t.Errorf("%d studies are still watched", n)
	}
}

// A stream that nobody ends, ends when the server is closed.
func TestWatchAtClose(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Simple(t)
	sent, ended := make(chan *dparetov1.WatchStudyResponse), make(chan error)
	go func() {
		ended <- s.Watch(context.Background(), &dparetov1.WatchStudyRequest{Name: "studies/s"}, func(change *dparetov1.WatchStudyResponse) error {
			sent <- change
			return nil
		})
	}()
	if change := <-sent; change.GetStudy() == nil {
		t.Errorf("change %v", change)
	}
	s.Close()
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Errorf("error %v", err)
	}
	if n := s.Watched(); n != 0 {
		t.Errorf("%d studies are still watched", n)
	}
}

// A stream that was let in before its study was replaced by one with random stopping ends.
func TestWatchOfSecrets(t *testing.T) {
	s := enginetest.New(t, enginetest.Options{
		Designer: enginetest.Always(enginetest.Random()),
		Policies: private.Policies(noise.Seeded(1), slog.New(slog.DiscardHandler)),
	})
	s.Simple(t)
	err := s.Store.Update(t.Context(), store.In(store.StudyScope("s")), func(tx *store.Tx) error {
		record, err := tx.Study("s")
		if err != nil {
			return err
		}
		record.Study.Spec.RandomStopping = new(dparetov1.RandomStoppingSpec)
		return tx.PutStudy("s", record)
	})
	require.NoError(t, err)
	err = s.Watch(t.Context(), &dparetov1.WatchStudyRequest{Name: "studies/s"}, func(change *dparetov1.WatchStudyResponse) error {
		t.Errorf("sent %v", change)
		return context.Canceled
	})
	if status.Code(err) != codes.FailedPrecondition {
		t.Error(err)
	}
}
