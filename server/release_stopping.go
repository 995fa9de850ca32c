package server

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
)

// bestOfRandomStopping returns what a study with random stopping publishes: the release
// without a name and a time.
func (s *Server) bestOfRandomStopping(_ context.Context, _ *store.ReadTx, _ string, record *storev1.StudyRecord) (*dparetov1.Release, error) {
	return nil, status.Errorf(codes.FailedPrecondition, "%s has random_stopping, which this version of the server does not release", record.GetStudy().GetName())
}
