package servertest

import (
	"context"
	"fmt"

	"github.com/google/go-cmp/cmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// Watch is a stream of changes.
type Watch struct {
	F      *Fixture
	Stream dparetov1.StudyService_WatchStudyClient
	Cancel context.CancelFunc
}

// Watch starts to watch a study.
func (f *Fixture) Watch(req *dparetov1.WatchStudyRequest) *Watch {
	f.T.Helper()
	ctx, cancel := context.WithCancel(f.T.Context())
	stream, err := f.Studies.WatchStudy(ctx, req)
	require.NoError(f.T, err)
	return &Watch{f, stream, cancel}
}

// Next returns the next change, which must come.
func (w *Watch) Next() *dparetov1.WatchStudyResponse {
	w.F.T.Helper()
	resp, err := w.Stream.Recv()
	require.NoError(w.F.T, err)
	return resp
}

// Want checks the next changes, given as text.
func (w *Watch) Want(changes ...string) (last int64) {
	w.F.T.Helper()
	var got []string
	for range changes {
		resp := w.Next()
		last = resp.GetRevision()
		switch change := resp.GetChange().(type) {
		case *dparetov1.WatchStudyResponse_Study:
			got = append(got, "study "+change.Study.GetDescription())
		case *dparetov1.WatchStudyResponse_Trial:
			got = append(got, fmt.Sprint(change.Trial.GetNumber(), " ", change.Trial.GetState()))
			if change.Trial.GetRevision() != resp.GetRevision() {
				w.F.T.Errorf("revision %d of %v", resp.GetRevision(), change.Trial)
			}
		case *dparetov1.WatchStudyResponse_DeletedTrial:
			got = append(got, "deleted "+change.DeletedTrial)
		}
	}
	if d := cmp.Diff(changes, got); d != "" {
		w.F.T.Error(d)
	}
	return last
}
