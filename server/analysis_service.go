package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/analysis"
)

// analysisService implements AnalysisService.
type analysisService struct {
	dparetov1.UnimplementedAnalysisServiceServer

	analyses *analysis.Analyses
}

func (s *analysisService) AnalyzeImportance(ctx context.Context, req *dparetov1.AnalyzeImportanceRequest) (*dparetov1.AnalyzeImportanceResponse, error) {
	return s.analyses.AnalyzeImportance(ctx, req)
}

func (s *analysisService) AnalyzeSlices(ctx context.Context, req *dparetov1.AnalyzeSlicesRequest) (*dparetov1.AnalyzeSlicesResponse, error) {
	return s.analyses.AnalyzeSlices(ctx, req)
}

func (s *analysisService) AnalyzeContour(ctx context.Context, req *dparetov1.AnalyzeContourRequest) (*dparetov1.AnalyzeContourResponse, error) {
	return s.analyses.AnalyzeContour(ctx, req)
}

func (s *analysisService) CrossValidate(ctx context.Context, req *dparetov1.CrossValidateRequest) (*dparetov1.CrossValidateResponse, error) {
	return s.analyses.CrossValidate(ctx, req)
}

func (s *analysisService) ForecastGain(ctx context.Context, req *dparetov1.ForecastGainRequest) (*dparetov1.ForecastGainResponse, error) {
	return s.analyses.ForecastGain(ctx, req)
}
