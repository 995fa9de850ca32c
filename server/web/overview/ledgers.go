package overview

import (
	"net/http"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/site"
)

const (
	// maxLedgers is the number of ledgers that the view lists, maxCharges how many charges of each.
	maxLedgers = 100
	maxCharges = 100
)

// ledgersPage is what ledgers.html shows.
type ledgersPage struct {
	site.Page

	Ledgers []ledgerRow
	More    bool // there are more ledgers
}

// ledgerRow is a ledger with its spending.
type ledgerRow struct {
	*dparetov1.Ledger

	Spends  []*dparetov1.Charge
	Problem string // in place of the charges
	More    bool   // there are more charges
}

// Share is the part of its ε that a ledger has spent, of a thousand.
func (l *ledgerRow) Share() int {
	return int(min(1000, 1000*l.GetSpent().GetEpsilon()/l.GetEpsilon()))
}

// showLedgers shows the budget of each ledger, its charges, and the rest: /ledgers.
func (s views) showLedgers(w http.ResponseWriter, r *http.Request) error {
	p, err := s.NewPage(r, "Ledgers")
	if err != nil {
		return err
	}
	ctx := site.Outgoing(r)
	list, err := s.Releases.ListLedgers(ctx, &dparetov1.ListLedgersRequest{PageSize: maxLedgers})
	if err != nil {
		return err
	}
	data := &ledgersPage{Page: *p, More: list.GetNextPageToken() != ""}
	for _, ledger := range list.GetLedgers() {
		row := ledgerRow{Ledger: ledger}
		charges, err := s.Releases.ListCharges(ctx, &dparetov1.ListChargesRequest{Parent: ledger.GetName(), PageSize: maxCharges})
		if err != nil {
			row.Problem = site.Message(err)
		}
		row.Spends, row.More = charges.GetCharges(), charges.GetNextPageToken() != ""
		data.Ledgers = append(data.Ledgers, row)
	}
	s.Render(w, http.StatusOK, "ledgers", data)
	return nil
}
