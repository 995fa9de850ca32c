package release

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/bayesopt"
	"github.com/dpareto/dpareto/privacy/selection"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/publish/ledger"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// Of the methods of Kusner et al.
const (
	maxObservations   = 2000 // whose posterior is computed; later ones are left out
	maxCandidates     = 1000
	defaultCandidates = 100
	defaultModelDelta = 1e-6
	least             = 0x1p-30 // ε of Laplace noise on a grid
)

// bestByKusner releases a configuration by Algorithm 1 of Kusner et al. (2015), or a value by
// Algorithm 3, of a study that may have looked at results all along.
//
// The publication must depend on measured values through the mechanism alone: neither the number
// of trials, nor a revision, nor the cost of the configurations that were tried goes with it.
func (s *Releases) bestByKusner(ctx context.Context, id string, want bestRequest, epsilon float64, k *dparetov1.KusnerMethod) (*draft, error) {
	r, err := s.fronts.Results(ctx, id, false)
	if err != nil {
		return nil, err
	}
	if ledger.IsPrepaid(r.Study.GetSpec()) {
		return nil, invalid.Field("kusner", "must be unset: the study has already paid for everything it publishes")
	}
	if err := checkKusner(k, want, epsilon); err != nil {
		return nil, err
	}
	f := &fixedResults{Results: r}
	if err := s.store.View(ctx, f.checkLedgerOf); err != nil {
		return nil, err
	}
	if err := f.checkMetric(want.metric); err != nil {
		return nil, err
	}
	if c := r.Study.GetDesignChange(); c != nil {
		return nil, status.Errorf(codes.FailedPrecondition, "%s: %v changed after the first trial, so candidates, which are drawn from its domains, may depend on results", r.Study.GetName(), c.GetFields())
	}
	d := f.kusnerDraft(want.metric, epsilon)
	if _, err := s.affordable(ctx, d.release.GetLedger(), d.field, d.release.GetGuarantee()); err != nil {
		return nil, err
	}
	if k.GetAlgorithm() == 3 {
		return d, s.kusnerValue(f, d, want, epsilon, k.GetLipschitz())
	}
	return d, s.kusnerCandidate(ctx, f, d, want, k)
}

// checkLedgerOf is checkLedger as a transaction.
func (f *fixedResults) checkLedgerOf(tx *store.ReadTx) error { return f.checkLedger(tx) }

// checkKusner checks the parameters of a method.
func checkKusner(k *dparetov1.KusnerMethod, want bestRequest, epsilon float64) error {
	var fields invalid.Fields
	if !(epsilon >= least) {
		fields.Addf("epsilon", "must be at least %g, is %g", least, epsilon)
	}
	switch k.GetAlgorithm() {
	case 1:
		if n := k.GetCandidates(); n < 0 || n > maxCandidates {
			fields.Addf("kusner.candidates", "must be in [1, %d], or 0 for %d, is %d", maxCandidates, defaultCandidates, n)
		}
		if m := k.GetPriorMean(); !(m >= 0 && m <= 1) {
			fields.Addf("kusner.prior_mean", "must be in [0, 1], is %g", m)
		}
		fields.CheckPositive("kusner.prior_standard_deviation", k.GetPriorStandardDeviation())
		fields.CheckPositive("kusner.noise_standard_deviation", k.GetNoiseStandardDeviation())
		fields.CheckPositive("kusner.length_scale", k.GetLengthScale())
		if fault := privacy.DeltaFault(k.GetDelta()); fault != "" && k.GetDelta() != 0 {
			fields.Addf("kusner.delta", "%s; 0 stands for %g", fault, defaultModelDelta)
		}
	case 2:
		fields.Addf("kusner.algorithm", "must be 1 or 3: the noise of Algorithm 2 depends on two unknown constants, and Algorithm 1 releases the same configuration")
	case 3:
		if l := k.GetLipschitz(); !(l >= 0) || math.IsInf(l, 1) {
			fields.Addf("kusner.lipschitz", "must be finite and not negative, is %g", l)
		}
		if len(want.atMost) > 0 {
			fields.Addf("at_most", "must be empty with Algorithm 3, which publishes no configuration")
		}
	default:
		fields.Addf("kusner.algorithm", "must be 1 or 3, is %d", k.GetAlgorithm())
	}
	return fields.Err()
}

// kusnerDraft returns a release without points and mechanism.
func (f *fixedResults) kusnerDraft(metric string, epsilon float64) *draft {
	guarantee := &dparetov1.PrivacyGuarantee{
		Epsilon: epsilon, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE,
		Accountant: dparetov1.Accountant_ACCOUNTANT_PURE, Steps: 1,
		Assumptions: show.Assumptions([]privacy.Assumption{
			privacy.PremiseFixedInAdvance.Assume("nobody had seen results on the test records when the domains and computed metrics of the study were fixed"),
			privacy.PremiseFixedInAdvance.Assume("whether to ask for this release, with which metric, method, parameters of the method, bounds, ledger and epsilon, was decided without looking at results"),
			privacy.PremiseData.Assume("the number of test records is public"),
			privacy.PremiseScores.Assume(metric + " is clipped to [0, 1], whatever it is"),
		}),
	}
	return &draft{
		field: ledger.TestField, studyUID: f.Study.GetUid(),
		release: &dparetov1.Release{
			Guarantee: guarantee, Assumptions: guarantee.GetAssumptions(), Ledger: f.Study.GetSpec().GetTestLedger(),
			Protects: fmt.Sprintf("each of the %d test records of %s", f.records, f.Study.GetSpec().GetTestLedger()),
			NotCovered: []string{
				"the training records: the paper takes them to be public. Their cost is not part of this release, since the configurations that were tried depend on results",
				"anything else shown of the study, such as how many trials it has, which ones, and their values",
				"other studies on the same records that charge no ledger, or a different one",
			},
		},
	}
}

// kusnerCandidate draws the configuration of Algorithm 1. Its score is in [0, 1], and no record
// moves it by more than 1: with noise for this sensitivity, the exponential mechanism is ε-DP
// whatever was searched, and whatever the prior.
func (s *Releases) kusnerCandidate(ctx context.Context, f *fixedResults, d *draft, want bestRequest, k *dparetov1.KusnerMethod) error {
	epsilon := d.release.GetGuarantee().GetEpsilon()
	candidates, err := f.drawnCandidates(ctx, k, want.atMost)
	if err != nil {
		return err
	}
	if len(candidates) == 0 {
		nothingWithin(d)
		d.release.Mechanism = "Algorithm 1 of Kusner et al. (2015) among no configurations"
		return nil
	}
	n := len(candidates)
	d.release.Mechanism = fmt.Sprintf("Algorithm 1 of Kusner et al. (2015): the exponential mechanism over the means of a Gaussian process at %d configurations, with noise for the range of the score", n)
	d.reason = "best " + want.metric + ", " + d.release.GetMechanism()
	d.release.ModelClaim = modelClaim(k, int64(n), f.records, epsilon)
	if odds := math.Exp(0.1 * epsilon / 2); odds < 2 {
		d.release.Warnings = append(d.release.Warnings, &dparetov1.Warning{
			Code:    warnLargeNoise,
			Message: fmt.Sprintf("of two configurations whose means differ by 0.1, the better one is %.3g times as likely: nearly a random choice", odds),
		})
	}
	selected, err := selection.Exponential(s.entropy, f.kusnerScores(candidates, want.objective, k), 1, epsilon)
	if err != nil {
		return invalid.Field("epsilon", "%v", err)
	}
	point := &dparetov1.ReleasedPoint{Parameters: f.Compiled.Points.Values(candidates[selected]), Values: make(map[string]float64)}
	for _, id := range computedMetrics(f.Study.GetSpec()) {
		if value, _ := f.Compiled.Metrics.ComputeOne(id, candidates[selected]); value != nil && value.Value != nil {
			point.Values[id] = value.GetValue()
		}
	}
	d.release.Points = []*dparetov1.ReleasedPoint{point}
	return nil
}

// drawnCandidates returns the candidates: points of a quasi-random sequence that meet the bounds on
// computed metrics, the same for every study of the same domains.
func (f *fixedResults) drawnCandidates(ctx context.Context, k *dparetov1.KusnerMethod, atMost map[string]float64) ([]space.Point, error) {
	n := int(k.GetCandidates())
	if n == 0 {
		n = defaultCandidates
	}
	drawn, err := quasirandom.New().Suggest(ctx, f.Compiled.Problem, new(suggest.History), suggest.Request{Count: n, Number: 1})
	if err != nil && !errors.Is(err, suggest.ErrExhausted) {
		return nil, err
	}
	var candidates []space.Point
	for _, suggestion := range drawn {
		isWithin := true
		for id, bound := range atMost {
			value, _ := f.Compiled.Metrics.ComputeOne(id, suggestion.Point)
			isWithin = isWithin && value != nil && value.Value != nil && value.GetValue() <= bound
		}
		if isWithin {
			candidates = append(candidates, suggestion.Point)
		}
	}
	return candidates, nil
}

// kusnerScores returns the posterior means of the candidates, clipped to [0, 1] and turned so that
// more is better; all are equal if there is no posterior.
func (f *fixedResults) kusnerScores(candidates []space.Point, objective int, k *dparetov1.KusnerMethod) []float64 {
	sp, deviation := f.Compiled.Problem.Space, k.GetPriorStandardDeviation()
	var observed [][]float64
	var values []float64
	for i := range f.Measurements {
		e := &f.Evaluations[i]
		if v := e.Values[objective]; !math.IsNaN(v) && len(values) < maxObservations {
			observed, values = append(observed, sp.Encode(nil, e.Point)), append(values, (clipped(v)-k.GetPriorMean())/deviation)
		}
	}
	scores := make([]float64, len(candidates))
	if len(values) == 0 {
		return scores
	}
	correlation := func(a, b []float64) float64 {
		square := 0.0
		for d, x := range a {
			square += (x - b[d]) * (x - b[d])
		}
		c, _ := surrogate.Matern52{}.Correlation(square / (k.GetLengthScale() * k.GetLengthScale()))
		return c
	}
	kernel, cross := mat.NewSymDense(len(values), nil), mat.NewDense(len(candidates), len(values), nil)
	for j, x := range observed {
		for i := range j + 1 {
			kernel.SetSym(i, j, correlation(observed[i], x))
		}
		for i, c := range candidates {
			cross.Set(i, j, correlation(sp.Encode(nil, c), x))
		}
	}
	means, ok := bayesopt.PosteriorMeans(kernel, cross, k.GetNoiseStandardDeviation()/deviation, values)
	for i := range means {
		if !ok {
			break
		}
		scores[i] = clipped(k.GetPriorMean() + deviation*means[i])
		if f.Compiled.Problem.Objectives[objective].Goal == suggest.Minimize {
			scores[i] = 1 - scores[i]
		}
	}
	return scores
}

// modelClaim returns the paper's claim about a release with noise for a sensitivity of 1: nothing
// if its bound on the sensitivity is no less.
func modelClaim(k *dparetov1.KusnerMethod, candidates, records int64, epsilon float64) string {
	delta, deviation := k.GetDelta(), k.GetPriorStandardDeviation()
	if delta == 0 {
		delta = defaultModelDelta
	}
	scales, err := bayesopt.Noisy{
		Candidates: candidates, Evaluations: 1, Epsilon: epsilon, Delta: delta, Noise: k.GetNoiseStandardDeviation() / deviation,
		Difference: 1 / (float64(records) * deviation),
	}.Scales()
	if claimed := epsilon * scales.ChoiceSensitivity * deviation; err == nil && claimed < epsilon {
		return fmt.Sprintf("under a model, and not differential privacy: the paper claims (%.4g, %g) for this noise, %s. Here the prior has mean %g, standard deviation %g, length scale %g and observation noise %g, and one record moves no noise-free score by more than 1/%d. No score between 0 and 1 fits this model exactly",
			claimed, delta, bayesopt.Conditional, k.GetPriorMean(), deviation, k.GetLengthScale(), k.GetNoiseStandardDeviation(), records)
	}
	return ""
}

// kusnerValue adds the noise of Algorithm 3 to the best value of a study.
func (s *Releases) kusnerValue(f *fixedResults, d *draft, want bestRequest, epsilon, lipschitz float64) error {
	ridge := bayesopt.Ridge{Records: f.records, Epsilon: epsilon, Range: 1, Lipschitz: lipschitz, Least: 1, Most: 1}
	sensitivity := 1.0
	if lipschitz > 0 {
		parameters := f.Compiled.Problem.Space.Parameters
		if p := parameters[0]; len(parameters) != 1 || p.Kind != space.Double || !(p.Min > 0) {
			return invalid.Field("kusner.lipschitz", "needs a study whose only parameter is the ridge penalty, a positive double: the bound of Algorithm 3 holds for no other hyperparameter")
		}
		ridge.Least, ridge.Most = parameters[0].Min, parameters[0].Max
		sensitivity = ridge.Sensitivity()
	}
	var values []float64
	for i := range f.Measurements {
		if v := f.Evaluations[i].Values[want.objective]; !math.IsNaN(v) {
			values = append(values, clipped(v))
		}
	}
	if len(values) == 0 {
		return status.Errorf(codes.FailedPrecondition, "%s has no measured value yet", f.Study.GetName())
	}
	best := slices.Max(values)
	if f.Compiled.Problem.Objectives[want.objective].Goal == suggest.Minimize {
		best = slices.Min(values)
	}
	assumptions := []privacy.Assumption{privacy.PremiseIndependence.Assume("a trial of the study succeeds, whatever the test records are")}
	if sensitivity < 1 {
		g, err := ridge.Guarantee()
		if err != nil {
			return err
		}
		assumptions = append(assumptions, g.Assumptions...)
		assumptions = append(assumptions, privacy.PremiseTheorem.Assume(fmt.Sprintf("its constant is %g, and the penalties are the parameter of the study, in [%g, %g]. An error rate has no such constant: it jumps", lipschitz, ridge.Least, ridge.Most)))
	}
	d.release.Guarantee.Assumptions = show.JoinAssumptions(d.release.GetGuarantee().GetAssumptions(), show.Assumptions(assumptions))
	d.release.Assumptions = d.release.GetGuarantee().GetAssumptions()
	scale := sensitivity / (epsilon - 0x1p-39) // the noise is on a grid
	d.release.NoiseStandardDeviation = math.Sqrt2 * scale
	d.release.Mechanism = fmt.Sprintf("Algorithm 3 of Kusner et al. (2015): Laplace noise for a sensitivity of %.4g on the best %s", sensitivity, want.metric)
	d.reason = d.release.GetMechanism()
	if d.release.GetNoiseStandardDeviation() > largeNoise {
		d.release.Warnings = append(d.release.Warnings, &dparetov1.Warning{
			Code: warnLargeNoise, Message: fmt.Sprintf("the noise has a standard deviation of %.3g, and the value lies between 0 and 1, to which it is clipped", d.release.GetNoiseStandardDeviation()),
		})
	}
	d.release.Points = []*dparetov1.ReleasedPoint{{
		Values:             map[string]float64{want.metric: clipped(s.entropy.Laplace(best, scale))},
		StandardDeviations: map[string]float64{want.metric: d.release.GetNoiseStandardDeviation()},
	}}
	return nil
}
