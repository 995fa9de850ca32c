package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// checkpointsPerTrial and modelSize bound the measurements that a posterior front
	// is fitted to and chosen from: a few epochs, evenly spaced in the logarithm, say
	// nearly as much as all of them, for they share one run's noise.
	checkpointsPerTrial = 6
	modelSize           = 600

	warnSelectionBias = "SELECTION_BIAS"
	warnNoModel       = "NO_MODEL"
)

// candidate is a measurement that may be on a front.
type candidate struct {
	trial       *dparetov1.Trial
	point       space.Point // with the checkpoint parameter set to the step
	measurement *dparetov1.Measurement
}

// GetFront implements FrontService.
func (s *frontService) GetFront(ctx context.Context, req *dparetov1.GetFrontRequest) (*dparetov1.GetFrontResponse, error) {
	id, err := parseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	switch req.GetKind() {
	case dparetov1.FrontKind_FRONT_KIND_OBSERVED, dparetov1.FrontKind_FRONT_KIND_POSTERIOR,
		dparetov1.FrontKind_FRONT_KIND_BEST, dparetov1.FrontKind_FRONT_KIND_WORST:
	default:
		return nil, invalid.Field("kind", "must be set, is %v", req.GetKind())
	}
	results, err := s.results(ctx, id, req.GetFinalOnly())
	if err != nil {
		return nil, err
	}
	var front *dparetov1.Front
	if req.GetKind() == dparetov1.FrontKind_FRONT_KIND_POSTERIOR {
		front, err = s.posteriorFront(ctx, results, req.GetFinalOnly())
		if err != nil {
			return nil, err
		}
	} else {
		front = results.measuredFront(req.GetKind())
	}
	return &dparetov1.GetFrontResponse{Front: front}, nil
}

// results are the completed trials of a study and what was measured of them.
type results struct {
	study      *dparetov1.Study
	cached     *cachedStudy
	compiled   *spec.Study
	trials     []*storev1.TrialRecord // succeeded, in the order of completion
	candidates []candidate            // in the order of the trials and their steps
}

// results reads what was measured in a study.
func (s *Server) results(ctx context.Context, id string, finalOnly bool) (*results, error) {
	r := new(results)
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		r.study = record.GetStudy()
		if r.cached, err = s.studies.get(r.study); err != nil {
			return err
		}
		r.compiled = r.cached.compiled
		return tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
			if t.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
				r.trials = append(r.trials, t)
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(r.trials, func(a, b *storev1.TrialRecord) int {
		return cmp.Compare(a.GetCompletionOrder(), b.GetCompletionOrder())
	})
	for _, t := range r.trials {
		if err := r.addCandidates(t.GetTrial(), finalOnly); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addCandidates adds the measurements of a trial: the final one, and those on the way
// if each is an evaluation of its own.
func (r *results) addCandidates(trial *dparetov1.Trial, finalOnly bool) error {
	point, err := r.compiled.Point("trial.parameters", trial.GetParameters())
	if err != nil {
		return fmt.Errorf("%s: %w", trial.GetName(), err)
	}
	final := trial.GetFinalMeasurement()
	if r.compiled.Checkpoints() && !finalOnly {
		for _, m := range trial.GetMeasurements() {
			if m.GetStep() != final.GetStep() {
				r.candidates = append(r.candidates, candidate{trial, r.compiled.At(point, m.GetStep()), m})
			}
		}
	}
	r.candidates = append(r.candidates, candidate{trial, r.compiled.At(point, final.GetStep()), final})
	return nil
}

// measuredFront chooses the front by measured values.
func (r *results) measuredFront(kind dparetov1.FrontKind) *dparetov1.Front {
	statistic := spec.Mean
	switch kind {
	case dparetov1.FrontKind_FRONT_KIND_BEST:
		statistic = spec.Best
	case dparetov1.FrontKind_FRONT_KIND_WORST:
		statistic = spec.Worst
	default:
	}
	values := make([][]float64, len(r.candidates))
	for i, c := range r.candidates {
		values[i] = r.values(c, statistic)
	}
	front := r.front(kind, values, nil)
	front.Warnings = append(front.Warnings, &dparetov1.Warning{
		Code:    warnSelectionBias,
		Message: "chosen by noisy measurements: fresh runs of these configurations give worse values on average than those that they were chosen by",
	})
	return front
}

// values returns the measured objectives of a candidate: NaN, which is on no front, if
// its means violate a bound.
func (r *results) values(c candidate, statistic spec.Statistic) []float64 {
	values := r.compiled.ObjectiveValues(c.measurement, statistic)
	if !r.compiled.Acceptable(c.measurement) {
		for i := range values {
			values[i] = math.NaN()
		}
	}
	return values
}

// front builds the message of the candidates that values choose. predictions, by
// candidate, may be nil.
func (r *results) front(kind dparetov1.FrontKind, values [][]float64, predictions [][]suggest.Prediction) *dparetov1.Front {
	objectives := r.compiled.Objectives()
	costs := make([][]float64, len(values))
	for i, v := range values {
		costs[i] = r.costs(v)
	}
	front := &dparetov1.Front{
		Kind:        kind,
		Hypervolume: pareto.Hypervolume(costs, r.costs(r.reference())),
		Reference:   make(map[string]float64),
		Candidates:  int64(len(r.candidates)),
		Revision:    r.study.GetRevision(),
		Objectives:  objectives,
	}
	for i, objective := range objectives {
		front.Reference[objective] = r.compiled.Problem.Objectives[i].Reference
	}
	chosen := pareto.NonDominated(costs)
	slices.SortStableFunc(chosen, func(i, j int) int { return slices.Compare(costs[i], costs[j]) })
	for _, i := range chosen {
		c := r.candidates[i]
		point := &dparetov1.FrontPoint{
			Trial:      c.trial.GetName(),
			Parameters: r.compiled.Values(c.point),
			Values:     make(map[string]*dparetov1.FrontValue),
			Privacy:    r.compiled.Guarantee(c.measurement.GetMetrics()),
			Runs:       int64(r.compiled.Evaluation(c.point, c.measurement).Runs),
		}
		if r.compiled.Checkpoints() {
			point.Step = c.measurement.GetStep()
		}
		for j, objective := range objectives {
			value := &dparetov1.FrontValue{Value: values[i][j]}
			if r.compiled.Problem.Objectives[j].Known == nil {
				value.Observed = c.measurement.GetMetrics()[objective].Value
				if predictions != nil {
					value.Lower, value.Upper = &predictions[i][j].Lower, &predictions[i][j].Upper
				}
			}
			point.Values[objective] = value
		}
		front.Points = append(front.Points, point)
	}
	return front
}

// costs returns values with the sign of objectives to maximise turned.
func (r *results) costs(values []float64) []float64 {
	costs := slices.Clone(values)
	for i := range costs {
		if r.compiled.Problem.Objectives[i].Goal == suggest.Maximize {
			costs[i] = -costs[i]
		}
	}
	return costs
}

// reference returns the reference values.
func (r *results) reference() []float64 {
	reference := make([]float64, len(r.compiled.Problem.Objectives))
	for i := range reference {
		reference[i] = r.compiled.Problem.Objectives[i].Reference
	}
	return reference
}

// posteriorFront chooses the front by a model of all measurements. The last one is
// kept: it costs a fit and changes only with the study's revision.
func (s *Server) posteriorFront(ctx context.Context, r *results, finalOnly bool) (*dparetov1.Front, error) {
	r.cached.mu.Lock()
	defer r.cached.mu.Unlock()
	if last := r.cached.posterior; last.GetRevision() == r.study.GetRevision() && r.cached.finalOnly == finalOnly && last != nil {
		return proto.CloneOf(last), nil
	}
	// Only what the model has seen is a candidate: between the measurements that it was
	// fitted to it interpolates, and the luckiest interpolation is no result.
	r.candidates = r.thinned()
	history := new(suggest.History)
	for _, c := range r.candidates {
		history.Evaluations = append(history.Evaluations, r.compiled.Evaluation(c.point, c.measurement))
	}
	model, err := suggest.FitModel(ctx, r.compiled.Problem, history, suggest.ModelOptions{Seed: r.study.GetSeed()})
	if errors.Is(err, suggest.ErrNoData) {
		front := r.front(dparetov1.FrontKind_FRONT_KIND_POSTERIOR, nil, nil)
		front.Warnings = append(front.Warnings, &dparetov1.Warning{Code: warnNoModel, Message: "nothing has been measured yet"})
		return front, nil
	}
	if err != nil {
		return nil, err
	}
	values := make([][]float64, len(r.candidates))
	predictions := make([][]suggest.Prediction, len(r.candidates))
	for i, c := range r.candidates {
		predictions[i] = model.Predict(c.point)
		values[i] = make([]float64, len(predictions[i]))
		for j, p := range predictions[i] {
			values[i][j] = p.Median
		}
		// What could not be measured is not on a front, whatever the model says.
		for j, v := range r.compiled.ObjectiveValues(c.measurement, spec.Mean) {
			if math.IsInf(v, 0) || math.IsNaN(v) {
				values[i][j] = v
			}
		}
	}
	front := r.front(dparetov1.FrontKind_FRONT_KIND_POSTERIOR, values, predictions)
	r.cached.posterior, r.cached.finalOnly = proto.CloneOf(front), finalOnly
	return front, nil
}

// thinned returns the candidates that the model is fitted to: every final measurement,
// and of each trial's others a few at steps evenly spaced in the logarithm.
func (r *results) thinned() []candidate {
	if len(r.candidates) == len(r.trials) {
		return r.candidates
	}
	perTrial := min(checkpointsPerTrial, max(1, modelSize/len(r.trials)))
	var kept []candidate
	for start := 0; start < len(r.candidates); {
		end := start + 1
		for end < len(r.candidates) && r.candidates[end].trial == r.candidates[start].trial {
			end++
		}
		kept = append(kept, logSpaced(r.candidates[start:end], perTrial)...)
		start = end
	}
	return kept
}

// logSpaced returns at most n of the candidates of one trial, the last one always,
// those nearest to steps evenly spaced in the logarithm.
func logSpaced(candidates []candidate, n int) []candidate {
	first, last := candidates[0].measurement.GetStep(), candidates[len(candidates)-1].measurement.GetStep()
	var kept []candidate
	next := 0
	for k := range n {
		if k == n-1 {
			return append(kept, candidates[len(candidates)-1])
		}
		target := math.Exp(math.Log(float64(first)) + float64(k)/float64(n-1)*math.Log(float64(last)/float64(first)))
		for next < len(candidates)-1 && float64(candidates[next].measurement.GetStep()) < target*(1-1e-9) {
			next++
		}
		if next >= len(candidates)-1 {
			return append(kept, candidates[len(candidates)-1])
		}
		kept = append(kept, candidates[next])
		next++
	}
	return kept
}

// ListHypervolumes implements FrontService.
func (s *frontService) ListHypervolumes(ctx context.Context, req *dparetov1.ListHypervolumesRequest) (*dparetov1.ListHypervolumesResponse, error) {
	id, err := parseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	r, err := s.results(ctx, id, req.GetFinalOnly())
	if err != nil {
		return nil, err
	}
	costs := make([][]float64, len(r.candidates))
	for i, c := range r.candidates {
		costs[i] = r.costs(r.values(c, spec.Mean))
	}
	trace := pareto.Trace(costs, r.costs(r.reference()))
	resp := new(dparetov1.ListHypervolumesResponse)
	for i, c := range r.candidates {
		if i+1 < len(r.candidates) && r.candidates[i+1].trial == c.trial {
			continue // more of this trial to come
		}
		resp.Points = append(resp.Points, &dparetov1.HypervolumePoint{
			Trial:           c.trial.GetName(),
			CompletedTrials: int64(len(resp.GetPoints()) + 1),
			Hypervolume:     trace[i],
		})
	}
	return resp, nil
}
