package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/study"
)

// privacyService implements PrivacyService.
type privacyService struct {
	dparetov1.UnimplementedPrivacyServiceServer

	accounting accounting.Service
	studies    *study.Studies
	spending   *spending.Spending
}

func (s *privacyService) ComputeEpsilon(ctx context.Context, req *dparetov1.ComputeEpsilonRequest) (*dparetov1.ComputeEpsilonResponse, error) {
	return s.accounting.ComputeEpsilon(ctx, req)
}

func (s *privacyService) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	return s.accounting.CalibrateMechanism(ctx, req)
}

func (s *privacyService) GetPrivacyLedger(ctx context.Context, req *dparetov1.GetPrivacyLedgerRequest) (*dparetov1.GetPrivacyLedgerResponse, error) {
	return s.spending.GetPrivacyLedger(ctx, req)
}

func (s *privacyService) ReaccountStudy(ctx context.Context, req *dparetov1.ReaccountStudyRequest) (*dparetov1.ReaccountStudyResponse, error) {
	return s.studies.ReaccountStudy(ctx, req)
}
