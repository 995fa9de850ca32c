package suggest

import (
	"cmp"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/pareto"
)

// referenceMargin is how far an inferred reference lies beyond the worst value of the front, as a share
// of the front's range: the default of BoTorch's infer_reference_point, and of Ax.
const referenceMargin = 0.1

// Inferred returns p with the references of its objectives that are inferred (see
// [Objective].InferReference), from the results of a study, or p itself where none is. A reference is the worst value
// of the objective on the observed front, and a tenth of the front's range beyond. The front is computed from the
// constants and the means of configurations that meet the constraints and are better than the given references, without
// outliers (see [Attached]). Where there is none it is the front of all finite results, and where there are no results
// the front of the prior's. If the front has no range, the one of all results counts; then the magnitude of the value,
// or 1. Without any results a reference is the worst possible value, or of magnitude 1e100.
func (p *Problem) Inferred(h *History) *Problem {
	if !p.infersReference() {
		return p
	}
	costs := p.resultCosts(h.Evaluations)
	if len(costs) == 0 {
		costs = p.resultCosts(h.Prior)
	}
	return p.WithInferredReference(costs)
}

func (p *Problem) infersReference() bool {
	return slices.ContainsFunc(p.Objectives, func(o Objective) bool { return o.InferReference })
}

// WithInferredReference is [Problem.Inferred] for the costs of results, of which those that meet the
// constraints are given.
func (p *Problem) WithInferredReference(costs [][]float64) *Problem {
	if !p.infersReference() {
		return p
	}
	constants := p.ConstantCosts()
	costs = slices.DeleteFunc(slices.Clone(costs), func(v []float64) bool {
		return slices.ContainsFunc(v, func(c float64) bool { return math.IsNaN(c) || math.IsInf(c, 0) })
	})
	costs = p.plausible(costs)
	counted := p.better(costs)
	if len(counted) == 0 {
		counted = costs
	}
	all := slices.Concat(counted, constants)
	var front [][]float64
	for _, i := range pareto.NonDominated(all) {
		front = append(front, all[i])
	}
	return p.WithReferenceBeyond(front, all)
}

// WithReferenceBeyond returns p with inferred references a tenth of the range of a front beyond its worst
// values, whatever dominates them. all are the costs that count if the front has no range.
func (p *Problem) WithReferenceBeyond(front, all [][]float64) *Problem {
	out := *p
	out.Objectives = slices.Clone(p.Objectives)
	for j := range out.Objectives {
		if o := &out.Objectives[j]; o.InferReference && len(front) > 0 {
			o.setReference(beyond(front, all, j))
		}
	}
	return &out
}

// resultCosts returns the costs of the configurations of evaluations that are finite: those that meet the
// constraints, or all if none does.
func (p *Problem) resultCosts(evaluations []Evaluation) [][]float64 {
	h := History{Evaluations: evaluations}
	var met, all [][]float64
	for _, c := range h.Configurations() {
		if !c.Finite() {
			continue
		}
		costs := make([]float64, len(p.Objectives))
		for j := range costs {
			costs[j] = p.Objectives[j].Cost(c.Values[j])
		}
		all = append(all, costs)
		holds := true
		for i := range p.Constraints {
			holds = holds && p.Constraints[i].Holds(c.Values[len(p.Objectives)+i])
		}
		if holds {
			met = append(met, costs)
		}
	}
	if len(met) == 0 {
		return all
	}
	return met
}

// better returns the costs that are better than all references that are given.
func (p *Problem) better(costs [][]float64) [][]float64 {
	return slices.DeleteFunc(slices.Clone(costs), func(v []float64) bool {
		for j := range p.Objectives {
			if o := &p.Objectives[j]; !o.InferReference && !(v[j] < o.Cost(o.Reference)) {
				return true
			}
		}
		return false
	})
}

// span returns the least and the largest of the costs of objective j.
func span(costs [][]float64, j int) (best, worst float64) {
	best, worst = math.Inf(1), math.Inf(-1)
	for _, v := range costs {
		best, worst = math.Min(best, v[j]), math.Max(worst, v[j])
	}
	return best, worst
}

// beyond returns a cost beyond the worst of objective j on a front.
func beyond(front, all [][]float64, j int) float64 {
	best, worst := span(front, j)
	_, last := span(all, j)
	return worst + referenceMargin*cmp.Or(worst-best, last-worst, math.Abs(worst), 1)
}

// setReference sets the reference to the value of a cost, or to the nearest that the transform allows.
func (o *Objective) setReference(cost float64) {
	v := o.Cost(cost)
	switch o.Transform {
	case Logit:
		v = math.Min(math.Max(v, 0), 1)
	case Log:
		v = math.Max(v, leastLogReference)
	default:
	}
	o.Reference = v
	if o.Transform == Log {
		o.Floor = DefaultFloor * v
	}
}

// leastLogReference bounds inferred references of maximised Log objectives from below, so that their
// logarithms stay finite.
const leastLogReference = 1e-100

// UnknownReference returns the reference of an objective without results: the worst value of its transform,
// or a value of magnitude 1e100.
func UnknownReference(g Goal, t Transform) float64 {
	switch {
	case t == Logit && g == Minimize:
		return 1
	case t == Logit:
		return 0
	case t == Log && g == Maximize:
		return leastLogReference
	case g == Maximize:
		return -1e100
	default:
		return 1e100
	}
}
