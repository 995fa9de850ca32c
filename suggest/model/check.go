package model

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/surrogate"
)

// Check is how a model for reading compares with the measurements that it was made of.
type Check struct {
	// Contradicted is set if the measurements contradict the model. Reports then show the measured values without intervals.
	Contradicted bool

	// Claimed is the hypervolume that the model claims for the evaluated configurations. Observed is the
	// hypervolume of their measured values.
	Claimed, Observed float64

	// Inflation holds for each metric the factor, at least 1, by which standard deviations are larger than the model's:
	// as much as runs that it did not know differ from its predictions. It is 1 for a metric without surrogate.
	Inflation []float64
}

// Check returns how the model compares with the measurements. It is zero for a model that is not for reading.
func (m *Model) Check() Check { return m.checked }

const (
	// mostKept is the share above which a model must be unsure of its claims.
	mostKept = 1.1

	// mostInflation is the factor of standard deviations beyond which a model is wrong, and not only too sure.
	mostInflation = 3

	// priorRuns is the weight, in runs, of the belief that the model's standard deviations are right.
	priorRuns = 2
)

// check finds the explanations of the measurements, widens standard deviations that are too small, and compares the model
// with the measurements.
func (m *Model) check(ctx context.Context, f *fitter) error {
	m.explanations, m.plausible = make([][]*surrogate.GP, len(m.gps)), make([][]*surrogate.GP, len(m.gps))
	for j, gp := range m.gps {
		if gp == nil || m.variants[j] == nil {
			continue
		}
		explanations := []fitted{{gp: gp, draw: m.variants[j]}}
		other, err := f.independent(ctx, j, gp.Hyperparameters())
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && other.gp != nil {
			explanations = append(explanations, other)
		}
		m.average(f, j, explanations)
	}
	if err := m.inflate(ctx, f); err != nil {
		return err
	}
	m.checked.Claimed, m.checked.Observed = m.hypervolumes()
	m.checked.Contradicted = !m.isPossible()
	return nil
}

// isPossible reports whether the model claims what can be, and is not far too sure.
func (m *Model) isPossible() bool {
	if slices.ContainsFunc(m.checked.Inflation, func(s float64) bool { return s > mostInflation }) {
		return false
	}
	if m.checked.Claimed <= mostKept*m.checked.Observed {
		return true
	}
	reference, ideal := m.problem.ReferenceCosts(), m.problem.ReferenceCosts()
	var pessimistic [][]float64
	for i := range m.configurations {
		c := &m.configurations[i]
		for j, v := range m.measuredCosts(c) {
			if v < ideal[j] {
				ideal[j] = v
			}
		}
		distributions := m.Distributions(nil, nil, c.Point)
		if costs := m.Medians(c, distributions); !math.IsNaN(costs[0]) {
			for j, p := range m.predictions(distributions) {
				costs[j] = math.Max(m.problem.Objectives[j].Cost(p.Lower), m.problem.Objectives[j].Cost(p.Upper))
			}
			pessimistic = append(pessimistic, costs)
		}
	}
	return m.checked.Claimed <= pareto.Hypervolume([][]float64{ideal}, reference) &&
		pareto.Hypervolume(pessimistic, reference) <= m.checked.Observed
}

// hypervolumes returns the hypervolumes of the medians at the evaluated configurations and of their measured values.
func (m *Model) hypervolumes() (claimed, observed float64) {
	reference := m.problem.ReferenceCosts()
	var medians, values [][]float64
	var x []float64
	for i := range m.configurations {
		c := &m.configurations[i]
		if !m.Counts(c) {
			continue
		}
		if m.Acceptable(c.Point, c.Values) {
			x = m.problem.Inputs(x, c.Point)
			medians = append(medians, m.medianCosts(x, c.Point, c.Values))
		}
		values = append(values, m.measuredCosts(c))
	}
	return pareto.Hypervolume(medians, reference), pareto.Hypervolume(values, reference)
}

// measuredCosts returns the measured values of an evaluated configuration as costs, NaNs if it cannot be on a front.
func (m *Model) measuredCosts(c *suggest.Configuration) []float64 {
	costs := make([]float64, len(m.problem.Objectives))
	possible := m.Counts(c)
	for i := range m.problem.Constraints {
		possible = possible && m.problem.Constraints[i].Holds(c.Values[len(costs)+i])
	}
	for j := range costs {
		if costs[j] = math.NaN(); possible {
			costs[j] = m.problem.Objectives[j].Cost(c.Values[j])
		}
	}
	return costs
}

// average sets the explanations of metric j, and draws of the hyperparameters about each. In a long history, and where draws
// cannot be computed, the explanation itself stands for them.
func (m *Model) average(f *fitter, j int, explanations []fitted) {
	rng := sample.Stream(f.options.Seed, int64(j), sample.Hyperparameters)
	for _, e := range explanations {
		drawn, err := []*surrogate.GP{e.gp}, error(nil)
		if len(m.configurations) <= fitSize {
			drawn, err = e.draw(plausible/len(explanations), rng)
		}
		if err != nil {
			drawn = []*surrogate.GP{e.gp}
		}
		m.explanations[j] = append(m.explanations[j], e.gp)
		m.plausible[j] = append(m.plausible[j], drawn...)
	}
}

// inflate sets by how much the standard deviations of each metric are to be wider. Runs are left out one at a time.
func (m *Model) inflate(ctx context.Context, f *fitter) error {
	m.checked.Inflation = make([]float64, len(m.gps))
	for j, gp := range m.gps {
		m.checked.Inflation[j] = 1
		if gp == nil || len(m.observed[j].Values) == 0 {
			continue
		}
		blocks := f.blocks(m.configurations, m.observed[j])
		left, err := surrogate.LeaveOut(ctx, gp, blocks)
		if err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue // singular covariances say nothing
		}
		sum := float64(priorRuns)
		for b := range left {
			for a, r := range left[b].Residuals {
				variance, share := left[b].Covariance.At(a, a), 1/float64(len(left[b].Residuals))
				sum += r * r / variance * share
			}
		}
		m.checked.Inflation[j] = math.Sqrt(max(1, sum/float64(priorRuns+len(blocks))))
	}
	return nil
}

// blocks returns the observations of each run, or of each configuration without checkpoints. Infeasible configurations, whose values are
// made up, have none.
func (f *fitter) blocks(configurations []suggest.Configuration, observed Observed) [][]int {
	var blocks [][]int
	index := make(map[int64]int)
	for i, c := range observed.Configurations {
		if c < 0 {
			continue
		}
		run := f.history.Evaluations[configurations[c].Evaluations[0]].Run
		if run == 0 {
			run = -1 - int64(c)
		}
		b, ok := index[run]
		if !ok {
			b = len(blocks)
			index[run] = b
			blocks = append(blocks, nil)
		}
		blocks[b] = append(blocks[b], i)
	}
	return blocks
}

// roughnessShare is the share of learned noise that is attributed to variation of the metric that the kernel cannot
// follow. Fresh runs of the same configuration then also have it. Without it 77 % of the 90 % intervals on fronts of
// bench honesty hold.
const roughnessShare = 0.25

// widened returns the variance of a metric at x for one that its surrogate has, in a model that was checked.
func (m *Model) widened(j int, x []float64, variance float64) float64 {
	if m.checked.Inflation == nil {
		return variance
	}
	s := m.checked.Inflation[j]
	return s * s * (variance + roughnessShare*m.gps[j].Noise(x))
}
