package study

import (
	"context"
	"math"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// Policy decides what a study may spend, what it keeps of reports, and what it shows. Studies
// whose results are published under a guarantee have one of package publish/private; all others
// have Ordinary, which allows, keeps and shows everything.
//
// Methods with a *Change run within its transaction, and may run again (see store.KV).
type Policy interface {
	// Traits returns what never changes during the life of the study.
	Traits() Traits

	Budget
	Results
	Terms
}

// Budget is the part of a policy that decides what a study may spend.
type Budget interface {
	// Allowance returns how many more trials the policy lets the study create.
	Allowance(record *storev1.StudyRecord) Allowance
	// Afford tells whether a trial can be handed out now.
	Afford(c *Change, record *storev1.TrialRecord) Affordability
	// Charge pays for handing out a trial. The same transaction must hand it out: whatever
	// becomes of this attempt, it is paid. It fails where Afford does not return Affordable.
	Charge(c *Change, record *storev1.TrialRecord) error
	// Release gives back what a trial reserved: it is complete, or deleted.
	Release(c *Change, record *storev1.TrialRecord)
}

// Results is the part of a policy that decides what is kept and shown.
type Results interface {
	// Keep returns what is kept of a measurement.
	Keep(c *Change, record *storev1.TrialRecord, r Report) (Kept, error)
	// Redact returns what may be remembered of a worker's request: the request itself, or a
	// copy without what it says about the data.
	Redact(req Identified) Identified
	// Reason returns what is kept of a worker's words.
	Reason(words string) string
	// Present returns the study as clients see it, given its current state.
	Present(record *storev1.StudyRecord) *dparetov1.Study
}

// Terms is the part of a policy that fixes what a new study may spend, and keeps it fixed.
type Terms interface {
	// Begin fixes what a new study may spend. It takes as long as accounting for many
	// configurations, and runs outside of transactions.
	Begin(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error
	// Pay charges the ledgers that the spec names for what a new study will publish.
	Pay(tx *store.Tx, record *storev1.StudyRecord, compiled *spec.Study, at time.Time) error
	// CheckUpdate refuses changes of the spec that the policy does not survive.
	CheckUpdate(record *storev1.StudyRecord, after *dparetov1.StudySpec) error
	// CheckReaccounting refuses to account the runs so far again, by another accountant.
	CheckReaccounting(record *storev1.StudyRecord) error
}

// Traits are the properties of a policy that other packages ask about.
type Traits struct {
	// Hidden studies keep everything about their trials secret but what they release.
	Hidden bool
	// OneByOne studies create one trial at a time: its cost decides what the next may be.
	OneByOne bool
	// OwnDraws studies take configurations from the policy's designer and no other, not even
	// as a replacement when it fails.
	OwnDraws bool
}

// Allowance is a number of trials, and why there are no more once they are used up.
type Allowance struct {
	Trials int64
	Reason string
	End    dparetov1.EndReason
}

// Affordability tells whether a trial can be handed out.
type Affordability int

// The degrees of affordability.
const (
	Affordable Affordability = iota
	AffordableLater
	Unaffordable
)

// Report is a measurement that a worker reports.
type Report struct {
	Path        string // of the measurement in the request, for errors
	Token       string // of the lease under which it was made
	Measurement *dparetov1.Measurement
	Final       bool
}

// Kept is what a study keeps of a report.
type Kept struct {
	Measurement *dparetov1.Measurement
	Warnings    []*dparetov1.Warning
	// Fresh is false where the study already has a measurement at this step, or wants none.
	Fresh bool
}

// Ordinary is the policy of studies that publish nothing. Other policies embed it.
type Ordinary struct{}

// Traits implements Policy.
func (Ordinary) Traits() Traits { return Traits{} }

// Allowance implements Policy.
func (Ordinary) Allowance(*storev1.StudyRecord) Allowance {
	return Allowance{Trials: math.MaxInt64}
}

// Afford implements Policy.
func (Ordinary) Afford(*Change, *storev1.TrialRecord) Affordability { return Affordable }

// Charge implements Policy.
func (Ordinary) Charge(*Change, *storev1.TrialRecord) error { return nil }

// Keep implements Policy: a checked copy of the measurement, completed by what is computed.
func (Ordinary) Keep(c *Change, record *storev1.TrialRecord, r Report) (Kept, error) {
	point, err := PointOf(c.Compiled, record.GetTrial())
	if err != nil {
		return Kept{}, err
	}
	kept, warnings, err := c.Compiled.Measurement(r.Path, point, r.Measurement, r.Final)
	return Kept{kept, warnings, true}, err
}

// Release implements Policy.
func (Ordinary) Release(*Change, *storev1.TrialRecord) {}

// Redact implements Policy.
func (Ordinary) Redact(req Identified) Identified { return req }

// Reason implements Policy.
func (Ordinary) Reason(words string) string { return words }

// Present implements Policy.
func (Ordinary) Present(record *storev1.StudyRecord) *dparetov1.Study { return record.GetStudy() }

// Begin implements Policy.
func (Ordinary) Begin(context.Context, *storev1.StudyRecord, *spec.Study) error { return nil }

// Pay implements Policy.
func (Ordinary) Pay(*store.Tx, *storev1.StudyRecord, *spec.Study, time.Time) error { return nil }

// CheckUpdate implements Policy.
func (Ordinary) CheckUpdate(*storev1.StudyRecord, *dparetov1.StudySpec) error { return nil }

// CheckReaccounting implements Policy.
func (Ordinary) CheckReaccounting(*storev1.StudyRecord) error { return nil }

// Ledgers checks the ledgers that specs name. Studies that name none never come to it.
type Ledgers interface {
	// CheckCaller refuses callers who may not have a study spend from the ledgers that after
	// names and before, the spec so far or nil, does not.
	CheckCaller(ctx context.Context, before, after *dparetov1.StudySpec) error
	// Check refuses ledgers that do not exist or do not fit the study.
	Check(tx *store.ReadTx, spec *dparetov1.StudySpec) error
}

// namesLedger reports whether a spec names a ledger.
func namesLedger(spec *dparetov1.StudySpec) bool {
	return spec.GetTestLedger() != "" || spec.GetTrainLedger() != ""
}

// Stopper decides which runs stop early.
type Stopper interface {
	// ShouldStop returns why the run of an active trial, which was measured at a step (or 0),
	// is of no further use, or "". Where finding out takes too long for a transaction, it
	// returns what to call outside of it first.
	ShouldStop(c *Cached, trial *dparetov1.Trial, step int64) (reason string, later func(context.Context) error)
}
