package release

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy/selection"
	"github.com/dpareto/dpareto/privacy/transcript"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/publish/private"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
)

// ReleaseBest implements ReleaseService.
func (s *Releases) ReleaseBest(ctx context.Context, req *dparetov1.ReleaseBestRequest) (*dparetov1.ReleaseBestResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	release, err := s.once(ctx, req.GetName(), req, func(r *releaseRequest) (*dparetov1.Release, error) { return s.releaseBest(ctx, r, id, req) })
	if err != nil {
		return nil, err
	}
	return &dparetov1.ReleaseBestResponse{Release: release}, nil
}

// releaseBest prepares a release and publishes it.
func (s *Releases) releaseBest(ctx context.Context, r *releaseRequest, id string, req *dparetov1.ReleaseBestRequest) (*dparetov1.Release, error) {
	var of *dparetov1.Study
	var cached *study.Cached
	var whole *dparetov1.Release
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		of = record.GetStudy()
		if cached, err = s.studies.Get(record); err == nil && cached.Compiled.Spec.GetRandomStopping() != nil {
			whole, err = private.ReleaseBest(ctx, tx, id, record, cached.Compiled)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	want, err := bestOf(cached.Compiled, req)
	if err != nil {
		return nil, err
	}
	var d *draft
	switch {
	case req.GetKusner() != nil:
		d, err = s.bestByKusner(ctx, id, want, req.GetEpsilon(), req.GetKusner())
	case whole != nil:
		if by := of.GetSpec().GetRandomStopping().GetMetric(); req.GetMetric() != by || len(want.atMost) > 0 {
			return nil, invalid.Field("metric", "must be %q, without bounds: the study chose its best trial by this metric", by)
		}
		d = &draft{release: whole, studyUID: of.GetUid()}
	case of.GetSpec().GetPrivateMode() != nil:
		d, err = s.bestOfPrivate(ctx, id, want)
	default:
		d, err = s.bestOfFixed(ctx, id, want, req.GetEpsilon())
	}
	if err != nil {
		return nil, err
	}
	return s.publish(ctx, r, d)
}

// bestRequest says what is best.
type bestRequest struct {
	metric    string
	objective int                // index of the metric among the objectives
	atMost    map[string]float64 // bounds on computed metrics by id
}

// bestOf converts and checks a request.
func bestOf(compiled *spec.Study, req *dparetov1.ReleaseBestRequest) (bestRequest, error) {
	b := bestRequest{metric: req.GetMetric(), atMost: req.GetAtMost()}
	b.objective = slices.Index(compiled.Objectives(), b.metric)
	var fields invalid.Fields
	if b.objective < 0 || compiled.Problem.Objectives[b.objective].Known != nil {
		fields.Addf("metric", "must be the id of a reported objective of the study, is %.100q", b.metric)
	}
	computed := computedMetrics(compiled.Spec)
	for _, id := range slices.Sorted(maps.Keys(b.atMost)) {
		field, bound := fmt.Sprintf("at_most[%q]", id), b.atMost[id]
		if !slices.Contains(computed, id) {
			fields.Addf(field, "is not a computed metric of the study (computed: %v); a bound on a measured metric would depend on the data", computed)
			continue
		}
		compiled.Metrics.CheckBound(&fields, field, id, bound)
	}
	if e := req.GetEpsilon(); ledger.IsPrepaid(compiled.Spec) && e != 0 {
		fields.Addf("epsilon", "must be unset: the study has already paid for everything it publishes, is %g", e)
	} else if !ledger.IsPrepaid(compiled.Spec) {
		fields.CheckPositive("epsilon", e)
	}
	return b, fields.Err()
}

// computedMetrics returns the ids of computed metrics.
func computedMetrics(spec *dparetov1.StudySpec) []string {
	var ids []string
	for _, m := range spec.GetMetrics() {
		if m.GetComputed() != nil {
			ids = append(ids, m.GetId())
		}
	}
	return ids
}

// isWithin reports whether the computed metrics of a configuration are within bounds.
func isWithin(r *front.Results, c *front.Configuration, atMost map[string]float64) bool {
	metrics := r.Measurements[c.Measurements[0]].Message().GetMetrics()
	for id, bound := range atMost {
		if value := metrics[id]; value == nil || value.Value == nil || !(value.GetValue() <= bound) {
			return false
		}
	}
	return true
}

// bestOfFixed chooses among the configurations of a fixed design by permute-and-flip.
func (s *Releases) bestOfFixed(ctx context.Context, id string, want bestRequest, epsilon float64) (*draft, error) {
	f, err := s.fixedResults(ctx, id)
	if err != nil {
		return nil, err
	}
	if err := f.checkMetric(want.metric); err != nil {
		return nil, err
	}
	var candidates []*front.Configuration
	var utilities []float64
	for _, c := range f.candidates() {
		if !isWithin(f.Results, c, want.atMost) {
			continue
		}
		candidates, utilities = append(candidates, c), append(utilities, f.utility(c, want.objective))
	}
	guarantee := &dparetov1.PrivacyGuarantee{
		Epsilon:     epsilon,
		Adjacency:   dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		Accountant:  dparetov1.Accountant_ACCOUNTANT_PURE,
		Steps:       1,
		Assumptions: f.assumptions(want.metric),
	}
	d, err := f.draft(ctx, s.spending, guarantee)
	if err != nil {
		return nil, err
	}
	d.release.Mechanism = fmt.Sprintf("permute-and-flip among %d configurations", len(candidates))
	d.reason = "best " + want.metric + ", " + d.release.GetMechanism()
	if len(candidates) == 0 {
		return nothingWithin(d), nil
	}
	if _, err := s.affordable(ctx, d.release.GetLedger(), d.field, guarantee); err != nil {
		return nil, err
	}
	selected, err := selection.PermuteAndFlip(s.entropy, utilities, transcript.Sensitivity(f.records), epsilon)
	if err != nil {
		return nil, invalid.Field("epsilon", "%v", err)
	}
	d.release.Points = []*dparetov1.ReleasedPoint{releasedPoint(f.Results, candidates[selected], nil)}
	return d, nil
}

// utility returns how good a configuration is in an objective, in [0, 1]: clipping bounds the
// sensitivity.
func (f *fixedResults) utility(c *front.Configuration, objective int) float64 {
	mean := clipped(f.mean(c, objective))
	if f.Compiled.Problem.Objectives[objective].Goal == suggest.Minimize {
		return 1 - mean
	}
	return mean
}

// nothingWithin turns a draft without candidates into a free release. Bounds and design alone
// decided that, so it says nothing about the data.
func nothingWithin(d *draft) *draft {
	d.release.Ledger = ""
	d.release.Guarantee.Epsilon, d.release.Guarantee.Delta = 0, 0
	d.release.Warnings = append(d.release.Warnings, &dparetov1.Warning{
		Code: warnNothingWithin, Message: "no measured configuration is within the bounds",
	})
	return d
}

// clipped clips a value to [0, 1]; NaN becomes 0.
func clipped(x float64) float64 {
	if !(x > 0) {
		return 0
	}
	return min(x, 1)
}

// bestOfPrivate chooses from the posterior front of a study with noisy values.
func (s *Releases) bestOfPrivate(ctx context.Context, id string, want bestRequest) (*draft, error) {
	r, err := s.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	points, err := noisyFront(ctx, r)
	if err != nil {
		return nil, err
	}
	d := privateDraft(r, fmt.Sprintf("the posterior median of %s on the front of a model of noisy values", want.metric))
	best, lowest := -1, math.Inf(1)
	for i, p := range points {
		if !isWithin(r, p.configuration, want.atMost) {
			continue
		}
		if cost := r.Cost(front.Medians(p.estimate))[want.objective]; cost < lowest {
			best, lowest = i, cost
		}
	}
	if best < 0 {
		d.release.Warnings = append(d.release.Warnings, &dparetov1.Warning{
			Code: warnNothingWithin, Message: "no configuration on the front is within the bounds",
		})
		return d, nil
	}
	d.release.Points = []*dparetov1.ReleasedPoint{releasedPoint(r, points[best].configuration, points[best].estimate)}
	return d, nil
}

// noisyPoint is a configuration on the posterior front.
type noisyPoint struct {
	configuration *front.Configuration
	estimate      *model.Estimate
}

// noisyFront returns the posterior front of results, sorted by cost.
func noisyFront(ctx context.Context, r *front.Results) ([]noisyPoint, error) {
	fitted, err := r.Fitted(ctx)
	if errors.Is(err, model.ErrNoData) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return frontOf(r, fitted.Model.Estimates(), func(e *model.Estimate) *front.Configuration {
		return &fitted.Configurations[fitted.Measurements[e.Evaluations[0]].Configuration]
	}), nil
}

// frontOf returns the configurations on the front of estimates, sorted by cost.
func frontOf(r *front.Results, estimates []model.Estimate, configurationOf func(*model.Estimate) *front.Configuration) []noisyPoint {
	var points []noisyPoint
	for i := range estimates {
		if e := &estimates[i]; e.OnFront {
			points = append(points, noisyPoint{configurationOf(e), e})
		}
	}
	slices.SortStableFunc(points, func(a, b noisyPoint) int {
		return slices.Compare(r.Cost(front.Medians(a.estimate)), r.Cost(front.Medians(b.estimate)))
	})
	return points
}

// privateDraft returns a release of a study with noisy values. Whatever is computed from them costs
// nothing more.
func privateDraft(r *front.Results, mechanism string) *draft {
	publication := r.Study.GetPublication()
	return &draft{
		studyUID: r.Study.GetUid(),
		release: &dparetov1.Release{
			Guarantee:              publication.GetTest(),
			TrainingGuarantee:      publication.GetTrain(),
			Protects:               fmt.Sprintf("each of the %d test records, against everything that the study ever publishes", r.Study.GetSpec().GetPrivateMode().GetTestSetSize()),
			Assumptions:            publication.GetAssumptions(),
			NotCovered:             publication.GetNotCovered(),
			Mechanism:              mechanism,
			NoiseStandardDeviation: publication.GetNoiseStandardDeviation(),
			StudyRevision:          r.Study.GetRevision(),
		},
	}
}

// releasedPoint returns a configuration with its computed metrics and, if there is an estimate, the
// model's values for the reported ones.
func releasedPoint(r *front.Results, c *front.Configuration, estimate *model.Estimate) *dparetov1.ReleasedPoint {
	point := &dparetov1.ReleasedPoint{
		Parameters:         r.Compiled.Points.Values(c.Point),
		Values:             make(map[string]float64),
		StandardDeviations: make(map[string]float64),
	}
	metrics := r.Measurements[c.Measurements[0]].Message().GetMetrics()
	for _, id := range computedMetrics(r.Study.GetSpec()) {
		if value := metrics[id]; value != nil && value.Value != nil {
			point.Values[id] = value.GetValue()
		}
	}
	if estimate == nil {
		return point
	}
	for j, id := range r.Compiled.Objectives() {
		if r.Compiled.Problem.Objectives[j].Known == nil {
			p := estimate.Predictions[j]
			point.Values[id] = clipped(p.Median) // of values in [0, 1], which a model without a transform may leave
			if !math.IsNaN(p.Lower) {            // no model agrees with the values
				point.StandardDeviations[id] = (p.Upper - p.Lower) / (2 * normalQuantile95)
			}
		}
	}
	return point
}

// normalQuantile95 is the 95 % quantile of the standard normal distribution: a 90 % interval is
// twice as many standard deviations wide.
const normalQuantile95 = 1.6448536269514722

// unfixed returns the error of a study whose trials may depend on results.
func unfixed(study, why string) error {
	return status.Errorf(codes.FailedPrecondition, "%s: %s, so no choice among its trials has a guarantee for the test records. "+
		"Publish a study with private_mode or random_stopping, a completed study with RANDOM, QUASI_RANDOM or GRID and a fixed number of trials, "+
		"or a choice among candidates fixed beforehand (SelectPrivately)", study, why)
}
