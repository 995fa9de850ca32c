package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/analysis"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/list"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/publish/release"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/study"
)

// The services of the contract. What they embed answers the calls, in methods of the same names; the
// compiler refuses a call that nothing, or more than one of them, answers.

// studyService implements StudyService.
type studyService struct {
	dparetov1.UnsafeStudyServiceServer

	*study.Studies // CreateStudy, GetStudy, UpdateStudy, DeleteStudy, PauseStudy, ResumeStudy, WatchStudy
	*study.Trials  // those on one trial, and RenewLeases
	*list.Lists    // ListStudies, ListTrials
	*engine.Engine // SuggestTrials
}

// frontService implements FrontService.
type frontService struct {
	dparetov1.UnsafeFrontServiceServer

	*front.Fronts
}

// analysisService implements AnalysisService.
type analysisService struct {
	dparetov1.UnsafeAnalysisServiceServer

	*analysis.Analyses
}

// releaseService implements ReleaseService.
type releaseService struct {
	dparetov1.UnsafeReleaseServiceServer

	*ledger.Ledgers   // CreateLedger, GetLedger, ListLedgers, ListCharges
	*release.Releases // ReleaseBest, ReleaseFront, SelectPrivately, GetRelease, ListReleases
}

// privacyService implements PrivacyService. It makes calls in the pool.
type privacyService struct {
	dparetov1.UnsafePrivacyServiceServer

	*study.Studies // ReaccountStudy
	pool           *pool.Pool
	spending       *spending.Spending
}

// accountant answers the calls that need no study, each at a limited cost.
var accountant = accounting.Service{MaxWork: accounting.MaxWork}

func (s privacyService) ComputeEpsilon(ctx context.Context, req *dparetov1.ComputeEpsilonRequest) (*dparetov1.ComputeEpsilonResponse, error) {
	return analyse(ctx, s.pool, req, accountant.ComputeEpsilon)
}

func (s privacyService) CalibrateMechanism(ctx context.Context, req *dparetov1.CalibrateMechanismRequest) (*dparetov1.CalibrateMechanismResponse, error) {
	return analyse(ctx, s.pool, req, accountant.CalibrateMechanism)
}

func (s privacyService) ComputeTradeoff(ctx context.Context, req *dparetov1.ComputeTradeoffRequest) (*dparetov1.ComputeTradeoffResponse, error) {
	return analyse(ctx, s.pool, req, accountant.ComputeTradeoff)
}

func (s privacyService) PriceSearch(ctx context.Context, req *dparetov1.PriceSearchRequest) (*dparetov1.PriceSearchResponse, error) {
	return analyse(ctx, s.pool, req, accountant.PriceSearch)
}

func (s privacyService) GetPrivacyLedger(ctx context.Context, req *dparetov1.GetPrivacyLedgerRequest) (*dparetov1.GetPrivacyLedgerResponse, error) {
	return analyse(ctx, s.pool, req, s.spending.GetPrivacyLedger)
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
