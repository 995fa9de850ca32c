package private

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// A study with random stopping is the mechanism of Liu and Talwar ("Private selection from private
// candidates", 2019) and Papernot and Steinke ("Hyperparameter tuning with Rényi
// differential privacy", 2022). A candidate is a configuration, drawn uniformly from a list that is drawn
// when the study is created, with the result of its run. The number K of candidates is also drawn then. Only
// the best candidate is shown, once all have been run.
//
// A candidate draws its mechanism from a public distribution, so that it costs the mean of the profiles
// of the list (see tuning.Mixture), and the best of them what tuning.Location makes of it. Both need
// nothing but the list, which does not depend on data.
//
// If the sequence of configurations were predictable, the best one would reveal how many came before
// it, and so something about K. So each configuration is drawn with fresh entropy, not from a seed
// and a number as in other studies, and the best one is shown without its number.
//
// A run that fails, is lost or is given back is a candidate with the lowest score. What becomes of a
// run is its result, whatever it depends on.

// randomStopping is the policy of studies with random_stopping. Everything about their trials is
// secret except the best one, once all have been run.
type randomStopping struct {
	study.Ordinary

	entropy *noise.Source
	isNoisy bool // keep values with noise only
}

// Traits implements study.Policy.
func (p randomStopping) Traits() study.Traits {
	return study.Traits{Hidden: true, OwnDraws: true, Prepared: true, Prepaid: true, NoReasons: p.isNoisy}
}

// Allowance implements study.Policy.
func (p randomStopping) Allowance(record *storev1.StudyRecord) study.Allowance {
	if !record.GetRandomStopping().GetPaid() {
		return study.Allowance{Reason: record.GetStudy().GetStateReason(), End: dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT}
	}
	return study.Allowance{Trials: trialsLeft(record), Reason: "all of its trials have been run", End: dparetov1.EndReason_END_REASON_BUDGET_SPENT}
}

// Redact implements study.Policy.
func (p randomStopping) Redact(req study.Identified) study.Identified {
	if p.isNoisy {
		return noisy{}.Redact(req)
	}
	return req
}

// Present implements study.Policy: it returns a copy without anything that depends on the trials.
func (randomStopping) Present(record *storev1.StudyRecord) *dparetov1.Study {
	shown := proto.CloneOf(record.GetStudy())
	shown.TrialCounts, shown.Revision, shown.Seed = nil, 0, 0
	return shown
}

// FixTerms implements study.Policy: it draws the number of trials, the list of configurations, and the
// training subset if there is one.
func (p randomStopping) FixTerms(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	dist, err := trialsDistribution(compiled.Spec.GetRandomStopping())
	if err != nil {
		return err
	}
	candidates, err := dist.Draw(p.entropy) // cannot be reproduced
	if err != nil {
		return err
	}
	list, err := searchList(ctx, compiled, rand.New(rand.NewPCG(p.entropy.Uint64(), p.entropy.Uint64())))
	record.GetStudy().Seed = 0 // unused
	record.RandomStopping = &storev1.RandomStopping{
		Trials: candidates * portfolio(compiled), Listed: slices.Concat(list...), SubsetKey: drawSubset(p.entropy, compiled),
	}
	return err
}

// Prepare implements study.Policy: it computes the cost of the study.
func (randomStopping) Prepare(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study, progress func(done, total int)) error {
	list, err := listOf(record.GetRandomStopping(), compiled)
	if err != nil {
		return err
	}
	record.Study.Publication, err = SearchPublication(ctx, compiled, list, progress)
	return err
}

// Pay implements study.Policy. The trials can be handed out from then on.
func (randomStopping) Pay(tx *store.Tx, record *storev1.StudyRecord, _ *spec.Study, at time.Time) error {
	record.RandomStopping.Paid = true
	warnOfNoise(record.GetStudy(), record.GetStudy().GetPublication().GetNoiseStandardDeviation())
	return ledger.ChargeStudy(tx, record.GetStudy(), at)
}

// listOf returns the list of configurations of a study. It fails if the list does not fit the spec.
func listOf(r *storev1.RandomStopping, compiled *spec.Study) ([]space.Point, error) {
	n := len(compiled.Problem.Space.Parameters)
	if len(r.GetListed()) == 0 || len(r.GetListed())%n != 0 {
		return nil, fmt.Errorf("the list holds %d coordinates of %d parameters", len(r.GetListed()), n)
	}
	var list []space.Point
	for coordinates := range slices.Chunk(r.GetListed(), n) {
		if err := checkListed(compiled, coordinates); err != nil {
			return nil, err
		}
		list = append(list, coordinates)
	}
	return list, nil
}

// trialsLeft returns how many more trials a study creates.
func trialsLeft(record *storev1.StudyRecord) int64 {
	return record.GetRandomStopping().GetTrials() - record.GetNextTrialNumber() + 1
}

// isRun reports whether all trials of a study are complete, even if it is paused.
func isRun(record *storev1.StudyRecord) bool {
	return record.GetRandomStopping().GetPaid() && trialsLeft(record) <= 0 && study.OpenTrials(record.GetStudy().GetTrialCounts()) == 0
}

// independent draws every configuration from a list with fresh entropy. So all trials have the same
// distribution, whatever their numbers.
type independent struct {
	entropy *noise.Source
	list    []float64
}

// Name implements suggest.Designer.
func (independent) Name() string { return "independent" }

// Version implements suggest.Designer.
func (independent) Version() string { return "1" }

// Suggest implements suggest.Designer. It ignores the seed and the number of the request.
func (d independent) Suggest(_ context.Context, p *suggest.Problem, _ *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	n := len(p.Space.Parameters)
	var all []suggest.Suggestion
	for range r.Count {
		i := n * int(d.entropy.Uint64N(uint64(len(d.list)/n)))
		all = append(all, suggest.Suggestion{Point: slices.Clone(space.Point(d.list[i : i+n])), Designer: d.Name()})
	}
	return all, nil
}

// Designer implements engine.Chooser.
func (p randomStopping) Designer(record *storev1.StudyRecord, _ *spec.Study, _ suggest.Designer, _ restrict.Condition) suggest.Designer {
	return independent{p.entropy, record.GetRandomStopping().GetListed()}
}

// Affords implements engine.Chooser.
func (randomStopping) Affords(_ *storev1.StudyRecord, _ *spec.Study, suggestions []suggest.Suggestion) int {
	return len(suggestions)
}

// Exhausts implements engine.Chooser.
func (randomStopping) Exhausts(*study.Change) bool { return false }

// Keep implements study.Policy: it keeps the scored values, the final value or a curve, with noise if
// test records are protected. A value that is reported again gets the noise of the first time.
func (p randomStopping) Keep(c *study.Change, record *storev1.TrialRecord, r study.Report) (study.Kept, error) {
	isCurve := releasesCurve(c.Compiled)
	if !r.Final && !isCurve {
		return study.Kept{}, nil
	}
	compiled := compiledFor(c.Study, c.Compiled, record.GetTrial().GetNumber())
	kept, warnings, err := p.scored(compiled, r)
	if err != nil {
		return study.Kept{}, err
	}
	if isCurve {
		known, err := keptBefore(c, record, r, kept.GetStep())
		if err != nil || known != nil {
			return study.Kept{Measurement: known}, err
		}
		if !isScored(c.Compiled, r.Point, kept.GetStep()) {
			return study.Kept{}, nil
		}
	}
	if p.isNoisy {
		sigma := c.Study.GetStudy().GetPublication().GetNoiseStandardDeviation()
		addNoise(compiled.Spec, kept, sigma, func(value float64) float64 { return p.entropy.Gaussian(value, sigma) })
	}
	return study.Kept{Measurement: kept, Warnings: warnings, Fresh: true}, nil
}

// keptBefore returns what is kept already for a report of a run at a step, or nil. A run that ends at a step
// that is not scored ends with its last value that is.
func keptBefore(c *study.Change, record *storev1.TrialRecord, r study.Report, step int64) (*dparetov1.Measurement, error) {
	known, err := c.MeasurementAt(record, step)
	if err != nil || known != nil || !r.Final || isScored(c.Compiled, r.Point, step) {
		return known, err
	}
	measured := record.GetTrial().GetMeasurements()
	if len(measured) == 0 {
		return nil, status.Errorf(codes.FailedPrecondition,
			"%s ends at step %d, which is not scored, and has no value at an earlier step that is; report it as infeasible", record.GetTrial().GetName(), step)
	}
	return proto.CloneOf(measured[len(measured)-1]), nil
}
