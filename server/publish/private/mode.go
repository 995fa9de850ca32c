package private

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// State reasons: which budget is spent.
const (
	reasonTrainSpent = "the privacy budget of the training records is spent"
	reasonTestSpent  = "the privacy budget of the test records is spent"
)

// privateMode is the policy of studies with private_mode: it keeps workers' values with noise only,
// and charges every hand-out of a trial in advance.
type privateMode struct {
	noisy

	studies *study.Studies
	entropy *noise.Source
	logger  *slog.Logger
}

// Traits implements study.Policy.
func (privateMode) Traits() study.Traits {
	return study.Traits{OneByOne: true, Prepaid: true, NoReasons: true}
}

// Allowance implements study.Policy.
func (privateMode) Allowance(record *storev1.StudyRecord) study.Allowance {
	reason := privateSpent(record)
	if reason == "" {
		return study.Ordinary{}.Allowance(record)
	}
	return study.Allowance{Reason: reason, End: dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT}
}

// privateSpent returns which privacy budget keeps a study from creating trials, or "".
func privateSpent(record *storev1.StudyRecord) string {
	terms := record.GetPrivateMode()
	switch {
	case terms == nil || record.GetNextTrialNumber() > record.GetStudy().GetSpec().GetBudget().GetMaxTrials():
		return "" // max_trials is reached, which is the better explanation
	case terms.GetExhausted() || leftFor(terms) < terms.GetLeastCost():
		return reasonTrainSpent
	case terms.GetValues()+terms.GetReservedValues()+reportedMetrics(record.GetStudy().GetSpec()) > terms.GetMaxValues():
		return reasonTestSpent
	default:
		return ""
	}
}

// reportedMetrics returns the number of metrics that workers report.
func reportedMetrics(s *dparetov1.StudySpec) int64 {
	n := int64(0)
	for _, m := range s.GetMetrics() {
		if m.GetReported() != nil {
			n++
		}
	}
	return n
}

// Assess implements study.Assessor: it compares the trial with slots.
func (privateMode) Assess(compiled *spec.Study, trial *dparetov1.Trial) func(context.Context) error {
	point, err := study.PointOf(compiled, trial)
	if err != nil || slotsOf(compiled) == nil {
		return nil
	}
	return compareWithSlots(compiled, point, trial.GetReplicates())
}

// Afford implements study.Policy.
func (privateMode) Afford(c *study.Change, record *storev1.TrialRecord) study.Affordability {
	terms := c.Study.GetPrivateMode()
	if _, ok := handOut(c, record.GetTrial()); !ok {
		return study.Unaffordable
	}
	if record.GetPrivateMode().GetReservedValues() > 0 {
		return study.Affordable
	}
	metrics := reportedMetrics(c.Compiled.Spec)
	switch {
	case terms.GetValues()+metrics > terms.GetMaxValues():
		return study.Unaffordable
	case terms.GetValues()+terms.GetReservedValues()+metrics > terms.GetMaxValues():
		return study.AffordableLater // once other trials complete with fewer values than they reserve
	default:
		return study.Affordable
	}
}

// handOut returns the charge of the next hand-out of a trial to the training budget, or false if it
// does not fit.
func handOut(c *study.Change, trial *dparetov1.Trial) (charge, bool) {
	point, err := study.PointOf(c.Compiled, trial)
	if err != nil {
		return charge{}, false
	}
	return nextCharge(c.Compiled, c.Study.GetPrivateMode(), point, trial.GetReplicates(), trial.GetNumber())
}

// errUnaffordable says that the budget does not cover handing out a trial.
var errUnaffordable = errors.New("the privacy budget does not cover the trial")

// Charge implements study.Policy: it charges both budgets and chooses the trial's shard.
func (p privateMode) Charge(c *study.Change, record *storev1.TrialRecord) error {
	if p.Afford(c, record) != study.Affordable {
		return errUnaffordable
	}
	terms, trial := c.Study.GetPrivateMode(), record.GetTrial()
	taken, _ := handOut(c, trial)
	taken.take(terms)
	if record.GetPrivateMode() == nil {
		record.PrivateMode = new(storev1.PrivateTrialRecord)
		terms.StartedTrials++
	}
	paid := record.GetPrivateMode()
	paid.Charges = append(paid.GetCharges(), &storev1.TrainingCharge{Shard: int32(taken.shard), Cost: taken.cost, Slot: int32(taken.slot)})
	trial.TrainingShard = int32(taken.shard)
	if paid.GetReservedValues() == 0 {
		paid.ReservedValues = reportedMetrics(c.Compiled.Spec)
		terms.ReservedValues += paid.GetReservedValues()
	}
	paid.Checkpoints, paid.LastCheckpoint = int64(math.Ceil(checkpoints(c.Study, c.Compiled))), 0
	return nil
}

// Unreserve implements study.Policy.
func (privateMode) Unreserve(c *study.Change, record *storev1.TrialRecord) {
	if paid := record.GetPrivateMode(); paid != nil {
		c.Study.GetPrivateMode().ReservedValues -= paid.GetReservedValues()
		paid.ReservedValues = 0
	}
}

// Keep implements study.Policy: it adds noise before anything else sees the values. A repeated
// report gets the noisy values of the first, never fresh noise.
func (p privateMode) Keep(c *study.Change, record *storev1.TrialRecord, r study.Report) (study.Kept, error) {
	if record.GetPrivateMode() == nil {
		return study.Kept{}, status.Errorf(codes.FailedPrecondition, "%s has private_mode: it takes results only from trials that it handed out and paid for", resource.StudyName(c.ID))
	}
	terms, trial := c.Study.GetPrivateMode(), record.GetTrial()
	if !r.Final && !c.Compiled.Points.Checkpoints() {
		return study.Kept{}, status.Errorf(codes.FailedPrecondition,
			"%s has private_mode and no checkpoint parameter: its guarantee does not cover intermediate measurements", resource.StudyName(c.ID))
	}
	mean, err := clipped(c.Compiled.Spec, r.Path, r.Measurement)
	if err != nil {
		return study.Kept{}, err
	}
	kept, warnings, err := c.Compiled.Measurements.Accept(r.Path, r.Point, mean, r.Final)
	if err != nil {
		return study.Kept{}, err
	}
	if known, err := c.MeasurementAt(record, kept.GetStep()); err != nil || known != nil {
		return study.Kept{Measurement: known}, err
	}
	if paid := record.GetPrivateMode(); !r.Final {
		if !isPlanned(kept.GetStep(), c.Compiled.Points.LastStep(r.Point), paid) {
			return study.Kept{}, status.Errorf(codes.ResourceExhausted, "%s plans %d intermediate measurements of %s, none of them at step %d: the other values, of %d in all, are for other trials",
				resource.StudyName(c.ID), paid.GetCheckpoints(), trial.GetName(), kept.GetStep(), terms.GetMaxValues())
		}
		paid.LastCheckpoint = kept.GetStep()
	}
	values := addNoise(c.Compiled.Spec, kept, terms.GetNoiseStandardDeviation(), func(value float64) float64 {
		return p.entropy.Gaussian(value, terms.GetNoiseStandardDeviation())
	})
	return study.Kept{Measurement: kept, Warnings: warnings, Fresh: true}, countValues(c, record, values, r.Final)
}

// countValues counts noisy values of a trial. Final ones use the trial's reservation. Intermediate
// ones are allowed while enough is left for the final values of all trials in the budget. After an
// error the caller must discard the values.
func countValues(c *study.Change, record *storev1.TrialRecord, values int64, final bool) error {
	terms, paid := c.Study.GetPrivateMode(), record.GetPrivateMode()
	if final {
		if values > paid.GetReservedValues() {
			return fmt.Errorf("%s has %d final values, but %d are reserved", record.GetTrial().GetName(), values, paid.GetReservedValues())
		}
		paid.ReservedValues -= values
		terms.ReservedValues -= values
	} else {
		metrics := reportedMetrics(c.Compiled.Spec)
		if terms.GetValues()+values+terms.GetReservedValues()+waitingTrials(c.Study)*metrics > terms.GetMaxValues() {
			return status.Errorf(codes.ResourceExhausted, "%s takes %d values; the rest is reserved for the final values of its trials",
				resource.StudyName(c.ID), terms.GetMaxValues())
		}
	}
	terms.Values += values
	paid.Values += values
	return nil
}

// Affords implements engine.Chooser.
func (privateMode) Affords(record *storev1.StudyRecord, compiled *spec.Study, suggestions []suggest.Suggestion) int {
	terms := proto.CloneOf(record.GetPrivateMode())
	for i, s := range suggestions {
		taken, ok := nextCharge(compiled, terms, s.Point, compiled.Replicates(), record.GetNextTrialNumber()+int64(i))
		terms.ReservedValues += reportedMetrics(compiled.Spec)
		if !ok || terms.GetValues()+terms.GetReservedValues() > terms.GetMaxValues() {
			return i
		}
		taken.take(terms)
	}
	return len(suggestions)
}

// Exhausts implements engine.Chooser. A grid may simply have no points left.
func (privateMode) Exhausts(c *study.Change) bool {
	terms := c.Study.GetPrivateMode()
	if c.Compiled.Spec.GetAlgorithm().GetName() == dparetov1.Algorithm_ALGORITHM_GRID {
		return false
	}
	if !terms.GetExhausted() {
		terms.Exhausted = true
		c.TouchStudy()
	}
	return true
}

// Designer implements engine.Chooser: it restricts d to configurations that the training budget can
// afford, or that an unused slot dominates. The scarcer the budget is, the more does a configuration's value count in proportion to its
// cost (as in the cost cooling of Lee et al., "Cost-aware Bayesian optimization", 2020).
func (privateMode) Designer(record *storev1.StudyRecord, compiled *spec.Study, d suggest.Designer, condition restrict.Condition) suggest.Designer {
	terms := record.GetPrivateMode()
	if slotsOf(compiled) != nil {
		condition.AtMost = append(slices.Clone(condition.AtMost), slotLimit(compiled, terms))
		return restrict.Within(d, condition)
	}
	condition.AtMost = append(slices.Clone(condition.AtMost), restrict.Limit{
		Objective: -1,
		Known: func(point space.Point) float64 {
			return trainingCost(compiled, terms, point, compiled.Replicates())
		},
		Search: func(point space.Point) float64 { return cheapCost(compiled, terms, point) },
		Upper:  leftFor(terms),
	})
	if scarce := scarcity(record); scarce > 0 {
		condition.Price = func(point space.Point) float64 { return math.Pow(cheapCost(compiled, terms, point), scarce) }
	}
	return restrict.Within(d, condition)
}

// FixTerms implements study.Policy.
func (privateMode) FixTerms(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) (err error) {
	if record.PrivateMode, err = privateTerms(ctx, "study.spec", compiled); err != nil {
		return err
	}
	warnOfNoise(record.GetStudy(), record.GetPrivateMode().GetNoiseStandardDeviation())
	if w := costlyFilter(compiled, record.GetPrivateMode()); w != nil {
		record.Study.Warnings = append(slices.Clone(record.GetStudy().GetWarnings()), w)
	}
	return nil
}

// Pay implements study.Policy.
func (privateMode) Pay(tx *store.Tx, record *storev1.StudyRecord, compiled *spec.Study, at time.Time) error {
	p, err := privatePublication(record, compiled)
	if err != nil {
		return err
	}
	study := record.GetStudy()
	return ledger.ChargeStudy(tx, &dparetov1.Study{Name: study.GetName(), Uid: study.GetUid(), Spec: study.GetSpec(), Publication: p}, at)
}

// Present implements study.Policy: it adds the guarantee of publishing the study's results.
func (p privateMode) Present(record *storev1.StudyRecord) *dparetov1.Study {
	study := record.GetStudy()
	study.Publication = nil
	cached, err := p.studies.Get(record)
	if err != nil {
		return study // cannot happen: the spec compiled at creation
	}
	if study.Publication, err = privatePublication(record, cached.Compiled); err != nil {
		p.logger.Error("cannot state the guarantee of a study", "study", study.GetName(), "error", err)
	}
	return study
}
