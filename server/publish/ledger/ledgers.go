package ledger

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/pagination"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// Ledgers implements the ReleaseService calls on ledgers. It is safe for concurrent use.
type Ledgers struct {
	studies *study.Studies // for responses by request id
	store   *store.Store
	now     func() time.Time
}

// New returns the ledgers in a store.
func New(studies *study.Studies, db *store.Store, now func() time.Time) *Ledgers {
	return &Ledgers{studies, db, now}
}

// warnLargeDelta warns of a δ that would allow the publication of a record.
const warnLargeDelta = "LARGE_TEST_DELTA"

// CreateLedger implements ReleaseService.
func (l *Ledgers) CreateLedger(ctx context.Context, req *dparetov1.CreateLedgerRequest) (*dparetov1.CreateLedgerResponse, error) {
	id := req.GetLedgerId()
	if err := validateLedger(id, req.GetLedger()); err != nil {
		return nil, err
	}
	resp := new(dparetov1.CreateLedgerResponse)
	r, err := study.NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	declared := &dparetov1.Ledger{
		Name:        resource.LedgerName(id),
		Description: req.GetLedger().GetDescription(),
		Records:     req.GetLedger().GetRecords(),
		Epsilon:     req.GetLedger().GetEpsilon(),
		Delta:       req.GetLedger().GetDelta(),
		Adjacency:   req.GetLedger().GetAdjacency(),
	}
	err = l.studies.Update(ctx, r, store.LedgerScope(id), nil, func(tx *store.Tx) error {
		record, err := tx.Ledger(id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			if err := tx.CheckWhole(store.LedgerScope(id)); err != nil {
				return err // the ledger exists, but its record is lost
			}
			record = &storev1.LedgerRecord{Ledger: proto.CloneOf(declared)}
			record.Ledger.Uid, record.Ledger.CreateTime = study.NewToken(), timestamppb.New(l.now())
			if err := tx.PutLedger(id, record); err != nil {
				return err
			}
		case err != nil:
			return err
		default:
			existing := proto.CloneOf(record.GetLedger())
			existing.Uid, existing.CreateTime = "", nil
			if paths := specchange.Differences(existing, declared); len(paths) > 0 {
				return status.Errorf(codes.AlreadyExists, "%s exists with other fields; fields that differ: %s",
					resource.LedgerName(id), differences(existing, declared, paths))
			}
		}
		resp.Ledger, err = presentLedger(&tx.ReadTx, id, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// differences names fields that differ, with both values.
func differences(existing, declared *dparetov1.Ledger, paths []string) string {
	has, asked := existing.ProtoReflect(), declared.ProtoReflect()
	texts := make([]string, len(paths))
	for i, path := range paths {
		field := has.Descriptor().Fields().ByTextName(path)
		show := func(m protoreflect.Message) any {
			value := m.Get(field)
			if field.Enum() != nil {
				return field.Enum().Values().ByNumber(value.Enum()).Name()
			}
			if field.Kind() == protoreflect.StringKind {
				return strconv.Quote(value.String())
			}
			return value.Interface()
		}
		texts[i] = fmt.Sprintf("%s is %v, not %v", path, show(has), show(asked))
	}
	return strings.Join(texts, "; ")
}

// validateLedger checks the fields of a new ledger.
func validateLedger(id string, l *dparetov1.Ledger) error {
	var fields invalid.Fields
	if !resource.IsID(id) {
		fields.Addf("ledger_id", "must be %s, is %.200q", resource.IDRule, id)
	}
	if name := l.GetName(); name != "" && name != resource.LedgerName(id) {
		fields.Addf("ledger.name", "must be empty or %q, is %.200q", resource.LedgerName(id), name)
	}
	if n := len([]rune(l.GetDescription())); n > study.MaxText {
		fields.Addf("ledger.description", "must have at most %d characters, has %d", study.MaxText, n)
	}
	if l.GetRecords() < 1 {
		fields.Addf("ledger.records", "must be at least 1, is %d", l.GetRecords())
	}
	fields.CheckPositive("ledger.epsilon", l.GetEpsilon())
	if fault := privacy.DeltaFault(l.GetDelta()); fault != "" {
		fields.Addf("ledger.delta", "%s", fault)
	}
	switch l.GetAdjacency() {
	case dparetov1.Adjacency_ADJACENCY_ADD_REMOVE, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
	default:
		fields.Addf("ledger.adjacency", "must be set, is %v", l.GetAdjacency())
	}
	return fields.Err()
}

// presentLedger returns a ledger as clients see it.
func presentLedger(tx *store.ReadTx, id string, record *storev1.LedgerRecord) (*dparetov1.Ledger, error) {
	a, err := tx.Account(id, record)
	if err != nil {
		return nil, err
	}
	l := record.GetLedger()
	spent := a.Filter.Spent()
	l.Spent = &dparetov1.PrivacyGuarantee{
		Epsilon: spent.Epsilon, Delta: spent.Delta, Adjacency: l.GetAdjacency(),
		Accountant:  dparetov1.Accountant_ACCOUNTANT_ADAPTIVE_COMPOSITION,
		Steps:       spent.Steps,
		Assumptions: show.Assumptions(spent.Assumptions),
	}
	if text := show.LargeDelta(l.GetDelta(), l.GetRecords()); text != "" {
		l.Spent.Warnings = append(l.Spent.Warnings, &dparetov1.Warning{Code: warnLargeDelta, Message: text})
	}
	for _, charged := range a.Charges { // what was spent holds as each charge does
		if show.IsSizePublic(charged.GetAssumptions()) {
			l.Spent.Assumptions = show.Assumptions(spent.Assumptions, []privacy.Assumption{privacy.PublicSizeAssumption})
			break
		}
	}
	l.Charges = a.Last
	l.RemainingEpsilon, _ = a.Filter.Remaining()
	return l, nil
}

// Find returns a ledger's record, or NOT_FOUND.
func Find(tx *store.ReadTx, id string) (*storev1.LedgerRecord, error) {
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return nil, status.Errorf(codes.NotFound, "ledger %s does not exist", resource.LedgerName(id))
	}
	return record, err
}

// GetLedger implements ReleaseService.
func (l *Ledgers) GetLedger(ctx context.Context, req *dparetov1.GetLedgerRequest) (*dparetov1.GetLedgerResponse, error) {
	id, err := resource.ParseLedgerName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	resp := new(dparetov1.GetLedgerResponse)
	err = l.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := Find(tx, id)
		if err != nil {
			return err
		}
		resp.Ledger, err = presentLedger(tx, id, record)
		return err
	})
	if err != nil {
		return nil, err
	}
	return resp, nil
}

// ListLedgers implements ReleaseService.
func (l *Ledgers) ListLedgers(ctx context.Context, req *dparetov1.ListLedgersRequest) (*dparetov1.ListLedgersResponse, error) {
	q, err := pagination.NewQuery(req.GetPageSize(), req.GetPageToken(), "ledgers")
	if err != nil {
		return nil, err
	}
	ledgers := pagination.Page[*dparetov1.Ledger]{Query: q}
	err = l.store.View(ctx, func(tx *store.ReadTx) error {
		return tx.Ledgers(q.Position, func(record *storev1.LedgerRecord) (bool, error) {
			id := resource.LedgerID(record.GetLedger().GetName())
			if !ledgers.Add(id, true, record.GetLedger()) {
				return false, nil
			}
			_, err := presentLedger(tx, id, record)
			return true, errors.Join(err, ctx.Err())
		})
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListLedgersResponse{Ledgers: ledgers.Resources, NextPageToken: ledgers.Next}, nil
}

// ListCharges implements ReleaseService.
func (l *Ledgers) ListCharges(ctx context.Context, req *dparetov1.ListChargesRequest) (*dparetov1.ListChargesResponse, error) {
	id, err := resource.ParseLedgerName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	q, err := pagination.NewQuery(req.GetPageSize(), req.GetPageToken(), "charges", req.GetParent())
	if err != nil {
		return nil, err
	}
	charges := pagination.Page[*dparetov1.Charge]{Query: q}
	err = l.store.View(ctx, func(tx *store.ReadTx) error {
		if _, err := Find(tx, id); err != nil {
			return err
		}
		return tx.Charges(id, q.Number(), func(number int64, record *storev1.ChargeRecord) (bool, error) {
			return charges.Add(pagination.NumberKey(number), true, record.GetCharge()), ctx.Err()
		})
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListChargesResponse{Charges: charges.Resources, NextPageToken: charges.Next}, nil
}
