package release

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/spending"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/grid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Codes of the warnings of releases.
const (
	warnNothingWithin    = "NOTHING_WITHIN_BOUNDS"
	warnUnsuccessful     = "UNSUCCESSFUL_TRIALS"
	warnEarlierResults   = "EARLIER_RESULTS"
	warnNotApplied       = "CONSTRAINTS_NOT_APPLIED"
	warnUnknownTraining  = "UNKNOWN_TRAINING_COST"
	warnLargeNoise       = "LARGE_NOISE"
	warnLargeLedgerDelta = "LARGE_DELTA"
)

// Assumptions about what was fixed before any result was seen, which the server cannot check.
var (
	assumeFirst   = privacy.PremiseFixedInAdvance.Assume("nobody had seen results on the test records when the study got its first trial: its design follows from no other study, import or earlier copy of them")
	assumeRequest = privacy.PremiseFixedInAdvance.Assume("whether to ask for this release, with which metric, bounds, ledger, epsilon and delta, was decided without looking at results")
)

// fixedResults are the results of a complete study whose configurations, and their number, were
// fixed before any result was seen.
type fixedResults struct {
	*front.Results
	records      int64 // number of records in the test ledger
	unsuccessful int64 // number of trials that did not succeed
	// earlier are the names of other studies with the same ledger, deleted ones included, that had trials
	// before this one had any. Their exact results may have decided the design, which may change until then.
	earlier []string
	seeded  int64 // number of trials with seeded runs
}

// fixedResults reads the results of a study. If they have no guarantee, it returns
// FAILED_PRECONDITION and the reason.
//
// Candidates are the configurations of all successful trials. Nothing that depends on a measured
// value may exclude one: not dominance, not a constraint on a measured metric, not a decision to
// delete or stop it.
func (s *Releases) fixedResults(ctx context.Context, id string) (*fixedResults, error) {
	r, err := s.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	f := &fixedResults{Results: r}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		if study := record.GetStudy(); study.GetUid() != r.Study.GetUid() || study.GetRevision() != r.Study.GetRevision() {
			return status.Errorf(codes.Aborted, "%s has changed during the call; nothing was released, try again", resource.StudyName(id))
		}
		if err := f.checkDesign(ctx, tx, id, record); err != nil {
			return err
		}
		if err := f.checkLedger(tx); err != nil {
			return err
		}
		return f.findEarlier(ctx, tx)
	})
	return f, err
}

// findEarlier finds the earlier studies, those that the ledger remembers after the others.
func (f *fixedResults) findEarlier(ctx context.Context, tx *store.ReadTx) error {
	began, err := study.FirstTrial(tx, resource.StudyID(f.Study.GetName()))
	if err != nil {
		return err
	}
	seen := map[string]bool{f.Study.GetUid(): true}
	err = tx.Studies("", func(record *storev1.StudyRecord) (bool, error) {
		other := record.GetStudy()
		if seen[other.GetUid()] || other.GetSpec().GetTestLedger() != f.Study.GetSpec().GetTestLedger() || ledger.IsPrepaid(other.GetSpec()) {
			return true, ctx.Err()
		}
		first, err := study.FirstTrial(tx, resource.StudyID(other.GetName()))
		if !first.IsZero() && first.Before(began) {
			seen[other.GetUid()] = true
			f.earlier = append(f.earlier, other.GetName())
		}
		return true, err
	})
	if err != nil {
		return err
	}
	id, err := resource.ParseLedgerName(ledger.TestField, f.Study.GetSpec().GetTestLedger())
	if err != nil {
		return err
	}
	record, err := ledger.Find(tx, id)
	if err != nil {
		return err
	}
	design, err := specchange.DesignDigest(f.Study.GetSpec())
	if err != nil {
		return err
	}
	for _, past := range record.GetPast() {
		if seen[past.GetUid()] || !past.GetFirstTrial().AsTime().Before(began) {
			continue
		}
		also := "another"
		if bytes.Equal(past.GetDesignDigest(), design) {
			also = "the same"
		}
		f.earlier = append(f.earlier, fmt.Sprintf("%s (deleted, of %s design)", past.GetStudy(), also))
	}
	return nil
}

// checkDesign refuses a study whose candidates may depend on results.
func (f *fixedResults) checkDesign(ctx context.Context, tx *store.ReadTx, id string, record *storev1.StudyRecord) error {
	name := resource.StudyName(id)
	if c := f.Study.GetDesignChange(); c != nil {
		return unfixed(name, fmt.Sprintf("%s changed after the first trial, at %s",
			strings.Join(c.GetFields(), ", "), c.GetTime().AsTime().Format(time.RFC3339)))
	}
	d := spending.DesignOf(f.Study)
	switch {
	case d.Configurations:
		return unfixed(name, fmt.Sprintf("%v chooses configurations by earlier results (RANDOM, QUASI_RANDOM and GRID do not)", f.Study.GetSpec().GetAlgorithm().GetName()))
	case d.Number:
		return unfixed(name, "the number of its trials was not fixed by budget.max_trials alone")
	}
	tried := new(suggest.History)
	err := tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
		trial := t.GetTrial()
		point, err := study.PointOf(f.Compiled, trial)
		if err != nil {
			return false, err
		}
		tried.Pending = append(tried.Pending, point)
		d.See(trial)
		if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			f.unsuccessful++
		}
		if study.IsSeeded(trial) {
			f.seeded++
		}
		switch {
		case d.Configurations:
			return false, unfixed(name, fmt.Sprintf("a user chose or conditioned the configuration of trial %d", trial.GetNumber()))
		case d.Number:
			return false, unfixed(name, fmt.Sprintf("trial %d was handed out more than once", trial.GetNumber()))
		case t.GetStopRequested():
			return false, unfixed(name, fmt.Sprintf("trial %d was stopped on request", trial.GetNumber()))
		}
		if f.endedEarly(trial, point) {
			return false, unfixed(name, fmt.Sprintf("trial %d ended before its planned length", trial.GetNumber()))
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	err = tx.DeletedTrials(id, func(t *storev1.TrialRecord) (bool, error) {
		return false, unfixed(name, fmt.Sprintf("trial %d was deleted", t.GetTrial().GetNumber()))
	})
	if err != nil {
		return err
	}
	return f.checkComplete(ctx, record, tried)
}

// endedEarly reports whether a successful trial ended before its last step.
func (f *fixedResults) endedEarly(trial *dparetov1.Trial, point space.Point) bool {
	return trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED && f.Compiled.Points.Checkpoints() &&
		trial.GetFinalMeasurement().GetStep() < f.Compiled.Points.LastStep(point)
}

// checkComplete refuses a study with more trials to come, or whose time ran out first. The decision
// to publish early, or to let time pass, may depend on results.
func (f *fixedResults) checkComplete(ctx context.Context, record *storev1.StudyRecord, tried *suggest.History) error {
	most := f.Study.GetSpec().GetBudget().GetMaxTrials()
	isComplete := most > 0 && record.GetNextTrialNumber() > most
	if !isComplete && f.Study.GetSpec().GetAlgorithm().GetName() == dparetov1.Algorithm_ALGORITHM_GRID {
		_, err := grid.New().Suggest(ctx, f.Compiled.Problem, tried, suggest.Request{Count: 1, Number: record.GetNextTrialNumber()})
		if err != nil && !errors.Is(err, suggest.ErrExhausted) {
			return err
		}
		isComplete = err != nil
	}
	if open := study.OpenTrials(record.GetStudy().GetTrialCounts()); !isComplete || open > 0 {
		toCome := ""
		if !isComplete {
			toCome = ", and more to come"
		}
		return status.Errorf(codes.FailedPrecondition, "%s is not complete (%d open trials%s): release it after all trials have ended, because the choice of an earlier moment may depend on results", f.Study.GetName(), open, toCome)
	}
	return nil
}

// checkLedger reads the number of test records from the ledger.
func (f *fixedResults) checkLedger(tx *store.ReadTx) error {
	name := f.Study.GetSpec().GetTestLedger()
	if name == "" {
		return status.Errorf(codes.FailedPrecondition, "%s has no test_ledger to charge: create one with CreateLedger, and name it with UpdateStudy", f.Study.GetName())
	}
	_, record, err := ledger.Check(tx, name, ledger.TestField, dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, 0)
	f.records = record.GetLedger().GetRecords()
	return err
}

// checkMetric refuses a metric that is declared to be measured on another number of records.
func (f *fixedResults) checkMetric(id string) error {
	for _, m := range f.Study.GetSpec().GetMetrics() {
		if n := m.GetReported().GetSampleSize(); m.GetId() == id && n != 0 && n != float64(f.records) {
			return status.Errorf(codes.FailedPrecondition, "metric %s of %s is measured on sample_size = %g records, but %s has %d", id, f.Study.GetName(), n, f.Study.GetSpec().GetTestLedger(), f.records)
		}
	}
	return nil
}

// candidates returns the configurations whose computed metrics meet the study's constraints.
func (f *fixedResults) candidates() []*front.Configuration {
	var all []*front.Configuration
	for i := range f.Configurations {
		if c := &f.Configurations[i]; f.isAllowed(c) {
			all = append(all, c)
		}
	}
	return all
}

// isAllowed reports whether the computed metrics of a configuration meet the study's constraints.
// Constraints on measured metrics depend on the data and are not applied.
func (f *fixedResults) isAllowed(c *front.Configuration) bool {
	values := f.Evaluations[c.Measurements[0]].Values
	for i, v := range values[len(f.Compiled.Problem.Objectives):] {
		if k := &f.Compiled.Problem.Constraints[i]; k.Known != nil && !k.Holds(v) {
			return false
		}
	}
	return true
}

// mean returns the mean of an objective over all runs of a configuration. Its sensitivity is no
// larger than a single run's.
func (f *fixedResults) mean(c *front.Configuration, objective int) float64 {
	sum, runs := 0.0, 0.0
	for _, k := range c.Measurements {
		e := &f.Evaluations[k]
		sum += float64(e.Runs) * e.Values[objective]
		runs += float64(e.Runs)
	}
	return sum / runs
}

// assumptions returns the assumptions behind a guarantee about metrics: what had to be fixed before
// any result was seen, as far as the server cannot check it, and what is assumed of trials and
// values.
func (f *fixedResults) assumptions(metrics ...string) []*dparetov1.Assumption {
	all := []privacy.Assumption{
		assumeFirst,
		assumeRequest,
		privacy.PremiseFixedInAdvance.Assume("workers choose the checkpoints at which they measure a run without looking at results"),
		privacy.PremiseIndependence.Assume("no trial failed, or was found infeasible, because of a test record"),
		privacy.PremiseData.Assume("trainers learn nothing about the test records, and the number of test records is public"),
	}
	for _, id := range metrics {
		all = append(all, privacy.PremiseScores.Assume(fmt.Sprintf("%s is an average, over the %d test records, of a number between 0 and 1 for each; other values are clipped to [0, 1]", id, f.records)))
	}
	return show.Assumptions(all)
}

// draft returns a release with a guarantee that will be charged to the study's ledger.
func (f *fixedResults) draft(ctx context.Context, spending *spending.Spending, guarantee *dparetov1.PrivacyGuarantee) (*draft, error) {
	release := &dparetov1.Release{
		Guarantee:     guarantee,
		Protects:      fmt.Sprintf("each of the %d test records of %s", f.records, f.Study.GetSpec().GetTestLedger()),
		Assumptions:   guarantee.GetAssumptions(),
		Ledger:        f.Study.GetSpec().GetTestLedger(),
		StudyRevision: f.Study.GetRevision(),
		NotCovered: []string{
			"the training records, on which every configuration was trained: the cost of all runs together is stated next to the guarantee",
			"anything else shown of the study: its measured values are exact, and they, or a front, a suggestion or a model made from them, reveal more",
			"other studies on the same records that charge no ledger, or a different one",
		},
	}
	warn := func(code, format string, args ...any) {
		release.Warnings = append(release.Warnings, &dparetov1.Warning{Code: code, Message: fmt.Sprintf(format, args...)})
	}
	if f.unsuccessful > 0 {
		warn(warnUnsuccessful, "%d trials did not succeed and are not candidates; if a test record was the reason, there is no guarantee", f.unsuccessful)
	}
	if n := len(f.earlier); n > 0 {
		warn(warnEarlierResults, "%d other studies of %s, such as %s, had trials before %s had any; if their results decided this design, there is no guarantee",
			n, f.Study.GetSpec().GetTestLedger(), f.earlier[0], f.Study.GetName())
	}
	if f.seeded > 0 {
		warn(study.WarnSeeded, "%d trials were seeded: anyone with the seed can remove the noise from their models, so no epsilon holds for the training records", f.seeded)
	}
	for i := range f.Compiled.Problem.Constraints {
		if c := &f.Compiled.Problem.Constraints[i]; c.Known == nil {
			warn(warnNotApplied, "the constraint on %s is not applied: it is measured, and may depend on the test records", c.Name)
		}
	}
	if text := show.LargeDelta(guarantee.GetDelta(), f.records); text != "" {
		warn(warnLargeLedgerDelta, "%s", text)
	}
	// The cost of the runs to the training records does not depend on the draw below.
	trained, err := spending.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: f.Study.GetName()})
	switch {
	case status.Code(err) == codes.FailedPrecondition:
		warn(warnUnknownTraining, "the cost of the runs to the training records is unknown: the study has no metric computed from a mechanism")
	case err != nil:
		return nil, err
	default:
		release.TrainingGuarantee = trained.GetComposed()
		release.TrainingGuarantee.Warnings = append(release.TrainingGuarantee.GetWarnings(), trained.GetWarnings()...)
	}
	return &draft{release: release, field: ledger.TestField, studyUID: f.Study.GetUid(), isWhole: true}, nil
}
