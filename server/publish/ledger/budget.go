package ledger

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

// maxCharges bounds the charges of a ledger: every use of its budget adds them up.
const maxCharges = 10_000

// Charge is a guarantee to deduct from a ledger, and its purpose.
type Charge struct {
	Guarantee *dparetov1.PrivacyGuarantee
	Resource  string // name of the release or study
	StudyUID  string // empty if there is no study
	Reason    string
	At        time.Time
}

// key identifies the charge within its ledger.
func (c *Charge) key() store.ChargeKey {
	return store.ChargeKey{Resource: c.Resource, StudyUID: c.StudyUID}
}

// chargeLedger writes a charge to the named ledger. It returns FAILED_PRECONDITION, with the
// request's field, if the ledger does not exist or has another adjacency, and RESOURCE_EXHAUSTED
// if the charge exceeds the rest of the budget. A charge for the same resource and study uid is
// written once.
//
// The caller must write the charged resource in the same transaction, and show it only once that
// is durable.
func chargeLedger(tx *store.Tx, ledger, field string, c Charge) error {
	open, err := Open(&tx.ReadTx, ledger, field, c.Guarantee.GetAdjacency(), 0)
	if err != nil {
		return err
	}
	return open.ChargeOnce(tx, c)
}

// Budget is a ledger and its remaining budget.
type Budget struct {
	id      string
	field   string // of the request, for errors
	Ledger  *dparetov1.Ledger
	Account *store.Account
}

// Open opens the ledger that a field of a request names. It fails unless the ledger has this number
// of records (0: any) and this adjacency (UNSPECIFIED: any).
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

// Check deducts a guarantee from the account in memory, or returns RESOURCE_EXHAUSTED, with a
// google.rpc.ResourceInfo that names the ledger, if it does not fit into what is left.
func (l *Budget) Check(g *dparetov1.PrivacyGuarantee) error {
	refuse := func(format string, args ...any) error {
		s := status.Newf(codes.ResourceExhausted, "%s: %s", l.field, fmt.Sprintf(format, args...))
		if detailed, err := s.WithDetails(&errdetails.ResourceInfo{ResourceType: "ledger", ResourceName: l.Ledger.GetName()}); err == nil {
			s = detailed
		}
		return s.Err()
	}
	if math.IsInf(g.GetEpsilon(), 1) {
		return refuse("an infinite ε does not fit into any budget")
	}
	epsilon, delta := l.Account.Filter.Remaining()
	fits, err := l.Account.Spend(g)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", l.Ledger.GetName(), err)
	case !fits:
		return refuse("ε = %g with δ = %g exceeds the remaining budget of %s: ε up to %.6g and δ up to %.3g (declared: ε = %g and δ = %g, half of it for the composition)",
			g.GetEpsilon(), g.GetDelta(), l.Ledger.GetName(), roundedDown(epsilon, 6), roundedDown(delta, 3), l.Ledger.GetEpsilon(), l.Ledger.GetDelta())
	case l.Account.Last >= maxCharges:
		return refuse("%s has %d charges, the maximum", l.Ledger.GetName(), maxCharges)
	default:
		return nil
	}
}

// ChargeOnce writes a charge unless it is already there. It fails if the existing charge is smaller.
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

// Charge checks and writes a charge, in the transaction that opened the ledger.
func (l *Budget) Charge(tx *store.Tx, c Charge) error {
	if err := l.Check(c.Guarantee); err != nil {
		return err
	}
	l.Account.Last++
	return tx.PutCharge(l.id, l.Account.Last, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
		Name:       resource.ChargeName(l.id, l.Account.Last),
		Guarantee:  c.Guarantee,
		Resource:   c.Resource,
		StudyUid:   c.StudyUID,
		Reason:     c.Reason,
		CreateTime: timestamppb.New(c.At),
	}})
}

// roundedDown rounds x >= 0 down to a number of digits, so that a budget reported as left really
// fits.
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

// Check is Open without reading the charges. It returns the id and record of the ledger.
func Check(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (string, *storev1.LedgerRecord, error) {
	id, err := resource.ParseLedgerName(field, ledger)
	if err != nil {
		return "", nil, err
	}
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s does not exist: create it first with CreateLedger", field, ledger)
	}
	if err != nil {
		return "", nil, err
	}
	if has := record.GetLedger().GetAdjacency(); has != adjacency && adjacency != dparetov1.Adjacency_ADJACENCY_UNSPECIFIED {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is kept under %v, not %v", field, ledger, has, adjacency)
	}
	if has := record.GetLedger().GetRecords(); records != 0 && has != records {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s has %d records, not %d", field, ledger, has, records)
	}
	return id, record, nil
}
