package analysis

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// CrossValidate implements AnalysisService.
func (a *Analyses) CrossValidate(context.Context, *dparetov1.CrossValidateRequest) (*dparetov1.CrossValidateResponse, error) {
	return nil, status.Error(codes.Unimplemented, "CrossValidate")
}
