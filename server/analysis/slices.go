package analysis

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// AnalyzeSlices implements AnalysisService.
func (a *Analyses) AnalyzeSlices(context.Context, *dparetov1.AnalyzeSlicesRequest) (*dparetov1.AnalyzeSlicesResponse, error) {
	return nil, status.Error(codes.Unimplemented, "AnalyzeSlices")
}
