package front

import (
	"context"
	"errors"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// posteriorPoints bounds the points of the posterior front's hypervolume over time. Each costs a
// model fit.
const posteriorPoints = 20

// ListHypervolumes implements FrontService.
func (f *Fronts) ListHypervolumes(ctx context.Context, req *dparetov1.ListHypervolumesRequest) (*dparetov1.ListHypervolumesResponse, error) {
	id, err := resource.ParseStudyName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	kind := req.GetKind()
	if kind == dparetov1.FrontKind_FRONT_KIND_UNSPECIFIED {
		kind = dparetov1.FrontKind_FRONT_KIND_OBSERVED
	}
	isPosterior := kind == dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	if !isPosterior && !slices.Contains(measuredKinds, kind) {
		return nil, invalid.Field("kind", "is unknown: %d", kind)
	}
	r, err := f.Results(ctx, id, req.GetFinalOnly())
	if err != nil {
		return nil, err
	}
	points, err := r.kept().traces[kind].get(ctx, f.background, r.Study.GetRevision(), func(ctx context.Context) ([]*dparetov1.HypervolumePoint, error) {
		points, ends := trialPoints(r)
		if isPosterior {
			return r.posteriorTrace(ctx, points, ends)
		}
		for i, hypervolume := range r.measuredTrace(kind, ends) {
			points[i].Hypervolume = hypervolume
		}
		return points, nil
	})
	if err != nil {
		return nil, err
	}
	return &dparetov1.ListHypervolumesResponse{Points: points, Reference: r.references()}, nil
}

// trialPoints returns a point without hypervolume for every trial, and the number of measurements up
// to the trial's last.
func trialPoints(r *Results) (points []*dparetov1.HypervolumePoint, ends []int) {
	var runs, steps int64
	for i := range r.Measurements {
		m := &r.Measurements[i]
		if !m.Last {
			continue
		}
		n := int64(r.Evaluations[i].Runs)
		runs += n
		if r.Compiled.Points.Checkpoints() {
			steps += n * m.Step
		}
		ends = append(ends, i+1)
		points = append(points, &dparetov1.HypervolumePoint{
			Trial: r.TrialOf(m), CompletedTrials: int64(len(ends)), Runs: runs, Steps: steps,
		})
	}
	return points, ends
}

// measuredTrace returns the hypervolume of a measured front after each trial. It updates the front
// from trial to trial. It rebuilds the front only if a configuration on it was measured again, and
// may have fallen behind one that it used to dominate.
func (r *Results) measuredTrace(kind dparetov1.FrontKind, ends []int) []float64 {
	constants := r.problem.ConstantCosts()
	known := make([][]int, len(r.Configurations)) // measurements so far
	costs := make([][]float64, len(r.Configurations))
	var front []int // configurations
	trace := make([]float64, len(ends))
	start, latest := 0, r.problem.Hypervolume(nil)
	for k, end := range ends {
		among := slices.Clone(front)
		rebuild, dominated := false, true
		for i := start; i < end; i++ {
			c := r.Measurements[i].Configuration
			rebuild = rebuild || slices.Contains(front, c)
			known[c] = append(known[c], i)
			costs[c] = r.Cost(r.value(known[c], kind))
			dominated = dominated && (slices.ContainsFunc(front, func(f int) bool { return pareto.Dominates(costs[f], costs[c]) }) ||
				slices.ContainsFunc(constants, func(v []float64) bool { return pareto.Dominates(v, costs[c]) }))
			if !slices.Contains(among, c) {
				among = append(among, c)
			}
		}
		start = end
		if dominated && !rebuild {
			trace[k] = latest // the front is the same
			continue
		}
		if rebuild {
			among = among[:0]
			for c := range costs {
				if costs[c] != nil {
					among = append(among, c)
				}
			}
		}
		values := make([][]float64, len(among))
		for i, c := range among {
			values[i] = costs[c]
		}
		front = front[:0]
		for _, i := range pareto.NonDominatedBeside(values, constants) {
			front = append(front, among[i])
		}
		latest = r.problem.Hypervolume(values)
		trace[k] = latest
	}
	return trace
}

// posteriorTrace returns some of the points, each with the hypervolume of the posterior front at
// that time.
func (r *Results) posteriorTrace(ctx context.Context, points []*dparetov1.HypervolumePoint, ends []int) ([]*dparetov1.HypervolumePoint, error) {
	var kept []*dparetov1.HypervolumePoint
	for _, n := range evenly(len(points), posteriorPoints) {
		var estimates []model.Estimate
		m, err := r.modelOf(ctx, ends[n-1], r.ModelOptions())
		switch {
		case err == nil:
			if estimates, err = r.estimates(ctx, m); err != nil {
				return nil, err
			}
		case !errors.Is(err, model.ErrNoData):
			return nil, err
		}
		var costs [][]float64
		for i := range estimates {
			if estimates[i].OnFront {
				costs = append(costs, r.Cost(Medians(&estimates[i])))
			}
		}
		point := points[n-1]
		point.Hypervolume = r.problem.Hypervolume(costs)
		kept = append(kept, point)
	}
	return kept, nil
}

// evenly returns at most limit evenly spaced numbers from 1 to n, including n.
func evenly(n, limit int) []int {
	count := min(n, limit)
	numbers := make([]int, count)
	for k := range numbers {
		numbers[k] = (k + 1) * n / count
	}
	return numbers
}
