package server

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
)

// maxCharges bounds the charges of a ledger: each reading of its budget adds them up.
const maxCharges = 10_000

// charge is what something costs a ledger.
type charge struct {
	guarantee *dparetov1.PrivacyGuarantee
	resource  string // name of the release or of the study
	studyUID  string // empty for what belongs to no study
	reason    string
	records   int64 // number of records that the guarantee takes the dataset to have, 0 if it does not matter
	at        time.Time
}

// key tells the charge from the others of a ledger.
func (c *charge) key() store.ChargeKey {
	return store.ChargeKey{Resource: c.resource, StudyUID: c.studyUID}
}

// chargeLedger writes a charge to a ledger, given by its name. The request's field that
// names it is for errors: FAILED_PRECONDITION where the ledger does not exist or has other
// records or another adjacency, RESOURCE_EXHAUSTED where the charge exceeds what is left.
// What is charged already, by resource and uid of the study, is not charged again.
//
// What it charges for must be written in the same transaction, and shown to nobody before
// that is durable.
func chargeLedger(tx *store.Tx, ledger, field string, c charge) error {
	open, err := openLedger(&tx.ReadTx, ledger, field, c.guarantee.GetAdjacency(), c.records)
	if err != nil {
		return err
	}
	return open.chargeOnce(tx, c)
}

// ledgerBudget is a ledger with what is left of it.
type ledgerBudget struct {
	id      string
	field   string // of the request, for errors
	ledger  *dparetov1.Ledger
	account *store.Account
}

// openLedger opens the ledger that a field of a request names, if it is one of so many
// records (0: of any number) with an adjacency (UNSPECIFIED: with any).
func openLedger(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (*ledgerBudget, error) {
	id, record, err := checkLedger(tx, ledger, field, adjacency, records)
	if err != nil {
		return nil, err
	}
	a, err := tx.Account(id, record)
	if err != nil {
		return nil, err
	}
	return &ledgerBudget{id: id, field: field, ledger: record.GetLedger(), account: a}, nil
}

// check returns nil if a guarantee fits into what is left, and otherwise the error for it.
// It spends it from the account in memory.
func (l *ledgerBudget) check(g *dparetov1.PrivacyGuarantee) error {
	refuse := func(format string, args ...any) error {
		return status.Errorf(codes.ResourceExhausted, "%s: %s", l.field, fmt.Sprintf(format, args...))
	}
	if math.IsInf(g.GetEpsilon(), 1) {
		return refuse("an infinite ε fits into no budget")
	}
	epsilon, delta := l.account.Filter.Remaining()
	fits, err := l.account.Spend(g)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", l.ledger.GetName(), err)
	case !fits:
		return refuse("ε = %g with δ = %g does not fit into what is left of %s: ε up to %.6g and δ up to %.3g (declared: ε = %g and δ = %g, of which half is for the composition)",
			g.GetEpsilon(), g.GetDelta(), l.ledger.GetName(), roundedDown(epsilon, 6), roundedDown(delta, 3), l.ledger.GetEpsilon(), l.ledger.GetDelta())
	case l.account.Last >= maxCharges:
		return refuse("%s has %d charges, the largest number", l.ledger.GetName(), maxCharges)
	default:
		return nil
	}
}

// chargeOnce writes a charge unless it was written before.
func (l *ledgerBudget) chargeOnce(tx *store.Tx, c charge) error {
	paid := l.account.Charges[c.key()]
	if paid == nil {
		return l.charge(tx, c)
	}
	if paid.GetEpsilon() < c.guarantee.GetEpsilon() || paid.GetDelta() < c.guarantee.GetDelta() {
		return status.Errorf(codes.FailedPrecondition, "%s: %s was charged to %s with less than ε = %g and δ = %g",
			l.field, c.resource, l.ledger.GetName(), c.guarantee.GetEpsilon(), c.guarantee.GetDelta())
	}
	return nil
}

// charge writes a charge to a ledger that was opened in the same transaction.
func (l *ledgerBudget) charge(tx *store.Tx, c charge) error {
	if err := l.check(c.guarantee); err != nil {
		return err
	}
	l.account.Last++
	l.account.Charges[c.key()] = c.guarantee
	return tx.PutCharge(l.id, l.account.Last, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
		Name:       chargeName(l.id, l.account.Last),
		Guarantee:  c.guarantee,
		Resource:   c.resource,
		StudyUid:   c.studyUID,
		Reason:     c.reason,
		CreateTime: timestamppb.New(c.at),
	}})
}

// roundedDown returns a number of so many digits that is not above x >= 0, so that what is
// said to be left does fit.
func roundedDown(x float64, digits int) float64 {
	rounded := func(x float64) float64 {
		y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'e', digits-1, 64), 64) // it is a number
		return y
	}
	if y := rounded(x); y <= x {
		return y
	}
	return rounded(x - math.Pow(10, math.Floor(math.Log10(x))-float64(digits-1)))
}

// checkLedger is openLedger without its account.
func checkLedger(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (string, *storev1.LedgerRecord, error) {
	id, err := parseLedgerName(field, ledger)
	if err != nil {
		return "", nil, err
	}
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s does not exist: create it first, by CreateLedger", field, ledger)
	}
	if err != nil {
		return "", nil, err
	}
	if has := record.GetLedger().GetAdjacency(); has != adjacency && adjacency != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is kept under %v, not %v", field, ledger, has, adjacency)
	}
	if has := record.GetLedger().GetRecords(); records != 0 && has != records {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is of %d records, not %d", field, ledger, has, records)
	}
	return id, record, nil
}
