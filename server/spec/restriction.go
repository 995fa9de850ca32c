package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Condition converts a condition on suggestions. It refuses what the study does not have:
// unknown or mistyped parameters, values outside of their domains, parameters that do not
// exist where the others are fixed, and bounds on metrics that are not computed; and a
// condition that fixes every parameter of a configuration that it excludes. Field paths
// begin with path, for example "conditions[0]".
func (s *Study) Condition(path string, c *dparetov1.SuggestionCondition) (suggest.Condition, error) {
	var fields invalid.Fields
	condition := suggest.Condition{Fixed: make(map[int]float64)}
	s.fix(path, c, &condition, &fields)
	for _, id := range slices.Sorted(maps.Keys(c.GetAtMost())) {
		field, bound := fmt.Sprintf("%s.at_most[%q]", path, id), c.GetAtMost()[id]
		i := slices.IndexFunc(s.metrics, func(m metric) bool { return m.spec.GetId() == id })
		switch {
		case i < 0:
			fields.Addf(field, "is not a metric of the study")
		case s.metrics[i].computed == nil:
			fields.Addf(field, "must be a computed metric: others are known only after the run")
		case math.IsNaN(bound) || math.IsInf(bound, 0):
			fields.Addf(field, "must be finite, is %g", bound)
		default:
			condition.AtMost = append(condition.AtMost, s.limit(i, bound))
		}
	}
	if err := fields.Err(); err != nil {
		return suggest.Condition{}, err
	}
	if point, ok := s.fixedPoint(condition.Fixed); ok {
		if err := s.CheckAllowed(path+".fixed_parameters", point); err != nil {
			return suggest.Condition{}, err
		}
		if !condition.Holds(point) {
			return suggest.Condition{}, invalid.Field(path+".at_most", "is exceeded by the only configuration that fixed_parameters leave")
		}
	}
	return condition, nil
}

// fix converts the fixed parameters of a condition.
func (s *Study) fix(path string, c *dparetov1.SuggestionCondition, condition *suggest.Condition, fields *invalid.Fields) {
	at := func(id string) string { return fmt.Sprintf("%s.fixed_parameters[%q]", path, id) }
	for _, id := range slices.Sorted(maps.Keys(c.GetFixedParameters())) {
		i, ok := s.parameters[id]
		if !ok {
			fields.Addf(at(id), "is not a parameter of the study")
			continue
		}
		p := &s.Problem.Space.Parameters[i]
		x, message := coordinate(p, c.GetFixedParameters()[id])
		if message == "" && !p.Contains(x) {
			message = fmt.Sprintf("%v is not in the parameter's domain", plain(c.GetFixedParameters()[id]))
		}
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
		c := s.Problem.Space.Parameters[i].Condition
		if c == nil {
			continue
		}
		if parent, ok := condition.Fixed[c.Parent]; !ok || !slices.Contains(c.Values, parent) {
			fields.Addf(at(s.Problem.Space.Parameters[i].Name), "exists only where %s: fix that, too", s.requirement(i))
		}
	}
}

// fixedPoint returns the configuration that fixed values leave, false if there are
// several.
func (s *Study) fixedPoint(fixed map[int]float64) (space.Point, bool) {
	point := make(space.Point, len(s.Problem.Space.Parameters))
	for i, x := range fixed {
		point[i] = x
	}
	for i := range point {
		if _, ok := fixed[i]; !ok && s.Problem.Space.Active(point, i) {
			return nil, false
		}
	}
	return s.Problem.Space.Canonical(point), true
}

// limit returns the upper bound of a computed metric.
func (s *Study) limit(i int, bound float64) suggest.Limit {
	m := &s.metrics[i]
	l := suggest.Limit{
		Objective: slices.Index(s.objectives, i),
		Upper:     bound,
		Known:     func(point space.Point) float64 { return number(m.computed.value(s.variables(point))) },
	}
	switch {
	case l.Objective >= 0:
		l.Search = m.rounded
	case bound > 0 && !math.IsInf(bound, 1):
		_, l.Search = m.computed.search(s, bound)
	default: // nothing to interpolate
	}
	return l
}
