package study

import (
	"context"
	"math"
	"time"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// Policy decides the budgets of a study, the parts of reports that it keeps, and its visible
// results. Studies that publish results under a guarantee have a policy of package
// publish/private. All others have Ordinary, which allows, keeps and shows everything.
//
// Methods with a *Change run inside its transaction, and may run more than once (see store.KV).
type Policy interface {
	// Traits returns properties that never change during the life of the study.
	Traits() Traits

	AtCreation
	AtSuggestion
	AtCompletion

	// Present returns the study as clients see it, given its current state.
	Present(record *storev1.StudyRecord) *dparetov1.Study
}

// AtCreation is the part of a policy that acts when a study is created, updated or loaded.
type AtCreation interface {
	// Compile checks what a spec says about publishing, and completes the compiled study with it: Terms,
	// noise and warnings. compiled is nil if the rest of the spec has violations. record is the study
	// that has the spec, or had another before an update, and nil for a new study.
	Compile(fields *invalid.Fields, asked *dparetov1.StudySpec, compiled *spec.Study, record *storev1.StudyRecord)
	// FixTerms fixes the budgets of a new study. It may account many configurations, or draw many that
	// the constraints refuse, so it runs in the pool, outside transactions.
	FixTerms(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error
	// Prepare sets the publication of an unprepared study (see Traits). It may take up to minutes for a
	// long list, so it runs in the pool, and reports its progress. The record is a copy.
	Prepare(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study, progress func(done, total int)) error
	// Pay charges the ledgers that the spec names for what a study will publish: for a study that is
	// prepared when its publication is known, otherwise when it is created.
	Pay(tx *store.Tx, record *storev1.StudyRecord, compiled *spec.Study, at time.Time) error
}

// AtSuggestion is the part of a policy that acts when a trial is created or handed out.
type AtSuggestion interface {
	// Allowance returns how many more trials the policy lets the study create.
	Allowance(record *storev1.StudyRecord) Allowance
	// Afford tells whether a trial can be handed out now.
	Afford(c *Change, record *storev1.TrialRecord) Affordability
	// Charge pays for one attempt at a trial, whatever becomes of it. The same transaction must hand
	// the trial out. Charge fails unless Afford returns Affordable.
	Charge(c *Change, record *storev1.TrialRecord) error
	// AddWorkerSecrets adds to a copy of a trial what only the worker that gets it may see.
	AddWorkerSecrets(c *Change, trial *dparetov1.Trial)
}

// AtCompletion is the part of a policy that acts when a worker reports, and when a trial ends.
type AtCompletion interface {
	// Keep returns the part that the study keeps of a measurement by the attempt that the trial
	// shows. The record may lack the trial's measurements: see Change.MeasurementAt.
	Keep(c *Change, record *storev1.TrialRecord, r Report) (Kept, error)
	// Redact returns what may be stored of a worker's request: the request itself, or a copy without
	// what it says about the data.
	Redact(req Identified) Identified
	// Unreserve frees what a trial has reserved, when it completes or is deleted.
	Unreserve(c *Change, record *storev1.TrialRecord)
	// AfterTrialEnds creates the trials that the study runs because a trial has ended, which the
	// transaction has written.
	AfterTrialEnds(c *Change) error
}

// Assessor is a policy whose Afford needs values that take too long for a transaction.
type Assessor interface {
	// Assess returns a function that computes what Afford needs to know of a trial, or nil if Afford
	// answers at once.
	Assess(compiled *spec.Study, trial *dparetov1.Trial) func(context.Context) error
}

// Traits are properties of a policy that other packages ask about.
type Traits struct {
	// Hidden studies keep everything about their trials secret except what they release. They hand out
	// one trial a call, and each trial once: what becomes of the attempt is its result.
	Hidden bool
	// OneByOne studies create one trial at a time, because its cost decides what the next may be.
	OneByOne bool
	// OwnDraws studies take configurations from the policy's designer only. When it fails, no other
	// designer replaces it; callers set no conditions, and domains do not grow.
	OwnDraws bool
	// Prepared studies hand out no trial before Prepare has found their publication and Pay has paid for it.
	Prepared bool
	// Prepaid studies pay for all that they will ever publish when they are created. Their ledgers
	// never change, and a damaged or lost record, which would understate what was spent, stops them.
	// Their runs are not accounted again: the budget holds for the accounting that was charged.
	Prepaid bool
	// NoReasons studies keep no reasons in free text, which may tell about the data.
	NoReasons bool
}

// isUnprepared reports whether a study must be prepared before a trial can be handed out.
func isUnprepared(policy Policy, record *storev1.StudyRecord) bool {
	return policy.Traits().Prepared && record.GetStudy().GetPublication() == nil
}

// Allowance is the number of trials a study may still create, and why it ends there.
type Allowance struct {
	Trials int64
	Reason string
	End    dparetov1.EndReason
}

// Affordability says whether a trial can be handed out.
type Affordability int

// A trial is affordable now, once other trials have ended, or never again.
const (
	Affordable Affordability = iota
	AffordableLater
	Unaffordable
)

// Report is a measurement that a worker reports.
type Report struct {
	Path        string      // field path of the measurement in the request, for errors
	Point       space.Point // configuration of the trial
	Measurement *dparetov1.Measurement
	Final       bool
}

// Kept is the part of a report that a study keeps.
type Kept struct {
	Measurement *dparetov1.Measurement
	Warnings    []*dparetov1.Warning
	// Fresh is false if the study already has a measurement at this step, or does not want one.
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

// Keep implements Policy: it returns a checked copy of the measurement with computed metrics.
func (Ordinary) Keep(c *Change, _ *storev1.TrialRecord, r Report) (Kept, error) {
	kept, warnings, err := c.Compiled.Measurements.Accept(r.Path, r.Point, r.Measurement, r.Final)
	return Kept{kept, warnings, true}, err
}

// Unreserve implements Policy.
func (Ordinary) Unreserve(*Change, *storev1.TrialRecord) {}

// AfterTrialEnds implements Policy.
func (Ordinary) AfterTrialEnds(*Change) error { return nil }

// AddWorkerSecrets implements Policy.
func (Ordinary) AddWorkerSecrets(*Change, *dparetov1.Trial) {}

// Redact implements Policy.
func (Ordinary) Redact(req Identified) Identified { return req }

// Present implements Policy.
func (Ordinary) Present(record *storev1.StudyRecord) *dparetov1.Study { return record.GetStudy() }

// FixTerms implements Policy.
func (Ordinary) FixTerms(context.Context, *storev1.StudyRecord, *spec.Study) error { return nil }

// Prepare implements Policy.
func (Ordinary) Prepare(context.Context, *storev1.StudyRecord, *spec.Study, func(done, total int)) error {
	return nil
}

// Pay implements Policy.
func (Ordinary) Pay(*store.Tx, *storev1.StudyRecord, *spec.Study, time.Time) error { return nil }

// Compile implements Policy.
func (Ordinary) Compile(*invalid.Fields, *dparetov1.StudySpec, *spec.Study, *storev1.StudyRecord) {}

// Ledgers checks the ledgers that a spec names. It is not called for specs that name none.
type Ledgers interface {
	// CheckCaller refuses callers who may not spend from a ledger that after names and before does
	// not. before is nil for a new study.
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
	// ShouldStop returns why the run of an active trial with a measurement at a step (0: none)
	// should stop, or "". If the decision takes too long for a transaction, it returns a function to
	// call outside first.
	ShouldStop(c *Cached, trial *dparetov1.Trial, step int64) (reason string, later func(context.Context) error)
}
