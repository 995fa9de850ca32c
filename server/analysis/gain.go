package analysis

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ForecastGain implements AnalysisService.
func (a *Analyses) ForecastGain(context.Context, *dparetov1.ForecastGainRequest) (*dparetov1.ForecastGainResponse, error) {
	return nil, status.Error(codes.Unimplemented, "ForecastGain")
}
