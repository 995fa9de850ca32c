package server

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/publish/release"
)

// releaseService implements ReleaseService.
type releaseService struct {
	dparetov1.UnimplementedReleaseServiceServer

	releases *release.Releases
	ledgers  *ledger.Ledgers
}

func (s *releaseService) CreateLedger(ctx context.Context, req *dparetov1.CreateLedgerRequest) (*dparetov1.CreateLedgerResponse, error) {
	return s.ledgers.CreateLedger(ctx, req)
}

func (s *releaseService) GetLedger(ctx context.Context, req *dparetov1.GetLedgerRequest) (*dparetov1.GetLedgerResponse, error) {
	return s.ledgers.GetLedger(ctx, req)
}

func (s *releaseService) ListLedgers(ctx context.Context, req *dparetov1.ListLedgersRequest) (*dparetov1.ListLedgersResponse, error) {
	return s.ledgers.ListLedgers(ctx, req)
}

func (s *releaseService) ListCharges(ctx context.Context, req *dparetov1.ListChargesRequest) (*dparetov1.ListChargesResponse, error) {
	return s.ledgers.ListCharges(ctx, req)
}

func (s *releaseService) GetRelease(ctx context.Context, req *dparetov1.GetReleaseRequest) (*dparetov1.GetReleaseResponse, error) {
	return s.releases.GetRelease(ctx, req)
}

func (s *releaseService) ListReleases(ctx context.Context, req *dparetov1.ListReleasesRequest) (*dparetov1.ListReleasesResponse, error) {
	return s.releases.ListReleases(ctx, req)
}

func (s *releaseService) ReleaseBest(ctx context.Context, req *dparetov1.ReleaseBestRequest) (*dparetov1.ReleaseBestResponse, error) {
	return s.releases.ReleaseBest(ctx, req)
}

func (s *releaseService) ReleaseFront(ctx context.Context, req *dparetov1.ReleaseFrontRequest) (*dparetov1.ReleaseFrontResponse, error) {
	return s.releases.ReleaseFront(ctx, req)
}

func (s *releaseService) SelectPrivately(ctx context.Context, req *dparetov1.SelectPrivatelyRequest) (*dparetov1.SelectPrivatelyResponse, error) {
	return s.releases.SelectPrivately(ctx, req)
}
