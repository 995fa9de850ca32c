package store

import (
	"errors"
	"fmt"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
)

// ErrOverspent says that the charges of a ledger exceed its budget. No transaction allows that; it
// means damage.
var ErrOverspent = errors.New("store: the charges exceed the budget")

// ChargeKey identifies a charge within a ledger.
type ChargeKey struct {
	// Resource is the name of the charged resource.
	Resource string
	// StudyUID is the uid of the study, or empty.
	StudyUID string
}

// Account is the sum of the charges of a ledger.
type Account struct {
	// Filter has spent all charges. Every account has a new one: spending from it changes nothing in
	// the store.
	Filter *adaptive.ApproximateFilter
	// Charges are the charged guarantees.
	Charges map[ChargeKey]*dparetov1.PrivacyGuarantee
	// Last is the number of the last charge, and the number of charges: they count from 1.
	Last int64
}

// Account adds up the charges of a ledger (see [adaptive.ApproximateFilter]). Half of the ledger's δ
// is the slack of the composition; the δ of the charges must fit into the other half. Studies answer
// many queries while other studies and releases spend from the same ledger. A filter holds for such
// interleaved mechanisms as well (Haney, Shoemate, Tian, Vadhan, Vyrros, Xu and Zhang, "Concurrent
// composition for interactive differential privacy with adaptive privacy-loss parameters", 2023).
//
// The error is ErrOverspent if the charges exceed ε or half of δ. It matches ErrCorrupt if a record
// of the ledger is damaged or lost, because its spending is then unknown.
func (t *ReadTx) Account(ledger string, record *storev1.LedgerRecord) (*Account, error) {
	if err := t.CheckWhole(LedgerScope(ledger)); err != nil {
		return nil, fmt.Errorf("store: ledger %q: %w", ledger, err)
	}
	l := record.GetLedger()
	filter, err := adaptive.NewApproximateFilter(l.GetEpsilon(), l.GetDelta(), l.GetDelta()/2, adjacencyOf(l.GetAdjacency()))
	if err != nil {
		return nil, fmt.Errorf("store: ledger %q: %w", ledger, err)
	}
	a := &Account{Filter: filter, Charges: make(map[ChargeKey]*dparetov1.PrivacyGuarantee)}
	err = t.Charges(ledger, 0, func(number int64, record *storev1.ChargeRecord) (bool, error) {
		c := record.GetCharge()
		if number != a.Last+1 {
			return false, fmt.Errorf("store: charge %d is missing", a.Last+1)
		}
		fits, err := a.Spend(c.GetGuarantee())
		if err == nil && !fits {
			err = ErrOverspent
		}
		a.Charges[ChargeKey{c.GetResource(), c.GetStudyUid()}] = c.GetGuarantee()
		a.Last = number
		return err == nil, err
	})
	if err != nil {
		return nil, fmt.Errorf("store: ledger %q: %w", ledger, err)
	}
	return a, nil
}

// Spend deducts a guarantee from the account if it fits, and reports whether it does.
func (a *Account) Spend(g *dparetov1.PrivacyGuarantee) (bool, error) {
	return a.Filter.Spend(privacy.Guarantee{Epsilon: g.GetEpsilon(), Delta: g.GetDelta(), Adjacency: adjacencyOf(g.GetAdjacency())}, 1)
}

// adjacencyOf converts an adjacency. UNSPECIFIED becomes 0.
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

// checkLedgers checks that every ledger's charges are within its budget, and that they include every
// release charged to it.
func checkLedgers(tx *ReadTx, faultf func(string, ...any)) error {
	charged := make(map[string]map[ChargeKey]*dparetov1.PrivacyGuarantee)
	err := tx.Ledgers("", func(record *storev1.LedgerRecord) (bool, error) {
		name := record.GetLedger().GetName()
		a, err := tx.Account(ledgerID(name), record)
		if err != nil {
			faultf("%w", err)
			return true, nil
		}
		charged[name] = a.Charges
		return true, nil
	})
	if err != nil {
		return err
	}
	return checkReleases(tx, charged, faultf)
}
