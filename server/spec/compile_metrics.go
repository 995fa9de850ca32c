package spec

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/expression"
)

// Limits of the metrics.
const (
	maxMetrics    = 20
	maxUnitLength = 100
	maxObjectives = 5 // exact hypervolumes are exponential in their number
)

// metricCompiler compiles the metrics.
type metricCompiler struct {
	*violations

	environment *expression.Environment // nil if expressions cannot be compiled
	metrics     *Metrics
	spec        *dparetov1.StudySpec
}

// compile compiles the metrics of the spec.
func (c *metricCompiler) compile() {
	if n := len(c.spec.GetMetrics()); n < 1 || n > maxMetrics {
		c.addf("metrics", "must hold 1 to %d metrics, holds %d", maxMetrics, n)
		return
	}
	for i, m := range c.spec.GetMetrics() {
		field := fmt.Sprintf("metrics[%d]", i)
		c.fieldsOf(field, m)
		compiled := metric{spec: m}
		if computed := m.GetComputed(); computed != nil {
			compiled.computed = c.computed(field+".computed", computed)
		}
		c.metrics.all = append(c.metrics.all, compiled)
		switch m.GetRole() {
		case dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
			c.metrics.objectives = append(c.metrics.objectives, i)
		case dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT:
			c.metrics.constrained = append(c.metrics.constrained, i)
		default:
		}
	}
	if n := len(c.metrics.objectives); n < 1 || n > maxObjectives {
		c.addf("metrics", "must hold 1 to %d metrics with METRIC_ROLE_OBJECTIVE, holds %d", maxObjectives, n)
	}
}

// fieldsOf checks the fields of one metric other than a computed function.
func (c *metricCompiler) fieldsOf(field string, m *dparetov1.MetricSpec) {
	if n := len(m.GetUnit()); n > maxUnitLength {
		c.addf(field+".unit", "must have at most %d bytes, has %d", maxUnitLength, n)
	}
	objective := m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE
	constrained := m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT
	if !objective && !constrained && m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_TRACKED {
		c.addf(field+".role", "must be METRIC_ROLE_OBJECTIVE, METRIC_ROLE_CONSTRAINT or METRIC_ROLE_TRACKED, is %v", m.GetRole())
	}
	if objective {
		c.objective(field, m)
	} else {
		if m.ReferenceValue != nil {
			c.addf(field+".reference_value", "is only for objectives")
		}
		if m.GetGoal() != dparetov1.Goal_GOAL_UNSPECIFIED {
			c.addf(field+".goal", "is only for objectives")
		}
	}
	if constrained {
		c.bounds(field, m)
	} else if m.GetBounds() != nil {
		c.addf(field+".bounds", "is only for metrics with METRIC_ROLE_CONSTRAINT")
	}
	if !objective && !constrained && m.GetTransform() != dparetov1.Transform_TRANSFORM_UNSPECIFIED {
		c.addf(field+".transform", "is only for objectives and constraints")
	}
	switch source := m.GetSource().(type) {
	case *dparetov1.MetricSpec_Reported:
		c.noise(field+".reported.noise", m)
		if n := source.Reported.GetSampleSize(); !(n >= 0) || math.IsInf(n, 0) {
			c.addf(field+".reported.sample_size", "must be finite and not negative, is %g", n)
		} else if n > 0 && m.GetTransform() != dparetov1.Transform_TRANSFORM_LOGIT {
			c.addf(field+".reported.sample_size", "is only for metrics with TRANSFORM_LOGIT")
		}
	case *dparetov1.MetricSpec_Computed:
	default:
		c.addf(field+".source", "one of reported and computed must be set")
	}
}

// noise checks what is known of the noise of a reported metric.
func (c *metricCompiler) noise(field string, m *dparetov1.MetricSpec) {
	switch noise := m.GetReported().GetNoise(); {
	case noise == dparetov1.Noise_NOISE_UNSPECIFIED:
	case dparetov1.Noise_name[int32(noise)] == "":
		c.addf(field, "must be NOISE_NONE, NOISE_UNKNOWN or NOISE_KNOWN, is %v", noise)
	case m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_TRACKED:
		c.addf(field, "is only for objectives and constraints")
	}
}

func (c *metricCompiler) objective(field string, m *dparetov1.MetricSpec) {
	switch m.GetGoal() {
	case dparetov1.Goal_GOAL_MINIMIZE, dparetov1.Goal_GOAL_MAXIMIZE:
	default:
		c.addf(field+".goal", "must be GOAL_MINIMIZE or GOAL_MAXIMIZE for an objective, is %v", m.GetGoal())
	}
	switch m.GetTransform() {
	case dparetov1.Transform_TRANSFORM_IDENTITY, dparetov1.Transform_TRANSFORM_LOG, dparetov1.Transform_TRANSFORM_LOGIT:
	default:
		c.addf(field+".transform", "must be set for an objective, is %v", m.GetTransform())
	}
	c.reference(field+".reference_value", m)
}

// reference checks the reference value of an objective.
func (c *metricCompiler) reference(field string, m *dparetov1.MetricSpec) {
	if m.ReferenceValue == nil {
		switch {
		case m.GetComputed() != nil:
			c.addf(field, "must be set for a computed objective: it is inferred from results only for reported objectives")
		case c.spec.GetAlgorithm().GetName() == dparetov1.Algorithm_ALGORITHM_DPARETO:
			c.addf(field, "must be set with ALGORITHM_DPARETO, whose published form has an anti-ideal point")
		}
		return
	}
	reference := m.GetReferenceValue()
	switch transform := m.GetTransform(); {
	case math.IsNaN(reference) || math.IsInf(reference, 0):
		c.addf(field, "must be finite, is %g", reference)
	case math.Abs(reference) > maxMagnitude:
		c.addf(field, "must be at most %g in magnitude, is %g", maxMagnitude, reference)
	case transform == dparetov1.Transform_TRANSFORM_LOG && !(reference > 0):
		c.addf(field, "must be positive under TRANSFORM_LOG, is %g", reference)
	case transform == dparetov1.Transform_TRANSFORM_LOGIT && !(reference >= 0 && reference <= 1):
		c.addf(field, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", reference)
	}
}

// bounds checks the bounds and the transform of a metric with METRIC_ROLE_CONSTRAINT.
func (c *metricCompiler) bounds(field string, m *dparetov1.MetricSpec) {
	transform := m.GetTransform()
	if _, known := dparetov1.Transform_name[int32(transform)]; !known {
		c.addf(field+".transform", "is unknown: %v", transform)
	}
	bounds := m.GetBounds()
	if bounds == nil || bounds.Min == nil && bounds.Max == nil {
		c.addf(field+".bounds", "at least one of min and max must be set")
		return
	}
	check := func(name string, bound float64) {
		switch at := field + ".bounds." + name; {
		case math.IsNaN(bound) || math.IsInf(bound, 0):
			c.addf(at, "must be finite, is %g", bound)
		case transform == dparetov1.Transform_TRANSFORM_LOG && bound <= 0:
			c.addf(at, "must be positive under TRANSFORM_LOG, is %g", bound)
		case transform == dparetov1.Transform_TRANSFORM_LOGIT && (bound < 0 || bound > 1):
			c.addf(at, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", bound)
		}
	}
	if bounds.Min != nil {
		check("min", bounds.GetMin())
	}
	if bounds.Max != nil {
		check("max", bounds.GetMax())
	}
	if bounds.Min != nil && bounds.Max != nil && bounds.GetMin() > bounds.GetMax() {
		c.addf(field+".bounds.max", "must be at least min (%g), is %g", bounds.GetMin(), bounds.GetMax())
	}
}

// computed compiles the function of a computed metric.
func (c *metricCompiler) computed(field string, source *dparetov1.ComputedSource) function {
	if t := source.GetReportTolerance(); !(t >= 0 && t <= 1) {
		c.addf(field+".report_tolerance", "must be in [0, 1], is %g", t)
	}
	switch f := source.GetFunction().(type) {
	case *dparetov1.ComputedSource_Expression:
		if c.environment == nil {
			return nil
		}
		n, err := c.environment.Number(f.Expression)
		if err != nil {
			c.addf(field+".expression", "%v", err)
			return nil
		}
		return formula{n}
	case *dparetov1.ComputedSource_Privacy:
		if c.environment == nil {
			return nil
		}
		if f := accounting.Compile(c.path+"."+field+".privacy", c.fields, c.environment, f.Privacy); f != nil {
			f.Limit(accounting.MaxWork)
			f.UpperOnly()
			return guarantee{f}
		}
		return nil
	default:
		c.addf(field+".function", "one of privacy and expression must be set")
		return nil
	}
}
