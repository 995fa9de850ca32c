package private

import (
	"cmp"
	"context"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"

	trialcount "github.com/dpareto/dpareto/privacy/stopping"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// A study with random stopping is the mechanism of Liu and Talwar ("Private selection from
// private candidates", 2019) in the version of Papernot and Steinke ("Hyperparameter tuning
// with Rényi differential privacy", 2022). A candidate is a configuration, drawn from a fixed
// law, with what its run measured. The number K of candidates is drawn when the study is
// created, and nothing but the best of them is shown, when all have been run.
//
// Whoever knew the sequence of configurations could tell from the best one how many came
// before it, and with that something of K. So each comes from entropy of its own, and not
// from a seed and a number as in other studies, and the best is shown without its number.

// randomStopping is the policy of studies with random_stopping: everything about their trials is
// secret but the best of them, when all have been run.
type randomStopping struct {
	study.Ordinary

	entropy *noise.Source
	isNoisy bool // values are kept with noise only
}

// Traits implements study.Policy.
func (randomStopping) Traits() study.Traits { return study.Traits{Hidden: true, OwnDraws: true} }

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
func (p randomStopping) Reason(words string) string {
	if p.isNoisy {
		return noisy{}.Reason(words)
	}
	return words
}

// Present implements study.Policy: a copy of the study without what follows from its trials.
func (randomStopping) Present(record *storev1.StudyRecord) *dparetov1.Study {
	shown := proto.CloneOf(record.GetStudy())
	shown.TrialCounts, shown.Revision, shown.Seed = nil, 0, 0
	return shown
}

// Begin implements study.Policy: it draws and computes what the study needs, and says in the
// study what it guarantees. It takes as long as the cost of 10,000 configurations does.
func (p randomStopping) Begin(ctx context.Context, record *storev1.StudyRecord, compiled *spec.Study) error {
	bound, err := compiled.SearchBound(ctx)
	if err != nil {
		return err
	}
	study := record.GetStudy()
	if study.Publication, err = SearchPublication(compiled, bound); err != nil {
		return err
	}
	study.Seed = 0 // nothing is drawn from it
	dist, err := trialsDistribution(study.GetSpec().GetRandomStopping())
	if err != nil {
		return err
	}
	trials, err := dist.Draw(p.entropy) // which nobody can repeat
	record.RandomStopping = &storev1.RandomStopping{
		Trials: trials,
		Order:  bound.Order, Divergence: bound.Divergence,
		SecondOrder: bound.SecondOrder, SecondDivergence: bound.SecondDivergence, Delta: bound.Delta,
	}
	return err
}

// Pay implements study.Policy.
func (randomStopping) Pay(tx *store.Tx, record *storev1.StudyRecord, _ *spec.Study, at time.Time) error {
	return ledger.ChargeStudy(tx, record.GetStudy(), at)
}

// trialsDistribution returns the distribution of the number of trials of a study with random stopping.
func trialsDistribution(asked *dparetov1.RandomStoppingSpec) (trialcount.Distribution, error) {
	if _, isPoisson := asked.GetDistribution().(*dparetov1.RandomStoppingSpec_Poisson); isPoisson {
		return trialcount.Poisson{Mean: asked.GetMeanTrials()}, nil
	}
	return trialcount.ByMean(asked.GetEta(), asked.GetMeanTrials())
}

// BoundOf returns the bound on the cost of trials that was found when a study was created.
func BoundOf(r *storev1.RandomStopping) privacy.SearchBound {
	return privacy.SearchBound{
		Order: r.GetOrder(), Divergence: r.GetDivergence(),
		SecondOrder: r.GetSecondOrder(), SecondDivergence: r.GetSecondDivergence(), Delta: r.GetDelta(),
	}
}

// trialsLeft returns how many trials a study has still to create.
func trialsLeft(record *storev1.StudyRecord) int64 {
	return record.GetRandomStopping().GetTrials() - record.GetNextTrialNumber() + 1
}

// isRun reports whether all trials of a study are complete, also if it was paused since.
func isRun(record *storev1.StudyRecord) bool {
	return trialsLeft(record) <= 0 && study.OpenTrials(record.GetStudy().GetTrialCounts()) == 0
}

// independent draws every configuration of a study with random stopping from a generator of
// its own, which entropy seeds: the first one of its draws that the bound on the cost admits.
// All are drawn by one distribution, whatever their numbers.
type independent struct {
	entropy  *noise.Source
	compiled *spec.Study
	bound    privacy.SearchBound
}

// Name implements suggest.Designer.
func (independent) Name() string { return "independent" }

// Version implements suggest.Designer.
func (independent) Version() string { return random.New().Version() }

// Suggest implements suggest.Designer. It passes over the seed and the number of the request.
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

// AffordsAll implements engine.Chooser.
func (randomStopping) AffordsAll(*study.Change, []suggest.Suggestion) bool { return true }

// Exhausts implements engine.Chooser.
func (randomStopping) Exhausts(*study.Change) bool { return false }

// Keep implements study.Policy: nothing but the score at the end of the run, with noise where test
// records are protected.
func (p randomStopping) Keep(c *study.Change, record *storev1.TrialRecord, r study.Report) (study.Kept, error) {
	if !r.Final {
		return study.Kept{}, nil
	}
	point, err := study.PointOf(c.Compiled, record.GetTrial())
	if err != nil {
		return study.Kept{}, err
	}
	sigma := c.Study.GetStudy().GetPublication().GetNoiseStandardDeviation()
	kept, warnings, err := c.Compiled.Score(r.Path, point, r.Measurement, sigma, func(value float64) float64 { return p.entropy.Gaussian(value, sigma) })
	return study.Kept{Measurement: kept, Warnings: warnings, Fresh: true}, err
}
