package server

import (
	"context"
	"runtime"

	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// GetServerInfo implements AdminService.
func (s *adminService) GetServerInfo(context.Context, *dparetov1.GetServerInfoRequest) (*dparetov1.GetServerInfoResponse, error) {
	resp := &dparetov1.GetServerInfoResponse{
		Version:         s.version,
		GoVersion:       runtime.Version(),
		StartTime:       timestamppb.New(s.started),
		StoreFormat:     store.Format,
		MaxRequestBytes: int64(s.access.limits.RequestBytes),
	}
	for _, algorithm := range algorithms {
		resp.Algorithms = append(resp.Algorithms, &dparetov1.AlgorithmInfo{
			Name:    algorithm,
			Version: newDesigner(algorithm, spec.DefaultInitialTrials).Version(),
		})
	}
	return resp, nil
}
