package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/study"
)

// privacyService implements PrivacyService.
type privacyService struct {
	dparetov1.UnimplementedPrivacyServiceServer

	pool     *pool.Pool
	studies  *study.Studies
	spending *spending.Spending
}

// accountant answers the calls that need no study, each at a limited cost.
var accountant = accounting.Service{MaxWork: accounting.MaxWork}

func (s *privacyService) ComputeEpsilon(ctx context.Context, req *dparetov1.ComputeEpsilonRequest) (*dparetov1.ComputeEpsilonResponse, error) {
	return analyse(ctx, s.pool, req, accountant.ComputeEpsilon)
}

func (s *privacyService) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	return analyse(ctx, s.pool, req, accountant.CalibrateMechanism)
}

func (s *privacyService) ComputeTradeoff(ctx context.Context, req *dparetov1.ComputeTradeoffRequest) (*dparetov1.ComputeTradeoffResponse, error) {
	return analyse(ctx, s.pool, req, accountant.ComputeTradeoff)
}

func (s *privacyService) PriceSearch(ctx context.Context, req *dparetov1.PriceSearchRequest) (*dparetov1.PriceSearchResponse, error) {
	return analyse(ctx, s.pool, req, accountant.PriceSearch)
}

func (s *privacyService) GetPrivacyLedger(ctx context.Context, req *dparetov1.GetPrivacyLedgerRequest) (*dparetov1.GetPrivacyLedgerResponse, error) {
	return analyse(ctx, s.pool, req, s.spending.GetPrivacyLedger)
}

func (s *privacyService) ReaccountStudy(ctx context.Context, req *dparetov1.ReaccountStudyRequest) (*dparetov1.ReaccountStudyResponse, error) {
	return s.studies.ReaccountStudy(ctx, req)
}

// analyse makes a call in the pool.
func analyse[Request, Response any](
	ctx context.Context, p *pool.Pool, req *Request, call func(context.Context, *Request) (*Response, error),
) (resp *Response, err error) {
	err = p.Run(ctx, pool.Analysis, func(ctx context.Context) error {
		resp, err = call(ctx, req)
		return err
	})
	return resp, err
}
