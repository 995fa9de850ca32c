package studyfile

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
)

// Create creates the ledgers of the file that do not exist, and the study under its ID. Ledgers stay for
// ever, so that the server checks the study before. It fails if a ledger, or the study, exists with
// other fields. Every ledger that it creates is logged. It returns the errors of the calls.
func (f *File) Create(ctx context.Context, client *dpareto.Client, logger *slog.Logger) (*dpareto.Study, error) {
	if err := f.Validate(ctx, client); err != nil {
		return nil, err
	}
	for _, l := range f.Ledgers {
		if err := openLedger(ctx, client.Releases, l, logger); err != nil {
			return nil, err
		}
	}
	_, err := client.Studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: f.ID, Study: f.Study})
	return client.Study(f.ID), err
}

// Validate asks the server whether it would create the study, and changes nothing. A ledger that the
// file declares may be missing: how it fits the study is not known before it exists. The error is that
// of the call.
func (f *File) Validate(ctx context.Context, client *dpareto.Client) error {
	_, err := client.Studies.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: f.ID, Study: f.Study, ValidateOnly: true})
	if err == nil || f.lacksLedger(err) {
		return nil
	}
	return err
}

// lacksLedger reports whether an error says that a ledger does not exist that the file declares.
func (f *File) lacksLedger(err error) bool {
	s := status.Convert(err)
	return s.Code() == codes.FailedPrecondition && slices.ContainsFunc(f.Ledgers, func(l *dparetov1.Ledger) bool {
		return strings.Contains(s.Message(), "_ledger: "+l.GetName()+" does not exist")
	})
}

// openLedger creates a ledger unless it exists with the same fields.
func openLedger(ctx context.Context, client dparetov1.ReleaseServiceClient, l *dparetov1.Ledger, logger *slog.Logger) error {
	_, err := client.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: l.GetName()})
	isNew := status.Code(err) == codes.NotFound
	if err != nil && !isNew {
		return err
	}
	_, err = client.CreateLedger(ctx, &dparetov1.CreateLedgerRequest{LedgerId: strings.TrimPrefix(l.GetName(), ledgerPrefix), Ledger: l})
	if err == nil && isNew {
		logger.Info("created a ledger", "ledger", l.GetName(), "epsilon", l.GetEpsilon(), "delta", l.GetDelta(),
			"adjacency", enum.Name(l.GetAdjacency()), "records", l.GetRecords())
	}
	return err
}
