package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/restrict"
	"github.com/dpareto/dpareto/suggest/space"
)

// Condition converts a condition on suggestions. It refuses unknown or mistyped parameters,
// values outside of their domains, parameters that do not exist where the others are fixed,
// and bounds on metrics that are not computed. It also refuses a condition that fixes every
// parameter of a configuration that it excludes. Field paths begin with path, for example
// "conditions[0]".
func (s *Study) Condition(path string, asked *dparetov1.SuggestionCondition) (restrict.Condition, error) {
	var fields invalid.Fields
	condition := restrict.Condition{Fixed: make(map[int]float64)}
	s.fix(path, asked, &condition, &fields)
	for _, id := range slices.Sorted(maps.Keys(asked.GetAtMost())) {
		field, bound := fmt.Sprintf("%s.at_most[%q]", path, id), asked.GetAtMost()[id]
		i := s.Metrics.index(id)
		switch {
		case i < 0:
			fields.Addf(field, "is not a metric of the study")
		case s.Metrics.all[i].computed == nil:
			fields.Addf(field, "must be a computed metric: others are known only after the run")
		default:
			s.Metrics.CheckBound(&fields, field, id, bound)
			condition.AtMost = append(condition.AtMost, s.limit(i, bound))
		}
	}
	if err := fields.Err(); err != nil {
		return restrict.Condition{}, err
	}
	if point, ok := s.fixedPoint(condition.Fixed); ok {
		if err := s.Points.CheckAllowed(path+".fixed_parameters", point); err != nil {
			return restrict.Condition{}, err
		}
		if !condition.Holds(point) {
			return restrict.Condition{}, invalid.Field(path+".at_most", "is exceeded at the only configuration that fixed_parameters allow")
		}
	}
	return condition, nil
}

// CheckBound adds a violation if a bound on a metric of the study is not finite, not positive for an ε, or not in
// [0, 1] for a fraction: no run has such a value.
func (m *Metrics) CheckBound(fields *invalid.Fields, field, id string, bound float64) {
	switch spec := m.all[m.index(id)].spec; {
	case spec.GetComputed().GetPrivacy() != nil:
		fields.CheckPositive(field, bound)
	case math.IsNaN(bound) || math.IsInf(bound, 0):
		fields.Addf(field, "must be finite, is %g", bound)
	case spec.GetTransform() == dparetov1.Transform_TRANSFORM_LOGIT && (bound < 0 || bound > 1):
		fields.Addf(field, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", bound)
	}
}

// fix converts the fixed parameters of a condition.
func (s *Study) fix(path string, asked *dparetov1.SuggestionCondition, condition *restrict.Condition, fields *invalid.Fields) {
	at := func(id string) string { return fmt.Sprintf("%s.fixed_parameters[%q]", path, id) }
	for _, id := range slices.Sorted(maps.Keys(asked.GetFixedParameters())) {
		i, ok := s.Points.index[id]
		if !ok {
			fields.Addf(at(id), "is not a parameter of the study")
			continue
		}
		p := &s.Points.space.Parameters[i]
		x, message := inDomain(p, asked.GetFixedParameters()[id])
		if message != "" {
			fields.Addf(at(id), "%s", message)
			continue
		}
		condition.Fixed[i] = x
	}
	if !fields.Empty() {
		return
	}
	for _, i := range slices.Sorted(maps.Keys(condition.Fixed)) {
		required := s.Points.space.Parameters[i].Condition
		if required == nil {
			continue
		}
		if parent, ok := condition.Fixed[required.Parent]; !ok || !slices.Contains(required.Values, parent) {
			fields.Addf(at(s.Points.space.Parameters[i].Name), "exists only where %s: also fix its parent", s.Points.requirement(i))
		}
	}
}

// fixedPoint returns the only configuration with the fixed values, false if there are several.
func (s *Study) fixedPoint(fixed map[int]float64) (space.Point, bool) {
	point := make(space.Point, len(s.Points.space.Parameters))
	for i, x := range fixed {
		point[i] = x
	}
	for i := range point {
		if _, ok := fixed[i]; !ok && s.Points.space.Active(point, i) {
			return nil, false
		}
	}
	return s.Points.space.Canonical(point), true
}

// limit returns the upper bound of a computed metric.
func (s *Study) limit(i int, bound float64) restrict.Limit {
	m := &s.Metrics.all[i]
	l := restrict.Limit{
		Objective: slices.Index(s.Metrics.objectives, i),
		Upper:     bound,
		Known:     s.Metrics.known(i, number),
	}
	switch {
	case l.Objective >= 0:
		l.Search = m.rounded
	case bound > 0 && !math.IsInf(bound, 1):
		_, l.Search = m.computed.search(s.Points, bound)
	default: // nothing to interpolate
	}
	return l
}
