package server

import (
	"errors"
	"fmt"
	"math"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
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

// chargeLedger writes a charge to a ledger, given by its name. The request's field that
// names it is for errors: FAILED_PRECONDITION where the ledger does not exist or has other
// records or another adjacency, RESOURCE_EXHAUSTED where the charge exceeds what is left.
// What is charged already, by resource and uid of the study, is not charged again.
//
// What it charges for must be written in the same transaction, and shown to nobody before
// that is durable.
func chargeLedger(tx *store.Tx, ledger, field string, c charge) error {
	id, record, err := checkLedger(&tx.ReadTx, ledger, field, c.guarantee.GetAdjacency(), c.records)
	if err != nil {
		return err
	}
	a, err := accountOf(&tx.ReadTx, id, record)
	if err != nil || a.charged[chargeKey{c.resource, c.studyUID}] {
		return err
	}
	guarantee := privacy.Guarantee{Epsilon: c.guarantee.GetEpsilon(), Delta: c.guarantee.GetDelta(), Adjacency: adjacencyOf(c.guarantee.GetAdjacency())}
	if math.IsInf(guarantee.Epsilon, 1) {
		return status.Errorf(codes.ResourceExhausted, "%s: an infinite ε fits into no budget", field)
	}
	fits, err := a.filter.Spend(guarantee, 1)
	if err != nil {
		return fmt.Errorf("charge %s to %s: %w", c.resource, ledger, err)
	}
	if !fits {
		epsilon, delta := a.filter.Remaining()
		return status.Errorf(codes.ResourceExhausted, "%s: ε = %g with δ = %g does not fit into what is left of %s: at most ε = %.6g, and %.3g for δ (declared: ε = %g, δ = %g, half of it for the composition)",
			field, guarantee.Epsilon, guarantee.Delta, ledger, roundedDown(epsilon), delta, record.GetLedger().GetEpsilon(), record.GetLedger().GetDelta())
	}
	if a.charges >= maxCharges {
		return status.Errorf(codes.ResourceExhausted, "%s: %s has the largest number of charges, %d", field, ledger, maxCharges)
	}
	number := a.charges + 1
	return tx.PutCharge(id, number, &storev1.ChargeRecord{Charge: &dparetov1.Charge{
		Name:       chargeName(id, number),
		Guarantee:  c.guarantee,
		Resource:   c.resource,
		StudyUid:   c.studyUID,
		Reason:     c.reason,
		CreateTime: timestamppb.New(c.at),
	}})
}

// roundedDown returns a number of six digits that is not above x >= 0, so that what is said
// to be left does fit.
func roundedDown(x float64) float64 {
	if x == 0 {
		return 0
	}
	unit := math.Pow(10, math.Floor(math.Log10(x))-5)
	return math.Floor(x/unit) * unit
}

// checkLedger returns the ledger that a field of a request names, with its id, if it is one
// of so many records (0: of any number) with an adjacency.
func checkLedger(tx *store.ReadTx, ledger, field string, adjacency dparetov1.Adjacency, records int64) (string, *storev1.LedgerRecord, error) {
	id, err := parseLedgerName(field, ledger)
	if err != nil {
		return "", nil, err
	}
	record, err := tx.Ledger(id)
	if errors.Is(err, store.ErrNotFound) {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s does not exist", field, ledger)
	}
	if err != nil {
		return "", nil, err
	}
	if has := record.GetLedger().GetAdjacency(); has != adjacency {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is kept under %v, not %v", field, ledger, has, adjacency)
	}
	if has := record.GetLedger().GetRecords(); records != 0 && has != records {
		return "", nil, status.Errorf(codes.FailedPrecondition, "%s: %s is of %d records, not %d", field, ledger, has, records)
	}
	return id, record, nil
}

// chargeKey tells charges apart.
type chargeKey struct{ resource, studyUID string }

// account is what the charges of a ledger say.
type account struct {
	filter  *privacy.ApproximateFilter
	charged map[chargeKey]bool
	charges int64 // their number, which is the last one's
}

// accountOf adds up the charges of a ledger. The half of its δ is the slack of the
// composition: the charges' own δ must fit into the other.
func accountOf(tx *store.ReadTx, id string, record *storev1.LedgerRecord) (*account, error) {
	l := record.GetLedger()
	filter, err := privacy.NewApproximateFilter(l.GetEpsilon(), l.GetDelta(), l.GetDelta()/2, adjacencyOf(l.GetAdjacency()))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.GetName(), err)
	}
	a := &account{filter: filter, charged: make(map[chargeKey]bool)}
	err = tx.Charges(id, 0, func(number int64, record *storev1.ChargeRecord) (bool, error) {
		c := record.GetCharge()
		g := privacy.Guarantee{Epsilon: c.GetGuarantee().GetEpsilon(), Delta: c.GetGuarantee().GetDelta(), Adjacency: adjacencyOf(c.GetGuarantee().GetAdjacency())}
		fits, err := filter.Spend(g, 1)
		if err == nil && !fits {
			err = errors.New("the charges exceed the budget")
		}
		a.charged[chargeKey{c.GetResource(), c.GetStudyUid()}] = true
		a.charges = number
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.GetName(), err)
	}
	return a, nil
}

// adjacencyOf converts an adjacency; of UNSPECIFIED it makes none.
func adjacencyOf(a dparetov1.Adjacency) privacy.Adjacency {
	switch a {
	case dparetov1.Adjacency_ADJACENCY_ADD_REMOVE:
		return privacy.AddRemove
	case dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		return privacy.ReplaceOne
	default:
		return 0
	}
}
