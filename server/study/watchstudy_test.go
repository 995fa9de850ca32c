package study_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/servertest"
)

// end checks how the stream ends.
func end(w *servertest.Watch, code codes.Code, text string) {
	w.F.T.Helper()
	resp, err := w.Stream.Recv()
	if err == nil {
		w.F.T.Errorf("another change: %v", resp)
	}
	servertest.WantCode(w.F.T, err, code, text)
	w.Cancel()
}

const (
	activeTrial    = " TRIAL_STATE_ACTIVE"
	succeededTrial = " TRIAL_STATE_SUCCEEDED"
)

// A stream tells everything that there is, and then every change, in order; another goes
// on where one was left, over a restart.
func TestWatchStudy(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	gone := f.Tell(f.One(study, "w"), 0.5)
	f.Tell(f.One(study, "w"), 0.4)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: gone.GetName()})))
	w := f.Watch(&dparetov1.WatchStudyRequest{Name: study})
	w.Want("study ", "2"+succeededTrial) // nothing of what is gone

	f.Clock.Advance(time.Minute)
	third := f.One(study, "w")
	w.Want("3" + activeTrial)
	f.Tell(third, 0.3)
	change := w.Next()
	if d := cmp.Diff(f.Trial(third.GetName()), change.GetTrial(), protocmp.Transform()); d != "" || !change.GetTime().AsTime().Equal(f.Clock.Now()) {
		t.Errorf("at %v: %s", change.GetTime().AsTime(), d)
	}
	left := change.GetRevision()
	w.Cancel()

	f.Restart()
	require.NoError(t, require.ErrOf(f.Update(&dparetov1.Study{Name: study, Description: "new"}, "description")))
	fourth := f.One(study, "w")
	require.NoError(t, require.ErrOf(f.Studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
		Trial: &dparetov1.Trial{Name: third.GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
	})))
	f.Tell(fourth, 0.2)
	f.Clock.Advance(time.Minute)
	require.NoError(t, require.ErrOf(f.Studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: third.GetName()})))
	w = f.Watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: left, StudyUid: f.Study(study).GetUid()})
	last := w.Want("study new", "4"+succeededTrial)
	change = w.Next()
	if change.GetDeletedTrial() != third.GetName() || !change.GetTime().AsTime().Equal(f.Clock.Now()) || change.GetRevision() <= last {
		t.Errorf("change %v", change)
	}
	require.NoError(t, require.ErrOf(f.Studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: study})))
	if state := w.Next().GetStudy().GetState(); state != dparetov1.StudyState_STUDY_STATE_PAUSED {
		t.Errorf("state %v", state)
	}
	w.Cancel()
}

// Streams end with their study, are not those of another one of its name, and end when
// the server is to stop.
func TestWatchEnds(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	f.Create("other", servertest.SVTSpec())
	uid := f.Study(study).GetUid()
	w, other := f.Watch(&dparetov1.WatchStudyRequest{Name: study}), f.Watch(&dparetov1.WatchStudyRequest{Name: "studies/other"})
	w.Want("study ")
	other.Want("study ")
	require.NoError(t, require.ErrOf(f.Studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study})))
	end(w, codes.NotFound, "studies/s")

	f.Create("s", servertest.SVTSpec())
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: study, StudyUid: uid}), codes.NotFound, "studies/s")
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 2}), codes.OutOfRange, "after_revision is 2")
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: -1}), codes.InvalidArgument, "after_revision")
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: "s"}), codes.InvalidArgument, "name")
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: "studies/none"}), codes.NotFound, "studies/none")
	upToDate := f.Watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 1})

	f.Server.Drain()
	end(other, codes.Unavailable, "shutting down")
	end(upToDate, codes.Unavailable, "shutting down")
	end(f.Watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 1}), codes.Unavailable, "shutting down")
	f.One(study, "w") // calls are still answered
}

// Many streams see all changes of many workers.
func TestWatchMany(t *testing.T) {
	f := servertest.Start(t)
	study := f.Create("s", servertest.SVTSpec())
	const streams, trials = 5, 40
	watches := make([]*servertest.Watch, streams)
	for i := range watches {
		watches[i] = f.Watch(&dparetov1.WatchStudyRequest{Name: study})
	}
	done := make(chan int)
	for _, w := range watches {
		go func() {
			completed, last := 0, int64(0)
			for completed < trials {
				resp, err := w.Stream.Recv()
				if err != nil {
					t.Error(err)
					break
				}
				if resp.GetRevision() <= last {
					t.Errorf("revision %d after %d", resp.GetRevision(), last)
				}
				last = resp.GetRevision()
				if resp.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
					completed++
				}
			}
			w.Cancel()
			done <- completed
		}()
	}
	for range trials {
		f.Tell(f.One(study, "w"), 0.5)
	}
	for range streams {
		if n := <-done; n != trials {
			t.Errorf("%d trials were seen to complete, want %d", n, trials)
		}
	}
}
