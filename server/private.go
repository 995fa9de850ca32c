package server

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Texts of what a study that keeps noisy values keeps in the place of the workers' words.
const (
	reasonUnaffordable = "the privacy budget does not allow to hand it out (again)"
	reasonWorker       = "reported by the worker; studies that keep noisy values keep no reasons"
	reasonTrainSpent   = "the privacy budget of the training records is spent"
	reasonTestSpent    = "the privacy budget of the test records is spent"
)

const (
	// typicalDraws is the number of configurations drawn from the design laws whose median
	// cost chooses the order of the filter.
	typicalDraws = 25
	// typicalTries bounds the draws among which they are looked for, where constraints
	// refuse many.
	typicalTries = 10_000
)

// privateTerms fixes what a study with private_mode may spend, nil for others. It depends
// on the spec alone.
func privateTerms(ctx context.Context, path string, compiled *spec.Study) (*storev1.PrivateModeRecord, error) {
	mode := compiled.Spec.GetPrivateMode()
	if mode == nil {
		return nil, nil
	}
	at := func(field string) string { return path + ".private_mode." + field }
	terms := &storev1.PrivateModeRecord{MaxValues: compiled.MaxValues(), ShardDivergences: make([]float64, compiled.Shards())}
	var err error
	terms.NoiseStandardDeviation, err = transcript.ReleaseNoise(mode.GetTestSetSize(), terms.GetMaxValues(), mode.GetTestEpsilon(), mode.GetDelta())
	if err != nil {
		return nil, invalid.Field(at("test_epsilon"), "leaves nothing of %d values over %d test records", terms.GetMaxValues(), mode.GetTestSetSize())
	}
	draws := typicalConfigurations(compiled)
	costs := make([]float64, len(draws))
	terms.Order, terms.DivergenceBudget, err = transcript.Order(mode.GetTrainEpsilon(), mode.GetDelta(), func(order float64) (float64, error) {
		for i, point := range draws {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			costs[i] = trainingCost(compiled, terms, order, point, compiled.Replicates())
		}
		slices.Sort(costs)
		if median := costs[len(costs)/2]; !math.IsInf(median, 1) {
			return median, nil
		}
		return 0, noBound(compiled.DivergenceError(draws[0], order))
	})
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err != nil {
		return nil, invalid.Field(at("train_epsilon"), "no Rényi filter can be made of it: %v", err)
	}
	terms.LeastDivergence = leastCost(compiled, terms, draws)
	if !(terms.GetLeastDivergence() <= terms.GetDivergenceBudget()) {
		return nil, invalid.Field(at("train_epsilon"), "no configuration was found that it allows to run once: the cheapest one has a Rényi divergence of %.4g of order %g, the budget is %.4g",
			terms.GetLeastDivergence(), terms.GetOrder(), terms.GetDivergenceBudget())
	}
	return terms, nil
}

// noBound returns err, or that there is no finite bound.
func noBound(err error) error {
	if err == nil {
		return errors.New("the mechanism has no finite Rényi divergence")
	}
	return err
}

// typicalConfigurations returns allowed configurations of a study's design laws, and its
// centre where none is found.
func typicalConfigurations(compiled *spec.Study) []space.Point {
	rng := rand.New(rand.NewPCG(3, 5)) // fixed: the order must not depend on anything else
	var points []space.Point
	for range typicalTries {
		point := compiled.Problem.Space.Sample(rng)
		if compiled.CheckAllowed("", point) == nil {
			points = append(points, point)
		}
		if len(points) == typicalDraws {
			return points
		}
	}
	if len(points) == 0 {
		points = append(points, compiled.Problem.Space.Sample(rng))
	}
	return points
}

// trainingCost returns what one hand-out of a configuration costs the training records.
func trainingCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, order float64, point space.Point, replicates int32) float64 {
	values := min(terms.GetMaxValues(), compiled.MostValues(point))
	return transcript.Charge(order, compiled.Divergence(point, order), int64(max(1, replicates)), values, terms.GetNoiseStandardDeviation())
}

// leastCost returns the least cost of a configuration that is found from some others on, by
// taking each parameter in turn to the end of its domain that costs less.
func leastCost(compiled *spec.Study, terms *storev1.PrivateModeRecord, from []space.Point) float64 {
	cost := func(point space.Point) float64 {
		return trainingCost(compiled, terms, terms.GetOrder(), point, compiled.Replicates())
	}
	s := compiled.Problem.Space
	best, least := from[0], math.Inf(1)
	for _, point := range from {
		if c := cost(point); c < least {
			best, least = point, c
		}
	}
	for improved := true; improved; {
		improved = false
		for i := range s.Parameters {
			p := &s.Parameters[i]
			values := []float64{p.At(0), p.At(1)}
			if p.Kind == space.Categorical {
				values = nil
				for k := range p.Choices {
					values = append(values, float64(k))
				}
			}
			for _, value := range values {
				point := best.Clone()
				point[i] = value
				point = s.Canonical(point)
				if compiled.CheckAllowed("", point) != nil {
					continue
				}
				if c := cost(point); c < least {
					best, least, improved = point, c, true
				}
			}
		}
	}
	return least
}

// nextShard returns the shard that the next hand-out of a trial trains on: the one that has
// spent least, from the trial's own turn on.
func nextShard(terms *storev1.PrivateModeRecord, number int64) int {
	spent := terms.GetShardDivergences()
	first := int(number % int64(len(spent)))
	best := first
	for i := range spent {
		if k := (first + i) % len(spent); spent[k] < spent[best] {
			best = k
		}
	}
	return best
}

// leftFor returns the Rényi divergence that the next hand-out may have.
func leftFor(terms *storev1.PrivateModeRecord) float64 {
	return terms.GetDivergenceBudget() - slices.Min(terms.GetShardDivergences())
}

// privateSpent returns which privacy budget keeps a study from creating trials, or "".
func privateSpent(record *storev1.StudyRecord) string {
	terms := record.GetPrivateMode()
	switch {
	case terms == nil || record.GetNextTrialNumber() > record.GetStudy().GetSpec().GetBudget().GetMaxTrials():
		return "" // the budget of trials is spent, which says more
	case terms.GetExhausted() || leftFor(terms) < terms.GetLeastDivergence():
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

// affordability tells whether a trial can be handed out.
type affordability int

const (
	affordable affordability = iota
	later                    // once others have completed with fewer values than they might
	never
)

// affords tells whether the budgets of a study with private_mode allow to hand out a trial.
func (c *change) affords(record *storev1.TrialRecord) affordability {
	terms := c.study.GetPrivateMode()
	if terms == nil {
		return affordable
	}
	point, err := pointOf(c.compiled, record.GetTrial())
	if err != nil || !(c.trainingCost(point, record.GetTrial()) <= leftFor(terms)) {
		return never
	}
	if record.GetPrivateMode().GetReservedValues() > 0 {
		return affordable
	}
	metrics := c.compiled.ReportedMetrics()
	switch {
	case terms.GetValues()+metrics > terms.GetMaxValues():
		return never
	case terms.GetValues()+terms.GetReservedValues()+metrics > terms.GetMaxValues():
		return later
	default:
		return affordable
	}
}

func (c *change) trainingCost(point space.Point, trial *dparetov1.Trial) float64 {
	terms := c.study.GetPrivateMode()
	return trainingCost(c.compiled, terms, terms.GetOrder(), point, trial.GetReplicates())
}

// errUnaffordable is returned where a trial must not be handed out.
var errUnaffordable = errors.New("the privacy budget does not allow the trial")

// payFor charges a hand-out of a trial to the budgets of a study with private_mode, and
// chooses its shard. In the same transaction the trial must be handed out: whatever becomes
// of this attempt, it is paid.
func (c *change) payFor(record *storev1.TrialRecord) error {
	terms := c.study.GetPrivateMode()
	if terms == nil {
		return nil
	}
	if c.affords(record) != affordable {
		return errUnaffordable
	}
	trial := record.GetTrial()
	point, err := pointOf(c.compiled, trial)
	if err != nil {
		return err
	}
	cost := c.trainingCost(point, trial)
	shard := nextShard(terms, trial.GetNumber())
	terms.ShardDivergences[shard] += cost
	if record.GetPrivateMode() == nil {
		record.PrivateMode = new(storev1.PrivateTrialRecord)
		terms.StartedTrials++
	}
	paid := record.GetPrivateMode()
	paid.Charges = append(paid.GetCharges(), &storev1.TrainingCharge{Shard: int32(shard), Divergence: cost})
	trial.TrainingShard = int32(shard)
	if paid.GetReservedValues() == 0 {
		paid.ReservedValues = c.compiled.ReportedMetrics()
		terms.ReservedValues += paid.GetReservedValues()
	}
	return nil
}

// unreserve gives back what a trial may complete with: it is complete, or deleted.
func (c *change) unreserve(record *storev1.TrialRecord) {
	if paid := record.GetPrivateMode(); paid != nil {
		c.study.GetPrivateMode().ReservedValues -= paid.GetReservedValues()
		paid.ReservedValues = 0
	}
}

// measured returns what is kept of a worker's measurement, and what a reader must know of
// it. In a study with private_mode that is a noisy version, made here before anything else
// sees it; fresh tells whether there was none at its step. token is that of the lease under
// which it was made.
func (c *change) measured(record *storev1.TrialRecord, token string, m *dparetov1.Measurement, final bool) (kept *dparetov1.Measurement, warnings []*dparetov1.Warning, fresh bool, err error) {
	const path = "measurement"
	trial := record.GetTrial()
	point, err := c.compiled.Point("trial.parameters", trial.GetParameters())
	if err != nil {
		return nil, nil, false, err
	}
	if c.compiled.IsSearch() {
		return c.score(path, point, m, final)
	}
	terms := c.study.GetPrivateMode()
	if terms == nil {
		kept, warnings, err = c.compiled.Measurement(path, point, m, final)
		return kept, warnings, true, err
	}
	if !final && !c.compiled.Checkpoints() {
		return nil, nil, false, status.Errorf(codes.FailedPrecondition,
			"%s has private_mode and no checkpoint parameter: a state on the way is not what its guarantee is about", studyName(c.id))
	}
	clipped, err := c.compiled.Clipped(path, m)
	if err != nil {
		return nil, nil, false, err
	}
	if kept, warnings, err = c.compiled.Measurement(path, point, clipped, final); err != nil {
		return nil, nil, false, err
	}
	if trial.GetLease().GetToken() == token {
		i := slices.IndexFunc(trial.GetMeasurements(), func(known *dparetov1.Measurement) bool { return known.GetStep() == kept.GetStep() })
		if i >= 0 {
			return proto.CloneOf(trial.GetMeasurements()[i]), nil, false, nil
		}
	}
	values := c.compiled.AddNoise(kept, terms.GetNoiseStandardDeviation(), func(value float64) float64 {
		return c.entropy.Gaussian(value, terms.GetNoiseStandardDeviation())
	})
	if err := c.countValues(record, values, final); err != nil {
		return nil, nil, false, err
	}
	return kept, warnings, true, nil
}

// countValues counts noisy values of a trial: final ones out of what is reserved for them,
// those on the way as far as they leave enough for the final ones of all trials that the
// budget allows. Where it returns an error the values must be forgotten.
func (c *change) countValues(record *storev1.TrialRecord, values int64, final bool) error {
	terms, paid := c.study.GetPrivateMode(), record.GetPrivateMode()
	if paid == nil {
		return fmt.Errorf("%s was measured and never handed out", record.GetTrial().GetName())
	}
	if final {
		if values > paid.GetReservedValues() {
			return fmt.Errorf("%s brings %d final values, %d are reserved", record.GetTrial().GetName(), values, paid.GetReservedValues())
		}
		paid.ReservedValues -= values
		terms.ReservedValues -= values
	} else {
		metrics := c.compiled.ReportedMetrics()
		waiting := max(0, c.study.GetStudy().GetSpec().GetBudget().GetMaxTrials()-terms.GetStartedTrials())
		if terms.GetValues()+values+terms.GetReservedValues()+waiting*metrics > terms.GetMaxValues() {
			return status.Errorf(codes.ResourceExhausted, "%s takes %d values; what is left of them is kept for the final ones of its trials",
				studyName(c.id), terms.GetMaxValues())
		}
	}
	terms.Values += values
	paid.Values += values
	return nil
}

// affordsAll reports whether the training budget allows to hand out all of some suggestions.
func (c *change) affordsAll(suggestions []suggest.Suggestion) bool {
	terms := c.study.GetPrivateMode()
	if terms == nil {
		return true
	}
	return !slices.ContainsFunc(suggestions, func(s suggest.Suggestion) bool {
		return !(trainingCost(c.compiled, terms, terms.GetOrder(), s.Point, c.compiled.Replicates()) <= leftFor(terms))
	})
}

// exhaustsBudget notes, in a study with private_mode, that the designer found nothing that
// the training budget allows, and returns true. A grid may simply be at its end.
func (c *change) exhaustsBudget() bool {
	terms := c.study.GetPrivateMode()
	if terms == nil || c.compiled.Spec.GetAlgorithm().GetName() == dparetov1.Algorithm_ALGORITHM_GRID {
		return false
	}
	if !terms.GetExhausted() {
		terms.Exhausted = true
		c.touchStudy()
	}
	return true
}

// told is what may be remembered of a worker's report.
type told struct {
	request interface {
		proto.Message
		GetRequestId() string
	}
	isNoisy bool // and so without what it says of the data
}

// toldBy returns what may be remembered of a report on the trial with a name. Of studies
// that keep noisy values that is neither a value nor a hash of one, which is as good where there
// are few possible values: a repetition is told by trial, token and step.
func (s *Server) toldBy(ctx context.Context, name string, req interface {
	proto.Message
	GetRequestId() string
}) (told, error) {
	id, _, err := parseTrialName("name", name)
	if err != nil {
		return told{}, err
	}
	t := told{request: req}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil // as the transaction will find
		}
		t.isNoisy = record.GetPrivateMode() != nil || record.GetStudy().GetSpec().GetRandomStopping().GetTestSetSize() > 0
		return err
	})
	if err != nil || !t.isNoisy {
		return t, err
	}
	step := func(m *dparetov1.Measurement) *dparetov1.Measurement {
		return &dparetov1.Measurement{Step: m.GetStep()}
	}
	switch r := req.(type) {
	case *dparetov1.AddMeasurementRequest:
		t.request = &dparetov1.AddMeasurementRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId(), Measurement: step(r.GetMeasurement())}
	case *dparetov1.ReleaseTrialRequest:
		t.request = &dparetov1.ReleaseTrialRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId()}
	case *dparetov1.CompleteTrialRequest:
		redacted := &dparetov1.CompleteTrialRequest{Name: r.GetName(), LeaseToken: r.GetLeaseToken(), RequestId: r.GetRequestId(), Outcome: r.GetOutcome()}
		switch outcome := r.GetOutcome().(type) {
		case *dparetov1.CompleteTrialRequest_Measurement:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: step(outcome.Measurement)}
		case *dparetov1.CompleteTrialRequest_Infeasible:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: new(dparetov1.Infeasible)}
		case *dparetov1.CompleteTrialRequest_Failure:
			redacted.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Retryable: outcome.Failure.GetRetryable()}}
		}
		t.request = redacted
	default:
		panic("server: a report of another type")
	}
	return t, nil
}

// check refuses a report where the study has become another one since toldBy looked.
func (t told) check(c *change) error {
	if t.isNoisy != c.compiled.IsNoisy() {
		return status.Errorf(codes.Aborted, "%s has been replaced by another study; try again", studyName(c.id))
	}
	return nil
}

// reason returns what is kept of a worker's words: none in a study that keeps noisy values.
func (c *change) reason(words string) string {
	if c.compiled.IsNoisy() {
		return reasonWorker
	}
	return words
}

// affordableOnly returns a designer that keeps to what the training budget of a study
// allows, d itself without private_mode.
func affordableOnly(d suggest.Designer, from *snapshot, condition suggest.Condition) suggest.Designer {
	terms := from.record.GetPrivateMode()
	if terms != nil {
		condition.AtMost = append(slices.Clone(condition.AtMost), suggest.Limit{
			Objective: -1,
			Known: func(point space.Point) float64 {
				return trainingCost(from.compiled, terms, terms.GetOrder(), point, from.compiled.Replicates())
			},
			Upper: leftFor(terms),
		})
	}
	if len(condition.AtMost)+len(condition.Fixed) == 0 {
		return d
	}
	return suggest.Within(d, condition)
}

// checkPrivateUpdate refuses what private_mode does not let be changed.
func checkPrivateUpdate(record *storev1.StudyRecord, after *dparetov1.StudySpec) error {
	terms := record.GetPrivateMode()
	if terms == nil {
		return nil
	}
	if most := terms.GetMaxValues() / reportedMetrics(after); after.GetBudget().GetMaxTrials() > most {
		return invalid.Field("study.spec.budget.max_trials", "must be at most %d: the study takes %d noisy values, fixed when it was created, is %d",
			most, terms.GetMaxValues(), after.GetBudget().GetMaxTrials())
	}
	return nil
}

// publication returns what publishing the results of a study guarantees, nil where nothing
// is.
func (s *Server) publication(record *storev1.StudyRecord) *dparetov1.Publication {
	if record.GetPrivateMode() == nil {
		return nil
	}
	cached, err := s.studies.get(record.GetStudy())
	if err != nil {
		return nil // it was compiled when it was created
	}
	p, err := privatePublication(record, cached.compiled)
	if err != nil {
		s.logger.Error("publication", "study", record.GetStudy().GetName(), "error", err)
		return nil
	}
	return p
}

// chargeRecord charges all that a study will publish to the ledgers that its spec names.
func chargeRecord(tx *store.Tx, record *storev1.StudyRecord, compiled *spec.Study, at time.Time) error {
	study := record.GetStudy()
	if compiled.IsPrivate() {
		p, err := privatePublication(record, compiled)
		if err != nil {
			return err
		}
		study = &dparetov1.Study{Name: study.GetName(), Uid: study.GetUid(), Spec: study.GetSpec(), Publication: p}
	}
	return chargeStudy(tx, study, at)
}

// privatePublication is publication for a study with private_mode.
func privatePublication(record *storev1.StudyRecord, compiled *spec.Study) (*dparetov1.Publication, error) {
	mode, terms := compiled.Spec.GetPrivateMode(), record.GetPrivateMode()
	metric, function := compiled.Mechanism("")
	test := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		return &dparetov1.PrivacyGuarantee{
			Epsilon: epsilon, Delta: mode.GetDelta(),
			Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE, Accountant: dparetov1.Accountant_ACCOUNTANT_GDP, Steps: terms.GetValues(),
		}
	}
	runs := int64(0)
	train := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		return &dparetov1.PrivacyGuarantee{
			Epsilon: epsilon, Delta: mode.GetDelta(), Adjacency: function.Adjacency(),
			Accountant: dparetov1.Accountant_ACCOUNTANT_RDP, Conversion: dparetov1.Conversion_CONVERSION_IMPROVED, Order: terms.GetOrder(), Steps: runs,
		}
	}
	spentTest, err := transcript.TestEpsilon(mode.GetTestSetSize(), terms.GetValues(), terms.GetNoiseStandardDeviation(), mode.GetDelta())
	if err != nil {
		return nil, err
	}
	most := slices.Max(terms.GetShardDivergences())
	p := &dparetov1.Publication{
		Train:                  train(mode.GetTrainEpsilon()),
		Test:                   test(mode.GetTestEpsilon()),
		NoiseStandardDeviation: terms.GetNoiseStandardDeviation(),
		Spent: &dparetov1.PrivateModeOdometers{
			Values: terms.GetValues(), MaxValues: terms.GetMaxValues(),
			Test:  test(spentTest),
			Train: train(transcript.TrainEpsilon(terms.GetOrder(), most, mode.GetDelta())),
			Order: terms.GetOrder(), DivergenceBudget: terms.GetDivergenceBudget(), ShardDivergences: terms.GetShardDivergences(),
		},
		Assumptions: []string{
			fmt.Sprintf("every reported metric is an average over %d test records of a number in [0, 1] for each", mode.GetTestSetSize()),
			"no person is in both the training and the test records; both were separated without looking at them",
			fmt.Sprintf("every run is the mechanism that metric %s describes, at no more than its planned length; a hand-out of a trial is %d of them", metric, compiled.Replicates()),
			"runs have independent randomness, and nothing but what is reported here leaves the workers: no models, losses or raw values",
			"the server draws its noise from the entropy of the operating system",
		},
		NotCovered: []string{
			"when results arrive, how long runs and answers take, and which runs fail, fall silent or are infeasible",
			"names, labels, notes and descriptions, which people write who may have seen raw values",
			"other studies and releases on the same records (see test_ledger and train_ledger)",
			"copies: a study that goes on from a backup or an export, beside the original or in its place, spends again what the original has spent since, and no ledger is charged for it",
		},
	}
	if compiled.Checkpoints() {
		p.Assumptions = append(p.Assumptions, "all states of a run on the way are covered by the guarantee of the whole run, as those of DP-SGD are")
	}
	if n := compiled.Shards(); n > 1 {
		p.Assumptions = append(p.Assumptions, fmt.Sprintf("every training record is in one of %d shards, cut without looking at the records, and every run trains on the shard of its trial alone", n))
		if function.Adjacency() == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
			// A cut by positions and their number would move all others, and each shard with them.
			p.Assumptions = append(p.Assumptions, "a record that is added or removed leaves every other in its shard: a hash of each record decides, or what is removed leaves its place empty")
		}
	}
	if compiled.Spec.GetPrivateMode().GetPriorStudiesArePublic() && len(compiled.Spec.GetPriorStudies()) > 0 {
		p.Assumptions = append(p.Assumptions, "the prior studies hold public data only")
	}
	return p, nil
}
