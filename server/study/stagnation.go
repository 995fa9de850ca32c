package study

import (
	"fmt"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// leastGrowth is the factor by which the hypervolume must grow to count as growth.
const leastGrowth = 1.001

// stagnant returns why stagnation keeps a study from creating trials, or "".
func stagnant(record *storev1.StudyRecord) string {
	limit := record.GetStudy().GetSpec().GetBudget().GetMaxStagnantTrials()
	if n := record.GetStagnation().GetTrials(); limit > 0 && n >= limit {
		return fmt.Sprintf("the hypervolume has not grown for %d trials", n)
	}
	return ""
}

// updateStagnation counts a trial that just completed. Failed trials say nothing about the front,
// and replicates are not expected to extend it: neither counts.
func (c *Change) updateStagnation(trial *dparetov1.Trial) {
	if c.Study.GetStudy().GetSpec().GetBudget().GetMaxStagnantTrials() == 0 || trial.GetState() == dparetov1.TrialState_TRIAL_STATE_FAILED {
		return
	}
	if c.Study.GetStagnation() == nil {
		reference, constants := Places(c.Compiled.Problem)
		c.Study.Stagnation = &storev1.Stagnation{Hypervolume: pareto.Hypervolume(constants, reference)}
	}
	stagnation := c.Study.GetStagnation()
	if trial.GetReplicateOf() == "" {
		stagnation.Trials++
	}
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		return
	}
	var before, points [][]float64
	for _, p := range stagnation.GetFront() {
		before = append(before, p.GetCosts())
	}
	measured := []*dparetov1.Measurement{trial.GetFinalMeasurement()}
	if c.Compiled.Checkpoints() {
		measured = append(measured, trial.GetMeasurements()...)
	}
	for _, m := range measured {
		if c.Compiled.Acceptable(m) { // violates no constraint
			points = append(points, MeasuredCosts(c.Compiled, m))
		}
	}
	// References follow from the front alone, which is all that is kept.
	points = append(points, before...)
	var best [][]float64
	for _, i := range pareto.NonDominated(points) {
		best = append(best, points[i])
	}
	reference, constants := Places(inferred(c.Compiled.Problem, best))
	if old, _ := Places(inferred(c.Compiled.Problem, before)); !slices.Equal(old, reference) {
		// A hypervolume within other references compares by what it is of that of the same front.
		then := pareto.Hypervolume(slices.Concat(before, constants), old)
		now := pareto.Hypervolume(slices.Concat(before, constants), reference)
		if stagnation.Hypervolume *= now / then; !(then > 0) {
			stagnation.Hypervolume = now
		}
	}
	front := pareto.NewFront(slices.Concat(best, constants), reference)
	if hypervolume := front.Hypervolume(); hypervolume > leastGrowth*stagnation.GetHypervolume() {
		stagnation.Trials, stagnation.Hypervolume = 0, hypervolume
	}
	stagnation.Front = nil
	for _, p := range front.Points() {
		stagnation.Front = append(stagnation.Front, &storev1.FrontCosts{Costs: p})
	}
}

// inferred returns a problem with the references that follow from results, whose costs are given as by
// MeasuredCosts.
func inferred(p *suggest.Problem, costs [][]float64) *suggest.Problem {
	if !slices.ContainsFunc(p.Objectives, func(o suggest.Objective) bool { return o.InferReference }) {
		return p
	}
	own := make([][]float64, len(costs))
	for i, v := range costs {
		own[i] = make([]float64, len(v))
		for j, c := range v {
			own[i][j] = p.Objectives[j].Cost(Cost(&p.Objectives[j], c)) // Cost is its own inverse
		}
	}
	return p.WithInferredReference(own)
}

// MeasuredCosts returns the objectives of a measurement as costs: +Inf where one has no value.
func MeasuredCosts(compiled *spec.Study, m *dparetov1.Measurement) []float64 {
	values := compiled.ObjectiveValues(m, spec.Mean)
	for j := range values {
		values[j] = Cost(&compiled.Problem.Objectives[j], values[j])
	}
	return values
}

// Places returns the reference and the constants of a problem, both as costs.
func Places(p *suggest.Problem) (reference []float64, constants [][]float64) {
	costs := func(value func(j int) float64) []float64 {
		out := make([]float64, len(p.Objectives))
		for j := range out {
			out[j] = Cost(&p.Objectives[j], value(j))
		}
		return out
	}
	for _, values := range p.Constants {
		constants = append(constants, costs(func(j int) float64 { return values[j] }))
	}
	return costs(func(j int) float64 { return p.Objectives[j].Reference }), constants
}

// Cost returns an objective value as a cost: negated if the objective is maximised.
func Cost(o *suggest.Objective, value float64) float64 {
	if o.Goal == suggest.Maximize {
		return -value
	}
	return value
}
