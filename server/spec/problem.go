package spec

import (
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest"
)

// logFloor times the reference value, or the smallest bound of a constraint, is the smallest
// value that is modelled under the log transform.
const logFloor = 1e-3

// newProblem builds the optimisation problem of a study.
func newProblem(study *Study) *suggest.Problem {
	p := &suggest.Problem{Space: study.Points.space, Checkpoint: study.Spec.GetCheckpointParameter()}
	for _, i := range study.Metrics.objectives {
		p.Objectives = append(p.Objectives, newObjective(study, i))
	}
	for _, i := range study.Metrics.constrained {
		p.Constraints = append(p.Constraints, newConstraint(study, i))
	}
	for _, point := range study.Spec.GetConstantPoints() {
		values := make([]float64, len(p.Objectives))
		for j, o := range p.Objectives {
			values[j] = point.GetValues()[o.Name]
		}
		p.Constants = append(p.Constants, values)
	}
	if len(study.Points.constraints) > 0 {
		p.Allowed = study.Points.allowed
	}
	if study.features != nil {
		p.Features = study.features.of(study)
	}
	switch study.Spec.GetCost().GetMeasure().(type) {
	case *dparetov1.CostSpec_CheckpointParameter:
		p.Cost = suggest.CostCheckpoint
	case *dparetov1.CostSpec_Metric:
		p.Cost = suggest.CostMeasured
	default:
	}
	return p
}

func newObjective(study *Study, i int) suggest.Objective {
	m := &study.Metrics.all[i]
	o := suggest.Objective{
		Name:       m.id(),
		Goal:       suggest.Minimize,
		Transform:  transform(m.spec),
		Reference:  m.spec.GetReferenceValue(),
		SampleSize: m.spec.GetReported().GetSampleSize(),
		NoiseFree:  m.isNoiseFree(),
	}
	if m.spec.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		o.Goal = suggest.Maximize
	}
	switch {
	case m.spec.ReferenceValue == nil:
		o.InferReference, o.Reference = true, suggest.UnknownReference(o.Goal, o.Transform)
	case o.Transform == suggest.Log:
		o.Floor = logFloor * o.Reference
	}
	if m.computed != nil {
		o.Known = study.Metrics.known(i, number)
		o.Search, m.rounded = m.computed.search(study.Points, o.Reference)
	}
	return o
}

func newConstraint(study *Study, i int) suggest.Constraint {
	m := &study.Metrics.all[i]
	c := suggest.Constraint{
		Name:       m.id(),
		Transform:  transform(m.spec),
		SampleSize: m.spec.GetReported().GetSampleSize(),
		NoiseFree:  m.isNoiseFree(),
	}
	c.Lower, c.Upper = bounds(m.spec)
	if c.Transform == suggest.Log {
		smallest := c.Lower
		if m.spec.GetBounds().Min == nil {
			smallest = c.Upper
		}
		c.Floor = logFloor * smallest
	}
	if m.computed != nil {
		c.Known = study.Metrics.known(i, constraintNumber)
	}
	return c
}

// transform returns the transform of a metric's surrogate: none by default.
func transform(m *dparetov1.MetricSpec) suggest.Transform {
	switch m.GetTransform() {
	case dparetov1.Transform_TRANSFORM_LOG:
		return suggest.Log
	case dparetov1.Transform_TRANSFORM_LOGIT:
		return suggest.Logit
	default:
		return suggest.Identity
	}
}
