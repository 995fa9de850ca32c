package server_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// watch is a stream of changes.
type watch struct {
	f      *fixture
	stream dparetov1.StudyService_WatchStudyClient
	cancel context.CancelFunc
}

// watch starts to watch a study.
func (f *fixture) watch(req *dparetov1.WatchStudyRequest) *watch {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	stream, err := f.studies.WatchStudy(ctx, req)
	if err != nil {
		f.t.Fatal(err)
	}
	return &watch{f, stream, cancel}
}

// next returns the next change, which must come.
func (w *watch) next() *dparetov1.WatchStudyResponse {
	w.f.t.Helper()
	resp, err := w.stream.Recv()
	if err != nil {
		w.f.t.Fatal(err)
	}
	return resp
}

// want checks the next changes, given as text.
func (w *watch) want(changes ...string) (last int64) {
	w.f.t.Helper()
	var got []string
	for range changes {
		resp := w.next()
		last = resp.GetRevision()
		switch change := resp.GetChange().(type) {
		case *dparetov1.WatchStudyResponse_Study:
			got = append(got, "study "+change.Study.GetDescription())
		case *dparetov1.WatchStudyResponse_Trial:
			got = append(got, fmt.Sprint(change.Trial.GetNumber(), " ", change.Trial.GetState()))
			if change.Trial.GetRevision() != resp.GetRevision() {
				w.f.t.Errorf("revision %d of %v", resp.GetRevision(), change.Trial)
			}
		case *dparetov1.WatchStudyResponse_DeletedTrial:
			got = append(got, "deleted "+change.DeletedTrial)
		}
	}
	if d := cmp.Diff(changes, got); d != "" {
		w.f.t.Error(d)
	}
	return last
}

// end checks how the stream ends.
func (w *watch) end(code codes.Code, text string) {
	w.f.t.Helper()
	resp, err := w.stream.Recv()
	if err == nil {
		w.f.t.Errorf("another change: %v", resp)
	}
	wantCode(w.f.t, err, code, text)
	w.cancel()
}

const (
	activeTrial    = " TRIAL_STATE_ACTIVE"
	succeededTrial = " TRIAL_STATE_SUCCEEDED"
)

// A stream tells everything that there is, and then every change, in order; another goes
// on where one was left, over a restart.
func TestWatchStudy(t *testing.T) {
	f := start(t)
	study := f.create("s", svtSpec())
	gone := f.tell(f.one(study, "w"), 0.5)
	f.tell(f.one(study, "w"), 0.4)
	if _, err := f.studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: gone.GetName()}); err != nil {
		t.Fatal(err)
	}
	w := f.watch(&dparetov1.WatchStudyRequest{Name: study})
	w.want("study ", "2"+succeededTrial) // nothing of what is gone

	f.clock.Advance(time.Minute)
	third := f.one(study, "w")
	w.want("3" + activeTrial)
	f.tell(third, 0.3)
	change := w.next()
	if d := cmp.Diff(f.trial(third.GetName()), change.GetTrial(), protocmp.Transform()); d != "" || !change.GetTime().AsTime().Equal(f.clock.Now()) {
		t.Errorf("at %v: %s", change.GetTime().AsTime(), d)
	}
	left := change.GetRevision()
	w.cancel()

	f.restart()
	if _, err := f.update(&dparetov1.Study{Name: study, Description: "new"}, "description"); err != nil {
		t.Fatal(err)
	}
	fourth := f.one(study, "w")
	if _, err := f.studies.UpdateTrial(t.Context(), &dparetov1.UpdateTrialRequest{
		Trial: &dparetov1.Trial{Name: third.GetName(), Note: "x"}, UpdateMask: &fieldmaskpb.FieldMask{Paths: []string{"note"}},
	}); err != nil {
		t.Fatal(err)
	}
	f.tell(fourth, 0.2)
	f.clock.Advance(time.Minute)
	if _, err := f.studies.DeleteTrial(t.Context(), &dparetov1.DeleteTrialRequest{Name: third.GetName()}); err != nil {
		t.Fatal(err)
	}
	w = f.watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: left, StudyUid: f.study(study).GetUid()})
	last := w.want("study new", "4"+succeededTrial)
	change = w.next()
	if change.GetDeletedTrial() != third.GetName() || !change.GetTime().AsTime().Equal(f.clock.Now()) || change.GetRevision() <= last {
		t.Errorf("change %v", change)
	}
	if _, err := f.studies.PauseStudy(t.Context(), &dparetov1.PauseStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	if state := w.next().GetStudy().GetState(); state != dparetov1.StudyState_STUDY_STATE_PAUSED {
		t.Errorf("state %v", state)
	}
	w.cancel()
}

// Streams end with their study, are not those of another one of its name, and end when
// the server is to stop.
func TestWatchEnds(t *testing.T) {
	f := start(t)
	study := f.create("s", svtSpec())
	f.create("other", svtSpec())
	uid := f.study(study).GetUid()
	w, other := f.watch(&dparetov1.WatchStudyRequest{Name: study}), f.watch(&dparetov1.WatchStudyRequest{Name: "studies/other"})
	w.want("study ")
	other.want("study ")
	if _, err := f.studies.DeleteStudy(t.Context(), &dparetov1.DeleteStudyRequest{Name: study}); err != nil {
		t.Fatal(err)
	}
	w.end(codes.NotFound, "studies/s")

	f.create("s", svtSpec())
	f.watch(&dparetov1.WatchStudyRequest{Name: study, StudyUid: uid}).end(codes.NotFound, "studies/s")
	f.watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 2}).end(codes.OutOfRange, "after_revision is 2")
	f.watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: -1}).end(codes.InvalidArgument, "after_revision")
	f.watch(&dparetov1.WatchStudyRequest{Name: "s"}).end(codes.InvalidArgument, "name")
	f.watch(&dparetov1.WatchStudyRequest{Name: "studies/none"}).end(codes.NotFound, "studies/none")
	upToDate := f.watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 1})

	f.server.Drain()
	other.end(codes.Unavailable, "shutting down")
	upToDate.end(codes.Unavailable, "shutting down")
	f.watch(&dparetov1.WatchStudyRequest{Name: study, AfterRevision: 1}).end(codes.Unavailable, "shutting down")
	f.one(study, "w") // calls are still answered
}

// Many streams see all changes of many workers.
func TestWatchMany(t *testing.T) {
	f := start(t)
	study := f.create("s", svtSpec())
	const streams, trials = 5, 40
	watches := make([]*watch, streams)
	for i := range watches {
		watches[i] = f.watch(&dparetov1.WatchStudyRequest{Name: study})
	}
	done := make(chan int)
	for _, w := range watches {
		go func() {
			completed, last := 0, int64(0)
			for completed < trials {
				resp, err := w.stream.Recv()
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
			w.cancel()
			done <- completed
		}()
	}
	for range trials {
		f.tell(f.one(study, "w"), 0.5)
	}
	for range streams {
		if n := <-done; n != trials {
			t.Errorf("%d trials were seen to complete, want %d", n, trials)
		}
	}
}
