package bench

import (
	"context"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxReported is the number of configurations to which a front is cut before they are run
// again.
const maxReported = 12

// score is the quality of one study after a number of runs. A missing value is NaN.
type score struct {
	observed       float64 // hypervolume of all measurements
	truth          float64 // of the exact values of the reported configurations
	evaluated      float64 // of the exact values of all configurations
	claimed        float64 // of what the model says of them
	remeasured     float64 // of their means over fresh runs
	difference     float64 // log10(maximum - true hypervolume)
	runsToTarget   float64 // +Inf where it is not reached
	epochsToTarget float64
	epochs         float64
	processor      float64 // seconds per suggestion
	repetitions    float64 // suggestions to run a configuration again
}

// outcome is what is kept of one study.
type outcome struct {
	scores   []score   // at the budgets of the result
	trace    []float64 // observed hypervolume after 1, 2, ... runs
	standIns int
	reason   string
}

// scores measures the study at all budgets. A study that ended before, as its space is used
// up, keeps its state.
func (s *study) scores(ctx context.Context) (*outcome, error) {
	costs := make([][]float64, len(s.history.Evaluations))
	for i := range costs {
		costs[i] = s.problem.feasible(s.history.Evaluations[i].Values)
	}
	course := pareto.Trace(costs, s.problem.reference())
	out := &outcome{trace: make([]float64, s.options.Budget), standIns: s.standIns, reason: s.reason}
	for r := range out.trace {
		if n := s.state(r + 1).evaluations; n > 0 {
			out.trace[r] = course[n-1]
		}
	}
	for _, budget := range s.options.budgets() {
		one, err := s.score(ctx, budget, out.trace)
		if err != nil {
			return nil, err
		}
		out.scores = append(out.scores, one)
	}
	return out, nil
}

// state returns the state after a number of runs.
func (s *study) state(runs int) state { return s.after[min(runs, len(s.after)-1)] }

func (s *study) score(ctx context.Context, budget int, trace []float64) (score, error) {
	at := s.state(budget)
	out := score{
		observed: trace[budget-1], truth: math.NaN(), evaluated: math.NaN(), remeasured: math.NaN(), difference: math.NaN(),
		runsToTarget: math.NaN(), epochsToTarget: math.NaN(), epochs: math.NaN(), processor: math.NaN(),
	}
	if s.options.Target > 0 {
		out.runsToTarget = math.Inf(1)
		if s.problem.Epochs != nil {
			out.epochsToTarget = math.Inf(1)
		}
		for r, v := range trace[:budget] {
			if v >= s.options.Target {
				out.runsToTarget = float64(r + 1)
				if s.problem.Epochs != nil {
					out.epochsToTarget = s.state(r + 1).epochs
				}
				break
			}
		}
	}
	if s.problem.Epochs != nil {
		out.epochs = at.epochs
	}
	out.repetitions = float64(at.repetitions)
	if ProcessorTime() > 0 && at.suggestions > 0 {
		out.processor = at.processor.Seconds() / float64(at.suggestions)
	}
	if s.problem.Exact {
		out.truth, out.evaluated, out.claimed = out.observed, out.observed, out.observed
	} else if err := s.reported(ctx, at, budget, &out); err != nil {
		return out, err
	}
	if maximum := s.problem.MaxHypervolume; !math.IsNaN(maximum) {
		out.difference = math.Log10(math.Max(maximum-out.truth, leastDifference))
	}
	return out, nil
}

// leastDifference bounds the difference to the maximum from below, for its logarithm.
const leastDifference = 1e-12

// reported measures the front that the model of all measurements reports.
func (s *study) reported(ctx context.Context, at state, budget int, out *score) error {
	history := suggest.History{Evaluations: s.history.Evaluations[:at.evaluations]}
	if len(history.Evaluations) == 0 {
		return nil // everything was infeasible
	}
	m, err := model.Fit(ctx, s.problem.Problem, &history, model.Options{Seed: s.seed, Cache: &s.fits})
	if err != nil {
		return err
	}
	var points []space.Point
	var claimed [][]float64
	for _, e := range m.Estimates() {
		if !e.OnFront {
			continue
		}
		medians := make([]float64, len(e.Predictions))
		for j, p := range e.Predictions {
			medians[j] = p.Median
		}
		points = append(points, e.Point)
		claimed = append(claimed, s.problem.costs(medians))
	}
	reference := s.problem.reference()
	out.claimed = pareto.Hypervolume(claimed, reference)
	if s.problem.Truth != nil {
		exact := make([][]float64, len(points))
		for i, q := range points {
			exact[i] = s.problem.feasible(s.problem.Truth(q))
		}
		out.truth = pareto.Hypervolume(exact, reference)
		all := make([][]float64, len(history.Evaluations))
		for i := range all {
			all[i] = s.problem.feasible(s.problem.Truth(history.Evaluations[i].Point))
		}
		out.evaluated = pareto.Hypervolume(all, reference)
	}
	if s.options.Remeasure == 0 {
		return nil
	}
	var cut, fresh [][]float64
	evaluate := s.problem.Start()
	for i, k := range pareto.Subset(claimed, reference, maxReported) {
		cut = append(cut, claimed[k])
		// A configuration that turns out to be infeasible keeps no values.
		means, err := s.remeasure(ctx, evaluate, points[k], (budget*maxReported+i)*s.options.Remeasure)
		if err != nil {
			return err
		}
		if means != nil {
			fresh = append(fresh, s.problem.costs(means))
		}
	}
	out.claimed = pareto.Hypervolume(cut, reference)
	out.remeasured = pareto.Hypervolume(fresh, reference)
	return nil
}

// remeasure returns the means over fresh runs at q, with seeds from the given number on.
func (s *study) remeasure(ctx context.Context, evaluate Evaluator, q space.Point, number int) ([]float64, error) {
	values := make([][]float64, len(s.problem.Objectives))
	for k := range s.options.Remeasure {
		evaluations, err := evaluate(ctx, q, derive(s.seed, streamRemeasure, number+k))
		if err != nil || len(evaluations) == 0 {
			return nil, err
		}
		for j := range values {
			values[j] = append(values[j], evaluations[len(evaluations)-1].Values[j])
		}
	}
	means := make([]float64, len(values))
	for j := range means {
		means[j] = stat.Mean(values[j], nil)
	}
	return means, nil
}
