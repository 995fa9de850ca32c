package private

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	trialcount "github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// A study with random stopping is the mechanism of Liu and Talwar ("Private selection from private
// candidates", 2019) as analysed by Papernot and Steinke ("Hyperparameter tuning with Rényi
// differential privacy", 2022). A candidate is a configuration, drawn from a fixed distribution,
// with the result of its run. The number K of candidates is drawn when the study is created. Only
// the best candidate is shown, once all have been run.
//
// If the sequence of configurations were predictable, the best one would reveal how many came before
// it, and so something about K. So each configuration is drawn with fresh entropy, not from a seed
// and a number as in other studies, and the best one is shown without its number.

// randomStopping is the policy of studies with random_stopping. Everything about their trials is
// secret except the best one, once all have been run.
type randomStopping struct {
	study.Ordinary

	entropy *noise.Source
	isNoisy bool // keep values with noise only
}

// Traits implements study.Policy.
func (randomStopping) Traits() study.Traits {
	return study.Traits{Hidden: true, OwnDraws: true, Prepaid: true}
}

// Allowance implements study.Policy.
func (randomStopping) Allowance(record *storev1.StudyRecord) study.Allowance {
	return study.Allowance{Trials: trialsLeft(record), Reason: "all of its trials have been run", End: dparetov1.EndReason_END_REASON_BUDGET_SPENT}
}

// Redact implements study.Policy.
func (p randomStopping) Redact(req study.Identified) study.Identified {
	if p.isNoisy {
		return noisy{}.Redact(req)
	}
	return req
}

// Reason implements study.Policy.
func (p randomStopping) Reason(text string) string {
	if p.isNoisy {
		return noisy{}.Reason(text)
	}
	return text
}

// Present implements study.Policy: it returns a copy without anything that depends on the trials.
func (randomStopping) Present(record *storev1.StudyRecord) *dparetov1.Study {
	shown := proto.CloneOf(record.GetStudy())
	shown.TrialCounts, shown.Revision, shown.Seed = nil, 0, 0
	return shown
}

// Begin implements study.Policy: it draws the number of trials, and computes the bound on their cost
// and the guarantee. It accounts about 10,000 configurations.
func (p randomStopping) Begin(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	bound, err := compiled.SearchBound(ctx)
	if err != nil {
		return err
	}
	study := record.GetStudy()
	if study.Publication, err = SearchPublication(compiled, bound); err != nil {
		return err
	}
	study.Seed = 0 // unused
	dist, err := trialsDistribution(study.GetSpec().GetRandomStopping())
	if err != nil {
		return err
	}
	trials, err := dist.Draw(p.entropy) // cannot be reproduced
	record.RandomStopping = &storev1.RandomStopping{
		Trials: trials,
		Order:  bound.Order, Divergence: bound.Divergence,
		SecondOrder: bound.SecondOrder, SecondDivergence: bound.SecondDivergence, Delta: bound.Delta,
		SubsetKey: drawSubset(p.entropy, compiled),
	}
	return err
}

// Pay implements study.Policy.
func (randomStopping) Pay(tx *store.Tx, record *storev1.StudyRecord, _ *spec.Study, at time.Time) error {
	return ledger.ChargeStudy(tx, record.GetStudy(), at)
}

// trialsDistribution returns the distribution of the number of trials.
func trialsDistribution(asked *dparetov1.RandomStoppingSpec) (trialcount.Distribution, error) {
	if _, isPoisson := asked.GetDistribution().(*dparetov1.RandomStoppingSpec_Poisson); isPoisson {
		return trialcount.Poisson{Mean: asked.GetMeanTrials()}, nil
	}
	return trialcount.ByMean(asked.GetEta(), asked.GetMeanTrials())
}

// BoundOf returns the bound on the cost of a trial that was found when the study was created.
func BoundOf(r *storev1.RandomStopping) privacy.SearchBound {
	return privacy.SearchBound{
		Order: r.GetOrder(), Divergence: r.GetDivergence(),
		SecondOrder: r.GetSecondOrder(), SecondDivergence: r.GetSecondDivergence(), Delta: r.GetDelta(),
	}
}

// trialsLeft returns how many more trials a study creates.
func trialsLeft(record *storev1.StudyRecord) int64 {
	return record.GetRandomStopping().GetTrials() - record.GetNextTrialNumber() + 1
}

// isRun reports whether all trials of a study are complete, even if it is paused.
func isRun(record *storev1.StudyRecord) bool {
	return trialsLeft(record) <= 0 && study.OpenTrials(record.GetStudy().GetTrialCounts()) == 0
}

// independent draws every configuration with a fresh seed from entropy. It takes the first draw that
// the bound on the cost admits. So all trials have the same distribution, whatever their numbers.
type independent struct {
	entropy  *noise.Source
	compiled *spec.Study
	bound    privacy.SearchBound
}

// Name implements suggest.Designer.
func (independent) Name() string { return "independent" }

// Version implements suggest.Designer.
func (independent) Version() string { return random.New().Version() }

// Suggest implements suggest.Designer. It ignores the seed and the number of the request.
func (d independent) Suggest(ctx context.Context, p *suggest.Problem, _ *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	admitted := *p
	admitted.Allowed = func(point space.Point) bool { return ctx.Err() == nil && d.compiled.SearchAdmits(d.bound, point) }
	var all []suggest.Suggestion
	for range r.Count {
		one, err := random.New().Suggest(ctx, &admitted, new(suggest.History), suggest.Request{Count: 1, Seed: d.entropy.Uint64(), Number: 1})
		all = append(all, one...)
		if err := cmp.Or(ctx.Err(), err); err != nil {
			return all, err
		}
	}
	return all, nil
}

// Designer implements engine.Chooser.
func (p randomStopping) Designer(record *storev1.StudyRecord, compiled *spec.Study, _ suggest.Designer, _ restrict.Condition) suggest.Designer {
	return independent{p.entropy, compiled, BoundOf(record.GetRandomStopping())}
}

// Affords implements engine.Chooser.
func (randomStopping) Affords(_ *storev1.StudyRecord, _ *spec.Study, suggestions []suggest.Suggestion) int {
	return len(suggestions)
}

// Exhausts implements engine.Chooser.
func (randomStopping) Exhausts(*study.Change) bool { return false }

// Keep implements study.Policy: it keeps only the final score, with noise if test records are
// protected.
func (p randomStopping) Keep(c *study.Change, record *storev1.TrialRecord, r study.Report) (study.Kept, error) {
	if !r.Final {
		return study.Kept{}, nil
	}
	compiled := compiledFor(c.Study, c.Compiled, record.GetTrial().GetNumber())
	point, err := study.PointOf(compiled, record.GetTrial())
	if err != nil {
		return study.Kept{}, err
	}
	sigma := c.Study.GetStudy().GetPublication().GetNoiseStandardDeviation()
	kept, warnings, err := compiled.Score(r.Path, point, r.Measurement, sigma, func(value float64) float64 { return p.entropy.Gaussian(value, sigma) })
	return study.Kept{Measurement: kept, Warnings: warnings, Fresh: true}, err
}
