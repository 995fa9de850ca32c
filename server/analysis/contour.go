package analysis

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// AnalyzeContour implements AnalysisService.
func (a *Analyses) AnalyzeContour(context.Context, *dparetov1.AnalyzeContourRequest) (*dparetov1.AnalyzeContourResponse, error) {
	return nil, status.Error(codes.Unimplemented, "AnalyzeContour")
}
