package engine

import (
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// referenceCandidates is the number of quasi-random configurations among which the front that is
// possible is looked for.
const referenceCandidates = 256

// widened returns the model of a problem whose inferred references also lie beyond the medians of all
// configurations that may be on the front: those on the front if all turn out better than their
// medians by some standard deviations. References beyond the observed front alone would keep the
// search near it: a run that extends the front by more than a tenth would be worth nothing.
func widened(m *model.Model, seed uint64, number int64) *model.Model {
	p := m.Problem()
	if !slices.ContainsFunc(p.Objectives, func(o suggest.Objective) bool { return o.InferReference }) {
		return m
	}
	var points []space.Point
	sequence := sample.NewHalton(len(p.Space.Parameters), sample.Mix(sample.Reference.Seed(seed)^uint64(number)))
	u := make([]float64, len(p.Space.Parameters))
	for i := range referenceCandidates {
		sequence.At(u, uint64(i))
		if q := sample.At(p.Space, u); p.Allows(q) && m.Acceptable(q, nil) {
			points = append(points, q)
		}
	}
	medians, best := outlooks(m, points)
	var possible [][]float64
	for _, i := range pareto.NonDominatedBeside(best, p.ConstantCosts()) {
		possible = append(possible, medians[i])
	}
	wide := p.WithReferenceBeyond(possible, medians)
	for j := range wide.Objectives {
		observed, o := &p.Objectives[j], &wide.Objectives[j]
		if o.Cost(o.Reference) < observed.Cost(observed.Reference) {
			*o = *observed
		}
	}
	return m.Within(wide)
}

// outlooks returns the medians of the costs of configurations, and costs that are better by some
// standard deviations.
func outlooks(m *model.Model, points []space.Point) (medians, best [][]float64) {
	p := m.Problem()
	x := make([][]float64, len(points))
	medians, best = make([][]float64, len(points)), make([][]float64, len(points))
	for i, q := range points {
		x[i] = p.Inputs(nil, q)
		medians[i], best[i] = make([]float64, len(p.Objectives)), make([]float64, len(p.Objectives))
	}
	means, variances := make([]float64, len(points)), make([]float64, len(points))
	for j := range p.Objectives {
		gp := m.Surrogate(j)
		if gp == nil {
			for i, q := range points {
				medians[i][j] = p.Objectives[j].SearchCost(q)
				best[i][j] = medians[i][j]
			}
			continue
		}
		gp.PredictBatch(means, variances, x)
		for i := range points {
			d := m.Distribution(j, means[i], variances[i])
			medians[i][j] = d.Median()
			best[i][j] = math.Min(d.Quantile(-optimism), d.Quantile(optimism))
		}
	}
	return medians, best
}
