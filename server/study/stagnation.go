package study

import (
	"fmt"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
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
		c.Study.Stagnation = &storev1.Stagnation{Hypervolume: c.Compiled.Problem.Hypervolume(nil)}
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
	if c.Compiled.Points.Checkpoints() {
		measured = append(measured, trial.GetMeasurements()...)
	}
	for _, m := range measured {
		if c.Compiled.Metrics.Acceptable(m) { // violates no constraint
			points = append(points, MeasuredCosts(c.Compiled, m))
		}
	}
	// References follow from the front alone, which is all that is kept.
	points = append(points, before...)
	var best [][]float64
	for _, i := range pareto.NonDominated(points) {
		best = append(best, points[i])
	}
	problem, old := c.Compiled.Problem.WithInferredReference(best), c.Compiled.Problem.WithInferredReference(before)
	if !slices.Equal(problem.ReferenceCosts(), old.ReferenceCosts()) {
		// Hypervolumes within other references are compared by their ratio for the same front.
		then, now := old.Hypervolume(before), problem.Hypervolume(before)
		if stagnation.Hypervolume *= now / then; !(then > 0) {
			stagnation.Hypervolume = now
		}
	}
	front := pareto.NewFront(slices.Concat(best, problem.ConstantCosts()), problem.ReferenceCosts())
	if hypervolume := front.Hypervolume(); hypervolume > leastGrowth*stagnation.GetHypervolume() {
		stagnation.Trials, stagnation.Hypervolume = 0, hypervolume
	}
	stagnation.Front = nil
	for _, p := range front.Points() {
		stagnation.Front = append(stagnation.Front, &storev1.FrontCosts{Costs: p})
	}
}

// MeasuredCosts returns the objectives of a measurement as costs: +Inf where one has no value.
func MeasuredCosts(compiled *spec.Study, m *dparetov1.Measurement) []float64 {
	return compiled.Problem.Costs(compiled.Metrics.ObjectiveValues(m, spec.Mean))
}
