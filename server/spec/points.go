package spec

import (
	"fmt"
	"maps"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Points converts between messages, values for expressions and points of the search space, and
// says which points the known constraints allow.
type Points struct {
	space       *space.Space
	index       map[string]int // of a parameter, by its id
	checkpoint  int            // index of the checkpoint parameter, -1 without
	constraints []constraint
}

func newPoints(s *space.Space) *Points {
	p := &Points{space: s, index: make(map[string]int), checkpoint: -1}
	for i := range s.Parameters {
		p.index[s.Parameters[i].Name] = i
	}
	return p
}

// Parse converts the parameters of a trial to a canonical point. It refuses missing,
// unknown, mistyped and out-of-range values, and values of parameters that do not exist at
// the point. Field paths begin with path, for example "trial.parameters".
func (p *Points) Parse(path string, values map[string]*dparetov1.Value) (space.Point, error) {
	var fields invalid.Fields
	point := make(space.Point, len(p.space.Parameters))
	given := make([]bool, len(point)) // with a value of the domain
	for _, i := range p.space.Order() {
		parameter := &p.space.Parameters[i]
		field := fmt.Sprintf("%s[%q]", path, parameter.Name)
		value, ok := values[parameter.Name]
		if ok {
			x, message := inDomain(parameter, value)
			if message != "" {
				fields.Addf(field, "%s", message)
			}
			point[i], given[i] = x, message == ""
		}
		if !isKnown(p.space, i, given, point) {
			continue // the fault lies with a parameter above
		}
		switch exists := p.space.Active(point, i); {
		case exists && !ok && parameter.Condition == nil:
			fields.Addf(field, "must be set")
		case exists && !ok:
			fields.Addf(field, "must be set where %s", p.requirement(i))
		case !exists && ok:
			fields.Addf(field, "must not be set: it exists only where %s", p.requirement(i))
		}
	}
	for id := range values {
		if _, ok := p.index[id]; !ok {
			fields.Addf(fmt.Sprintf("%s[%q]", path, id), "is not a parameter of the study")
		}
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return p.space.Canonical(point), nil
}

// Complete returns the parameters of a trial, by id, with values of others that it lacks, as far as
// those exist at its configuration.
func (p *Points) Complete(parameters, others map[string]*dparetov1.Value) map[string]*dparetov1.Value {
	out := make(map[string]*dparetov1.Value)
	maps.Copy(out, parameters)
	point := make(space.Point, len(p.space.Parameters))
	given := make([]bool, len(point))
	for _, i := range p.space.Order() {
		parameter := &p.space.Parameters[i]
		value, ok := out[parameter.Name]
		if !ok {
			if value, ok = others[parameter.Name]; !ok || !isKnown(p.space, i, given, point) || !p.space.Active(point, i) {
				continue
			}
			out[parameter.Name] = value
		}
		x, message := inDomain(parameter, value)
		point[i], given[i] = x, message == ""
	}
	return out
}

// isKnown reports whether it is known if parameter i exists at a point: every parameter above
// it has a value, or is known not to exist.
func isKnown(s *space.Space, i int, given []bool, point space.Point) bool {
	c := s.Parameters[i].Condition
	if c == nil {
		return true
	}
	if !isKnown(s, c.Parent, given, point) {
		return false
	}
	return given[c.Parent] || !s.Active(point, c.Parent)
}

// Values is the inverse of Parse.
func (p *Points) Values(point space.Point) map[string]*dparetov1.Value {
	values := make(map[string]*dparetov1.Value, len(point))
	for i := range p.space.Parameters {
		if !p.space.Active(point, i) {
			continue
		}
		value := new(dparetov1.Value)
		switch x := native(&p.space.Parameters[i], point[i]).(type) {
		case int64:
			value.Kind = &dparetov1.Value_IntValue{IntValue: x}
		case string:
			value.Kind = &dparetov1.Value_StringValue{StringValue: x}
		case float64:
			value.Kind = &dparetov1.Value_DoubleValue{DoubleValue: x}
		}
		values[p.space.Parameters[i].Name] = value
	}
	return values
}

// Variables returns the values at a point for expressions, as int64, float64 or string.
// Parameters that do not exist there have none.
func (p *Points) Variables(point space.Point) map[string]any {
	values := make(map[string]any, len(point))
	for i := range p.space.Parameters {
		if p.space.Active(point, i) {
			values[p.space.Parameters[i].Name] = native(&p.space.Parameters[i], point[i])
		}
	}
	return values
}

// VariablesOf returns values of some parameters for expressions. It adds a violation for each that is not in
// its parameter's domain, and returns false then. Field paths begin with path.
func (p *Points) VariablesOf(fields *invalid.Fields, path string, values map[string]*dparetov1.Value) (variables map[string]any, ok bool) {
	before := fields.Len()
	variables = make(map[string]any)
	for _, id := range slices.Sorted(maps.Keys(values)) {
		at := fmt.Sprintf("%s[%q]", path, id)
		i, known := p.index[id]
		if !known {
			fields.Addf(at, "is not a parameter of the study")
			continue
		}
		x, message := inDomain(&p.space.Parameters[i], values[id])
		if message != "" {
			fields.Addf(at, "%s", message)
			continue
		}
		variables[id] = native(&p.space.Parameters[i], x)
	}
	return variables, fields.Len() == before
}

// named is Variables for expressions as functions.
func (p *Points) named(values []float64) map[string]any { return p.Variables(values) }

// Checkpoints reports whether a measurement before the end of a run evaluates the same
// configuration with a smaller checkpoint parameter.
func (p *Points) Checkpoints() bool { return p.checkpoint >= 0 }

// At returns the configuration that a measurement at step evaluates: the point with
// the checkpoint parameter set to step. Step 0 and studies without checkpoints give
// the point itself.
func (p *Points) At(point space.Point, step int64) space.Point {
	if p.checkpoint < 0 || step == 0 {
		return point
	}
	at := point.Clone()
	at[p.checkpoint] = float64(step)
	return at
}

// LastStep returns the step at the end of a run: the value of the checkpoint
// parameter, or 0 for studies without one.
func (p *Points) LastStep(point space.Point) int64 {
	if p.checkpoint < 0 {
		return 0
	}
	return int64(point[p.checkpoint])
}

// native returns a coordinate as expressions and people write it.
func native(p *space.Parameter, x float64) any {
	switch p.Kind {
	case space.Integer:
		return int64(x)
	case space.Categorical:
		return p.Choices[int(x)]
	default:
		return x
	}
}

// inDomain converts a value of a parameter, or returns a message that says why it cannot. The last digit
// of a number may have been lost in a program or a file: see nearest.
func inDomain(p *space.Parameter, value *dparetov1.Value) (x float64, message string) {
	x, message = coordinate(p, value)
	if message == "" {
		x = nearest(p, x)
	}
	if message == "" && !p.Contains(x) {
		domain := fmt.Sprintf("from %v to %v", p.Min, p.Max)
		if p.Kind == space.Discrete {
			domain = fmt.Sprint(p.Values)
		}
		message = fmt.Sprintf("%v is not in the parameter's domain, %s", plain(value), domain)
	}
	return x, message
}

// nearest returns the value of the domain that a number of a double or discrete parameter misses by one
// unit in the last place, or the number.
func nearest(p *space.Parameter, x float64) float64 {
	var values []float64
	switch p.Kind {
	case space.Double:
		if x < p.Min || x > p.Max {
			values = []float64{p.Min, p.Max}
		}
	case space.Discrete:
		values = p.Values
	case space.Integer, space.Categorical:
	}
	for _, v := range values {
		if math.Nextafter(x, v) == v {
			return v
		}
	}
	return x
}

// coordinate is inDomain for any value of the parameter's type.
func coordinate(p *space.Parameter, value *dparetov1.Value) (x float64, message string) {
	switch p.Kind {
	case space.Double, space.Discrete:
		v, ok := value.GetKind().(*dparetov1.Value_DoubleValue)
		if !ok {
			return 0, fmt.Sprintf("must have a double_value for a %s parameter", p.Kind)
		}
		return v.DoubleValue, ""
	case space.Integer:
		v, ok := value.GetKind().(*dparetov1.Value_IntValue)
		if !ok {
			return 0, "must have an int_value for an integer parameter"
		}
		if v.IntValue < -maxInteger || v.IntValue > maxInteger {
			return 0, fmt.Sprintf("must be in [-2^53, 2^53], is %d", v.IntValue)
		}
		return float64(v.IntValue), ""
	case space.Categorical:
		v, ok := value.GetKind().(*dparetov1.Value_StringValue)
		if !ok {
			return 0, "must have a string_value for a categorical parameter"
		}
		i := slices.Index(p.Choices, v.StringValue)
		if i < 0 {
			return 0, fmt.Sprintf("%q is not a category of the parameter", v.StringValue)
		}
		return float64(i), ""
	default:
		panic("spec: parameter without a kind")
	}
}

// plain returns a value as people write it.
func plain(value *dparetov1.Value) any {
	switch v := value.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return v.DoubleValue
	case *dparetov1.Value_IntValue:
		return v.IntValue
	case *dparetov1.Value_StringValue:
		return v.StringValue
	default:
		return nil
	}
}
