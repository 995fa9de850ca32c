package spending

import (
	"context"
	"fmt"
	"math"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/space"
)

// Codes of the warnings of a privacy ledger.
const (
	warnUnknownCost = "UNKNOWN_COST"
	warnExPost      = "EX_POST"
	warnShortened   = "SHORTENED_RUNS"
	warnNotCovered  = "NOT_COVERED"
)

// Spending computes the cost of the runs of a study to the training records. It is safe for
// concurrent use.
type Spending struct {
	studies *study.Studies
	store   *store.Store
}

// New returns the spending of the studies in a store.
func New(studies *study.Studies, db *store.Store) *Spending { return &Spending{studies, db} }

// GetPrivacyLedger implements PrivacyService.
func (s *Spending) GetPrivacyLedger(ctx context.Context, req *dparetov1.GetPrivacyLedgerRequest) (*dparetov1.GetPrivacyLedgerResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	l := &account{entries: make(map[dparetov1.LedgerOutcome]*dparetov1.LedgerEntry)}
	var publication *dparetov1.Publication
	var before *dparetov1.GetPrivacyLedgerResponse
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		if err := l.open(s.studies, record, req.GetMetric()); err != nil {
			return err
		}
		if before = l.latest.to(req, l.study.GetRevision()); before != nil {
			return nil
		}
		publication = s.studies.Present(record).GetPublication()
		charge := func(isDeleted bool) func(*storev1.TrialRecord) (bool, error) {
			return func(t *storev1.TrialRecord) (bool, error) {
				if err := tx.JoinAttempts(id, t); err != nil {
					return false, err
				}
				return true, l.charge(ctx, t, isDeleted)
			}
		}
		if err := tx.Trials(id, 0, charge(false)); err != nil {
			return err
		}
		return tx.DeletedTrials(id, charge(true))
	})
	if before != nil || err != nil {
		return before, err
	}
	delta := l.spec.GetDelta()
	if d := req.GetDelta(); d != 0 {
		delta = d
		if fault := privacy.DeltaFault(d); fault != "" {
			return nil, invalid.Field("delta", "%s; 0 stands for the metric's", fault)
		}
	}
	resp, err := l.response(ctx, delta)
	if err != nil {
		return nil, err
	}
	resp.Publication = publication
	l.latest.keep(req, resp)
	return resp, nil
}

// latest is the answer to the latest request about a study. Every trial is read for it.
type latest struct {
	mu       sync.Mutex
	request  *dparetov1.GetPrivacyLedgerRequest
	response *dparetov1.GetPrivacyLedgerResponse
}

// to returns the answer to a request at a revision of the study, nil if it is not the latest.
func (l *latest) to(req *dparetov1.GetPrivacyLedgerRequest, revision int64) *dparetov1.GetPrivacyLedgerResponse {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.response.GetRevision() != revision || !proto.Equal(l.request, req) {
		return nil
	}
	return proto.CloneOf(l.response)
}

func (l *latest) keep(req *dparetov1.GetPrivacyLedgerRequest, resp *dparetov1.GetPrivacyLedgerResponse) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.request, l.response = proto.CloneOf(req), proto.CloneOf(resp)
}

// account sums up the runs of a study.
type account struct {
	latest   *latest
	study    *dparetov1.Study
	compiled *spec.Study
	metric   string
	spec     *dparetov1.PrivacySpec // of the metric
	sum      *accounting.Ledger
	seeded   int64 // number of trials with seeded runs
	entries  map[dparetov1.LedgerOutcome]*dparetov1.LedgerEntry

	Design
	lengths bool // of runs, which may depend on results
}

// adaptive reports whether results may have decided what was run. A single mechanism leaves no
// choice of configurations, and a single run no choice of their number.
func (l *account) adaptive(runs int64) bool {
	return l.lengths || l.Number && runs > 1 || l.Configurations && l.sum.Mechanisms() > 1
}

// open starts the account of a study.
func (l *account) open(studies *study.Studies, record *storev1.StudyRecord, metric string) error {
	cached, err := studies.Get(record)
	if err != nil {
		return err
	}
	l.study, l.compiled = record.GetStudy(), cached.Compiled
	l.latest = study.Derived(cached, func() *latest { return new(latest) })
	name, function := l.compiled.Metrics.Mechanism(metric)
	if function == nil {
		if metric != "" {
			return invalid.Field("metric", "%q is not a metric of %s computed from a mechanism", metric, l.study.GetName())
		}
		return status.Errorf(codes.FailedPrecondition, "%s has no metric computed from a mechanism", l.study.GetName())
	}
	l.metric, l.sum = name, accounting.NewLedger(function)
	for _, m := range l.study.GetSpec().GetMetrics() {
		if m.GetId() == name {
			l.spec = m.GetComputed().GetPrivacy()
		}
	}
	l.Design = DesignOf(l.study)
	return nil
}

// charge adds every run of a trial.
func (l *account) charge(ctx context.Context, record *storev1.TrialRecord, isDeleted bool) error {
	if err := pause.Check(ctx); err != nil {
		return err
	}
	trial := record.GetTrial()
	point, err := study.PointOf(l.compiled, trial)
	if err != nil {
		return err
	}
	if study.IsSeeded(trial) {
		l.seeded++
	}
	attempts, runs := int64(trial.GetAttempt()), runsOf(trial)
	l.See(trial)
	last := l.compiled.Points.LastStep(point)
	add := func(outcome dparetov1.LedgerOutcome, n, step int64) {
		if n > 0 {
			l.add(outcome, n, l.compiled.Points.At(point, step), charged{step < last, isDeleted, l.stored(trial, step, isDeleted)})
		}
	}
	reached := last
	if l.compiled.Points.Checkpoints() {
		reached = max(trial.GetFinalMeasurement().GetStep(), study.LatestStep(trial))
	}
	switch state := trial.GetState(); {
	case state == dparetov1.TrialState_TRIAL_STATE_QUEUED:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_ABANDONED, attempts*runs, last)
		return nil
	case attempts == 0 && state == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_IMPORTED, runs, reached)
		return nil
	case attempts == 0 && trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_IMPORTED: // it ran elsewhere, to an unknown step
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_IMPORTED, runs, last)
		return nil
	case attempts == 0: // it was never handed out
		return nil
	case state == dparetov1.TrialState_TRIAL_STATE_ACTIVE || state == dparetov1.TrialState_TRIAL_STATE_STOPPING:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_ACTIVE, runs, last)
	case state == dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_INFEASIBLE, runs, last)
	case state == dparetov1.TrialState_TRIAL_STATE_FAILED:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_FAILED, runs, last)
	case !isLastAttempt(record): // how far the workers got is unknown
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_SUCCEEDED, runs, last)
	default:
		add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_SUCCEEDED, runs, reached)
	}
	add(dparetov1.LedgerOutcome_LEDGER_OUTCOME_ABANDONED, (attempts-1)*runs, last)
	return nil
}

// isLastAttempt reports whether the last worker that held a trial completed it. A worker that lost
// its lease may have run on without being able to report it.
func isLastAttempt(record *storev1.TrialRecord) bool {
	last := study.LastToken(record)
	return last != "" && record.GetCompletionToken() == last
}

// runsOf returns the number of runs of an attempt at a trial: its replicates, or more if stores of
// servers that did not refuse it hold a value of more runs.
func runsOf(trial *dparetov1.Trial) int64 {
	runs := int64(trial.GetReplicates())
	see := func(measurements ...*dparetov1.Measurement) {
		for _, m := range measurements {
			for _, value := range m.GetMetrics() {
				runs = max(runs, int64(len(value.GetRuns())))
			}
		}
	}
	see(trial.GetFinalMeasurement())
	see(trial.GetMeasurements()...)
	for _, a := range trial.GetPastAttempts() {
		see(a.GetMeasurements()...)
	}
	return runs
}

// stored returns the metric of a trial's run up to a step, nil if the trial does not hold it.
// Deleted trials may hold values computed under an earlier spec.
func (l *account) stored(trial *dparetov1.Trial, step int64, isDeleted bool) *dparetov1.MetricValue {
	if isDeleted {
		return nil
	}
	if final := trial.GetFinalMeasurement(); final != nil && l.compiled.Points.Checkpoints() && final.GetStep() == step {
		return final.GetMetrics()[l.metric]
	}
	for _, m := range trial.GetMeasurements() {
		if l.compiled.Points.Checkpoints() && m.GetStep() == step {
			return m.GetMetrics()[l.metric]
		}
	}
	return trial.GetComputedMetrics()[l.metric]
}

// charged describes runs to charge.
type charged struct {
	isShortened, isDeleted bool
	value                  *dparetov1.MetricValue // nil to compute it
}

// add charges runs of a configuration.
func (l *account) add(outcome dparetov1.LedgerOutcome, runs int64, point space.Point, c charged) {
	e := l.entries[outcome]
	if e == nil {
		e = &dparetov1.LedgerEntry{Outcome: outcome}
		l.entries[outcome] = e
	}
	e.Runs += runs
	if c.isDeleted {
		e.DeletedRuns += runs
	}
	if c.isShortened {
		e.ShortenedRuns += runs
		l.lengths = true
	}
	variables := l.compiled.Points.Variables(point)
	if l.sum.Charge(variables, runs) != nil {
		e.UnknownRuns += runs
		return
	}
	epsilon := c.value.GetValue()
	if c.value == nil {
		if g, err := l.sum.Function().Guarantee(variables); err == nil {
			epsilon = g.GetEpsilon()
		}
	}
	e.LargestEpsilon = math.Max(e.GetLargestEpsilon(), epsilon)
}

// response returns the totals.
func (l *account) response(ctx context.Context, delta float64) (*dparetov1.GetPrivacyLedgerResponse, error) {
	resp := &dparetov1.GetPrivacyLedgerResponse{
		Metric:     l.metric,
		Mechanisms: int64(l.sum.Mechanisms()),
		Revision:   l.study.GetRevision(),
	}
	var shortened int64
	for outcome := range int32(len(dparetov1.LedgerOutcome_name)) {
		e := l.entries[dparetov1.LedgerOutcome(outcome)]
		if e == nil {
			continue
		}
		resp.Entries = append(resp.Entries, e)
		resp.Runs += e.GetRuns()
		resp.UnknownRuns += e.GetUnknownRuns()
		resp.LargestEpsilon = math.Max(resp.GetLargestEpsilon(), e.GetLargestEpsilon())
		shortened += e.GetShortenedRuns()
	}
	resp.Adaptive = l.adaptive(resp.GetRuns())
	var err error
	if resp.FixedInAdvance, err = l.sum.Composed(ctx, delta); err != nil {
		return nil, err
	}
	resp.Composed = proto.CloneOf(resp.GetFixedInAdvance())
	if resp.GetAdaptive() {
		if resp.Composed, err = l.sum.Adaptive(ctx, delta); err != nil {
			return nil, err
		}
	}
	warn := func(code, format string, args ...any) {
		resp.Warnings = append(resp.Warnings, &dparetov1.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if n := resp.GetUnknownRuns(); n > 0 {
		warn(warnUnknownCost, "the cost of %d runs is unknown: %s cannot be computed at their configurations; fixed_in_advance leaves them out", n, l.metric)
		resp.Composed.Epsilon = math.Inf(1)
	}
	if l.seeded > 0 {
		warn(study.WarnSeeded, "the runs of %d trials were seeded: anyone with the seed can remove their noise, so no epsilon holds for them; "+
			"fixed_in_advance, the entries and the epsilon of a trial are for such runs with secret noise", l.seeded)
		resp.Composed.Epsilon = math.Inf(1)
	}
	if resp.GetAdaptive() {
		warn(warnExPost, "epsilon was not fixed in advance but depends on results: with probability 1 - delta it bounds the privacy loss "+
			"of all runs so far. (epsilon, delta)-differential privacy holds for a limit on it that was fixed in advance and that the study was stopped to keep")
	}
	if shortened > 0 {
		warn(warnShortened, "%d runs are charged up to their last measurement: work beyond it that was never reported is not covered", shortened)
	}
	warn(warnNotCovered, "not covered: measurements on data that the mechanism does not protect, such as a test set; "+
		"runs on the same data outside this study, in other studies, or in a deleted study")
	return resp, nil
}
