package ledger

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/dpareto/dpareto/server/resource"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
)

// maxCharges bounds the charges of a ledger: each reading of its budget adds them up.
const maxCharges = 10_000

// Charge is what something costs a ledger.
type Charge struct {
	Guarantee *dparetov1.PrivacyGuarantee
	Resource  string // name of the release or of the study
	StudyUID  string // empty for what belongs to no study
	Reason    string
	records   int64 // number of records that the guarantee takes the dataset to have, 0 if it does not matter
	At        time.Time
}

// key tells the charge from the others of a ledger.
func (c *Charge) key() store.ChargeKey {
	return store.ChargeKey{Resource: c.Resource, StudyUID: c.StudyUID}
}

// chargeLedger writes a charge to a ledger, given by its name. The request's field that
// names it is for errors: FAILED_PRECONDITION where the ledger does not exist or has other
// records or another adjacency, RESOURCE_EXHAUSTED where the charge exceeds what is left.
// What is charged already, by resource and uid of the study, is not charged again.
//
// What it charges for must be written in the same transaction, and shown to nobody before
// that is durable.
func chargeLedger(tx *store.Tx, ledger, field string, c Charge) error {
	open, err := Open(&tx.ReadTx, ledger, field, c.Guarantee.GetAdjacency(), c.records)
	if err != nil {
		return err
	}
	return open.ChargeOnce(tx, c)
}

// Budget is a ledger with what is left of it.
type Budget struct {
	id      string
	field   string // of the request, for errors
	Ledger  *dparetov1.Ledger
	Account *store.Account
}

// Open opens the ledger that a field of a request names, if it is one of so many
// records (0: of any number) with an adjacency (UNSPECIFIED: with any).
func Open(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (*Budget, error) {
	id, record, err := Check(tx, ledger, field, adjacency, records)
	if err != nil {
		return nil, err
	}
	a, err := tx.Account(id, record)
	if err != nil {
		return nil, err
	}
	return &Budget{id: id, field: field, Ledger: record.GetLedger(), Account: a}, nil
}

// Check returns nil if a guarantee fits into what is left, and otherwise the error for it.
// It spends it from the account in memory.
func (l *Budget) Check(g *dparetov1.PrivacyGuarantee) error {
	refuse := func(format string, args ...any) error {
		return status.Errorf(codes.ResourceExhausted, "%s: %s", l.field, fmt.Sprintf(format, args...))
	}
	if math.IsInf(g.GetEpsilon(), 1) {
		return refuse("an infinite ε fits into no budget")
	}
	epsilon, delta := l.Account.Filter.Remaining()
	fits, err := l.Account.Spend(g)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", l.Ledger.GetName(), err)
	case !fits:
		return refuse("ε = %g with δ = %g does not fit into what is left of %s: ε up to %.6g and δ up to %.3g (declared: ε = %g and δ = %g, of which half is for the composition)",
			g.GetEpsilon(), g.GetDelta(), l.Ledger.GetName(), roundedDown(epsilon, 6), roundedDown(delta, 3), l.Ledger.GetEpsilon(), l.Ledger.GetDelta())
	case l.Account.Last >= maxCharges:
		return refuse("%s has %d charges, the largest number", l.Ledger.GetName(), maxCharges)
	default:
		return nil
	}
}

// ChargeOnce writes a charge unless it was written before.
func (l *Budget) ChargeOnce(tx *store.Tx, c Charge) error {
	paid := l.Account.Charges[c.key()]
	if paid == nil {
		return l.Charge(tx, c)
	}
	if paid.GetEpsilon() < c.Guarantee.GetEpsilon() || paid.GetDelta() < c.Guarantee.GetDelta() {
		return status.Errorf(codes.FailedPrecondition, "%s: %s was charged to %s with less than ε = %g and δ = %g",
			l.field, c.Resource, l.Ledger.GetName(), c.Guarantee.GetEpsilon(), c.Guarantee.GetDelta())
	}
	return nil
}

// Charge writes a charge to a ledger that was opened in the same transaction.
func (l *Budget) Charge(tx *store.Tx, c Charge) error {
	if err := l.Check(c.Guarantee); err != nil {
		return err
	}
	l.Account.Last++
	l.Account.Charges[c.key()] = c.Guarantee
	return tx.PutCharge(l.id, l.Account.Last, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
		Name:       resource.ChargeName(l.id, l.Account.Last),
		Guarantee:  c.Guarantee,
		Resource:   c.Resource,
		StudyUid:   c.StudyUID,
		Reason:     c.Reason,
		CreateTime: timestamppb.New(c.At),
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

// Check is Open without its account.
func Check(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (string, *storev1.LedgerRecord, error) {
	id, err := resource.ParseLedgerName(field, ledger)
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
