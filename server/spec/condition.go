package spec

import (
	"fmt"
	"iter"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/space"
)

// conditions compiles the conditions of the parameters into s. What they must satisfy
// as conditions of a space is checked by space.Space.Validate.
func (c *compiler) conditions(spec *dparetov1.StudySpec, s *space.Space) {
	index := make(map[string]int)
	for i, p := range spec.GetParameters() {
		index[p.GetId()] = i
	}
	listed := 0
	for i, p := range spec.GetParameters() {
		condition := p.GetCondition()
		if condition == nil {
			continue
		}
		field := fmt.Sprintf("parameters[%d].condition", i)
		parent, ok := index[condition.GetParent()]
		if !ok {
			c.addf(field+".parent", "%q is not a parameter", condition.GetParent())
			continue
		}
		if listed += len(condition.GetValues()); listed > maxValues {
			c.addf(field+".values", "bring the values in conditions to %d, of at most %d", listed, maxValues)
			return
		}
		s.Parameters[i].Condition = &space.Condition{
			Parent: parent,
			Values: c.conditionValues(field, condition.GetValues(), &s.Parameters[parent]),
		}
	}
}

// conditionValues converts the values of a parent. Those of a parent of no kind, which
// is a violation elsewhere, are passed over.
func (c *compiler) conditionValues(field string, values []*dparetov1.Value, parent *space.Parameter) []float64 {
	if parent.Kind == 0 || parent.Kind == space.Double {
		return nil
	}
	converted := make([]float64, len(values))
	for k, value := range values {
		x, message := coordinate(parent, value)
		if message != "" {
			c.addf(fmt.Sprintf("%s.values[%d]", field, k), "%s", message)
		}
		converted[k] = x
	}
	return converted
}

// isKnown reports whether a point tells of parameter i whether it exists: whether
// every parameter above it has a value, or is known not to exist.
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

// requirement says in words when a parameter with a condition exists.
func (s *Study) requirement(i int) string {
	condition := s.Spec.GetParameters()[i].GetCondition()
	values := make([]string, len(condition.GetValues()))
	for k, value := range condition.GetValues() {
		values[k] = fmt.Sprint(plain(value))
	}
	if len(values) == 1 {
		return fmt.Sprintf("%s = %s", condition.GetParent(), values[0])
	}
	return fmt.Sprintf("%s is one of %s", condition.GetParent(), strings.Join(values, ", "))
}

// branches yields a configuration for every combination of conditions that can hold
// together, as far as maxBranches goes.
func (s *Study) branches() iter.Seq[space.Point] {
	return func(yield func(space.Point) bool) {
		n := 0
		for point := range s.Problem.Space.Branches() {
			if n == maxBranches || !yield(point) {
				return
			}
			n++
		}
	}
}

// corners returns the centre, the lowest and the highest corner of the branch of a
// configuration: parents of others keep their values, and other categorical
// parameters the first category.
func (s *Study) corners(branch space.Point) []space.Point {
	searchSpace := s.Problem.Space
	corners := make([]space.Point, 0, 3)
	for _, u := range []float64{0.5, 0, 1} {
		point := branch.Clone()
		for i := range searchSpace.Parameters {
			p := &searchSpace.Parameters[i]
			if p.Kind != space.Categorical && !searchSpace.IsParent(i) {
				point[i] = p.At(u)
			}
		}
		corners = append(corners, searchSpace.Canonical(point))
	}
	return corners
}

// choices describes the parents of a branch, for a message.
func (s *Study) choices(branch space.Point) string {
	searchSpace := s.Problem.Space
	values := s.Values(branch)
	var parts []string
	for i, p := range searchSpace.Parameters {
		if value, ok := values[p.Name]; ok && searchSpace.IsParent(i) {
			parts = append(parts, fmt.Sprintf("%s = %v", p.Name, plain(value)))
		}
	}
	return strings.Join(parts, ", ")
}
