package analysis

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// AnalyzeImportance implements AnalysisService.
func (a *Analyses) AnalyzeImportance(context.Context, *dparetov1.AnalyzeImportanceRequest) (*dparetov1.AnalyzeImportanceResponse, error) {
	return nil, status.Error(codes.Unimplemented, "AnalyzeImportance")
}
