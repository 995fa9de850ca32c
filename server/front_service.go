package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/front"
)

// frontService implements FrontService.
type frontService struct {
	dparetov1.UnimplementedFrontServiceServer

	fronts *front.Fronts
}

func (s *frontService) GetFront(ctx context.Context, req *dparetov1.GetFrontRequest) (*dparetov1.GetFrontResponse, error) {
	return s.fronts.GetFront(ctx, req)
}

func (s *frontService) QueryFront(ctx context.Context, req *dparetov1.QueryFrontRequest) (*dparetov1.QueryFrontResponse, error) {
	return s.fronts.QueryFront(ctx, req)
}

func (s *frontService) ListHypervolumes(ctx context.Context, req *dparetov1.ListHypervolumesRequest) (*dparetov1.ListHypervolumesResponse, error) {
	return s.fronts.ListHypervolumes(ctx, req)
}

func (s *frontService) PredictMetrics(ctx context.Context, req *dparetov1.PredictMetricsRequest) (*dparetov1.PredictMetricsResponse, error) {
	return s.fronts.PredictMetrics(ctx, req)
}
