package dpareto

import (
	"context"
	"errors"
	"io"
	"iter"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Watch returns the changes of the study after a revision as they happen, in the order of
// their revisions; after revision 0 everything that exists comes first. A slow reader
// gets only the last of several changes of a trial, or of the study's own fields.
//
// The sequence survives restarts of the server and ends with an error: the context's, one
// with the code NotFound if the study was deleted, even if another one has its name now,
// or one with the code OutOfRange if the study has no such revision because it was
// restored from a backup.
func (s *Study) Watch(ctx context.Context, after int64) iter.Seq2[*dparetov1.WatchStudyResponse, error] {
	return func(yield func(*dparetov1.WatchStudyResponse, error) bool) {
		study, err := s.Get(ctx)
		if err != nil {
			yield(nil, err)
			return
		}
		w := &watch{study: s, yield: yield, request: &dparetov1.WatchStudyRequest{
			Name: s.name, AfterRevision: after, StudyUid: study.GetUid(),
		}}
		if err := w.run(ctx); err != nil {
			yield(nil, newCallError(ctx, "watch "+s.name, err))
		}
	}
}

// watch is a sequence of changes.
type watch struct {
	study   *Study
	request *dparetov1.WatchStudyRequest // for the changes still to come
	yield   func(*dparetov1.WatchStudyResponse, error) bool
}

// run reads one stream after the other, until the caller stops or an error that is not
// transient.
func (w *watch) run(ctx context.Context) error {
	client := w.study.client
	pause := firstPause
	for {
		before := w.request.GetAfterRevision()
		err := w.stream(ctx)
		if err == nil || ctx.Err() != nil || client.conn.GetState() == connectivity.Shutdown || !isTransient(err) {
			return err
		}
		if w.request.GetAfterRevision() > before {
			pause = firstPause
		}
		if err := client.retry.wait(ctx, err, pause); err != nil {
			return err
		}
		pause = min(2*pause, longestPause)
	}
}

// stream reads one stream. It returns nil when the caller stops.
func (w *watch) stream(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := w.study.client.Studies.WatchStudy(ctx, w.request)
	if err != nil {
		return err
	}
	for {
		change, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return status.Error(codes.Unavailable, "the stream ended") // run decides
		}
		if err != nil {
			return err
		}
		w.request.AfterRevision = change.GetRevision()
		if !w.yield(change, nil) {
			return nil
		}
	}
}
