package release

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
)

// largeNoise is the standard deviation of noise, on values in [0, 1], above which a release warns
// that it says little.
const largeNoise = 0.05

// ReleaseFront implements ReleaseService.
func (s *Releases) ReleaseFront(ctx context.Context, req *dparetov1.ReleaseFrontRequest) (*dparetov1.ReleaseFrontResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	release, err := s.once(ctx, req.GetName(), req, func(r *releaseRequest) (*dparetov1.Release, error) { return s.releaseFront(ctx, r, id, req) })
	if err != nil {
		return nil, err
	}
	return &dparetov1.ReleaseFrontResponse{Release: release}, nil
}

// releaseFront prepares a release and publishes it.
func (s *Releases) releaseFront(ctx context.Context, r *releaseRequest, id string, req *dparetov1.ReleaseFrontRequest) (*dparetov1.Release, error) {
	var of *dparetov1.Study
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		of = record.GetStudy()
		return err
	})
	if err != nil {
		return nil, err
	}
	if of.GetSpec().GetRandomStopping() != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%s has random_stopping: release its best trial with ReleaseBest", r.parent)
	}
	if err := checkFrontBudget(of.GetSpec(), req); err != nil {
		return nil, err
	}
	var d *draft
	if of.GetSpec().GetPrivateMode() != nil {
		d, err = s.frontOfPrivate(ctx, id)
	} else {
		d, err = s.frontOfFixed(ctx, id, req.GetEpsilon(), req.GetDelta())
	}
	if err != nil {
		return nil, err
	}
	return s.publish(ctx, r, d)
}

// checkFrontBudget checks the budget of a request.
func checkFrontBudget(asked *dparetov1.StudySpec, req *dparetov1.ReleaseFrontRequest) error {
	var fields invalid.Fields
	if ledger.IsPrepaid(asked) {
		if req.GetEpsilon() != 0 || req.GetDelta() != 0 {
			fields.Addf("epsilon", "must be unset, like delta: the study has already paid for everything it publishes")
		}
		return fields.Err()
	}
	fields.CheckPositive("epsilon", req.GetEpsilon())
	if fault := privacy.DeltaFault(req.GetDelta()); fault != "" {
		fields.Addf("delta", "%s", fault)
	}
	return fields.Err()
}

// frontOfPrivate returns the posterior front of a study with noisy values.
func (s *Releases) frontOfPrivate(ctx context.Context, id string) (*draft, error) {
	r, err := s.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	points, err := noisyFront(ctx, r)
	if err != nil {
		return nil, err
	}
	d := privateDraft(r, "the posterior front of a model of noisy values")
	for _, p := range points {
		d.release.Points = append(d.release.Points, releasedPoint(r, p.configuration, p.estimate))
	}
	d.release.Warnings = append(d.release.Warnings, frontBias())
	return d, nil
}

// frontBias returns the warning of a front that a model chose from noisy values.
func frontBias() *dparetov1.Warning {
	return &dparetov1.Warning{
		Code:    study.WarnSelectionBias,
		Message: "chosen by noisy values: the values come from a model, which smooths them, and are still better on average than fresh runs",
	}
}

// frontOfFixed adds noise to all values of a fixed design, and chooses the front with a model of the
// noisy values.
func (s *Releases) frontOfFixed(ctx context.Context, id string, epsilon, delta float64) (*draft, error) {
	f, err := s.fixedResults(ctx, id)
	if err != nil {
		return nil, err
	}
	var metrics []string
	for j, id := range f.Compiled.Objectives() {
		if f.Compiled.Problem.Objectives[j].Known == nil {
			if err := f.checkMetric(id); err != nil {
				return nil, err
			}
			metrics = append(metrics, id)
		}
	}
	candidates := f.candidates()
	values := len(metrics) * len(candidates)
	guarantee := &dparetov1.PrivacyGuarantee{
		Epsilon: epsilon, Delta: delta, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		Accountant: dparetov1.Accountant_ACCOUNTANT_GDP, Steps: int64(values),
		Assumptions: f.assumptions(metrics...),
	}
	d, err := f.draft(ctx, s.spending, guarantee)
	if err != nil {
		return nil, err
	}
	d.release.Mechanism = fmt.Sprintf("Gaussian noise on all %d values of %d configurations, then the front of a model of the noisy values", values, len(candidates))
	d.reason = "front, " + d.release.GetMechanism()
	if values == 0 {
		return nothingWithin(d), nil
	}
	sigma, err := frontNoise(values, f.records, epsilon, delta)
	if err != nil {
		return nil, err
	}
	if _, err := s.affordable(ctx, d.release.GetLedger(), d.field, guarantee); err != nil {
		return nil, err
	}
	d.release.NoiseStandardDeviation = sigma
	if sigma > largeNoise {
		d.release.Warnings = append(d.release.Warnings, &dparetov1.Warning{
			Code: warnLargeNoise, Message: fmt.Sprintf("noise of standard deviation %.2g was added to values between 0 and 1", sigma),
		})
	}
	d.release.Warnings = append(d.release.Warnings, frontBias())
	points, err := f.noised(ctx, candidates, s.entropy, sigma)
	if err != nil {
		return nil, err
	}
	for _, p := range points {
		d.release.Points = append(d.release.Points, releasedPoint(f.Results, p.configuration, p.estimate))
	}
	return d, nil
}

// frontNoise returns the standard deviation that makes a number of values, averages over records,
// (ε, δ)-DP together.
func frontNoise(values int, records int64, epsilon, delta float64) (float64, error) {
	sigma, err := transcript.ReleaseNoise(records, int64(values), epsilon, delta)
	if fields := privacy.FieldErrors(err); len(fields) > 0 {
		return 0, invalid.Field(fields[0].Field, "%s", fields[0].Message)
	}
	return sigma, err
}

// noised adds noise to every value of the candidates, and returns the front of a model that sees
// only noisy values.
func (f *fixedResults) noised(ctx context.Context, candidates []*front.Configuration, entropy *noise.Source, sigma float64) ([]noisyPoint, error) {
	history := new(suggest.History)
	for _, c := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		history.Evaluations = append(history.Evaluations, f.noisy(c, entropy, sigma))
	}
	problem := *f.Compiled.Problem
	problem.Constraints, problem.Cost = nil, suggest.CostRuns // measured constraints and costs are not private
	problem.Constants = nil                                   // nor are errors of constant points that were measured on the records
	if problem.Features != nil {                              // nor are public runs, which were measured on records that may be these
		features := *problem.Features
		features.Mean = nil
		problem.Features = &features
	}
	problem.Objectives = slices.Clone(problem.Objectives)
	for j := range problem.Objectives {
		problem.Objectives[j].NoiseFree = false // the values have noise now
	}
	m, err := model.Fit(ctx, problem.Inferred(history), history, f.ModelOptions())
	if errors.Is(err, model.ErrNoData) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return frontOf(f.Results, m.Estimates(), func(e *model.Estimate) *front.Configuration { return candidates[e.Evaluations[0]] }), nil
}

// noisy returns the values of a configuration: computed ones as they are, measured ones clipped to
// [0, 1], which bounds their sensitivity, and with noise.
func (f *fixedResults) noisy(c *front.Configuration, entropy *noise.Source, sigma float64) suggest.Evaluation {
	objectives := f.Compiled.Problem.Objectives
	e := suggest.Evaluation{Point: c.Point, Values: make([]float64, len(objectives)), StdErrors: make([]float64, len(objectives))}
	for j := range objectives {
		e.Values[j] = f.mean(c, j)
		if objectives[j].Known == nil {
			e.Values[j] = clipped(entropy.Gaussian(clipped(e.Values[j]), sigma))
			e.StdErrors[j] = sigma
		}
	}
	return e
}
