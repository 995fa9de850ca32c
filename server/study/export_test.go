package study

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// MaxWatched bounds the changes that are read at a time for a stream.
const MaxWatched = maxWatched

// Watch sends the changes of a study, as WatchStudy does.
func (s *Studies) Watch(ctx context.Context, req *dparetov1.WatchStudyRequest, send func(*dparetov1.WatchStudyResponse) error) error {
	return watch(ctx, s, req, send)
}

// Watched returns the number of studies with streams.
func (s *Studies) Watched() int {
	s.watchers.mu.Lock()
	defer s.watchers.mu.Unlock()
	return len(s.watchers.waiting)
}

// Subscribe returns a channel that is ready after every change of a study.
func (s *Studies) Subscribe(id string) (wake <-chan struct{}, unsubscribe func()) {
	return s.watchers.subscribe(id)
}
