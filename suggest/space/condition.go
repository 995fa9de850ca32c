package space

import (
	"fmt"
	"iter"
	"slices"
)

// Condition says when a [Parameter] exists: where its parent exists and has one
// of the given values. Parents may be conditional themselves, and come in any
// order, but no parameter may be below itself.
//
// Where a parameter does not exist its coordinate has no meaning. So that equal
// configurations are equal points, it is then the parameter's smallest value or
// first category: a point with that property is canonical (see
// [Space.Canonical]).
type Condition struct {
	// Parent is the index in the space of an Integer, Discrete or Categorical.
	Parent int

	// Values are coordinates of the parent: at least one, all different.
	Values []float64
}

// Active reports whether parameter j exists at p, canonical or not. It panics if
// p has the wrong length.
func (s *Space) Active(p Point, j int) bool {
	s.checkLength(p)
	for c := s.Parameters[j].Condition; c != nil; c = s.Parameters[c.Parent].Condition {
		if !slices.Contains(c.Values, p[c.Parent]) {
			return false
		}
	}
	return true
}

// Canonical gives fixed parameters their value, and those that do not exist at p their
// smallest value or first category, in place, and returns p. It panics if p has the wrong
// length.
func (s *Space) Canonical(p Point) Point {
	s.checkLength(p)
	for j := range p {
		if fixed := s.Parameters[j].Fixed; fixed != nil {
			p[j] = *fixed
		}
	}
	for j := range p { // what is set here decides on no other parameter
		if !s.Active(p, j) {
			p[j] = s.Parameters[j].smallest()
		}
	}
	return p
}

// smallest returns the smallest value or the first category.
func (p *Parameter) smallest() float64 {
	if p.Kind == Categorical {
		return 0
	}
	lo, _ := p.bounds()
	return lo
}

// Order returns the indices of all parameters, parents before their children and
// otherwise in order.
func (s *Space) Order() []int {
	order := make([]int, 0, len(s.Parameters))
	placed := make([]bool, len(s.Parameters))
	var place func(j int)
	place = func(j int) {
		if placed[j] {
			return
		}
		if c := s.Parameters[j].Condition; c != nil {
			place(c.Parent)
		}
		placed[j] = true
		order = append(order, j)
	}
	for j := range s.Parameters {
		place(j)
	}
	return order
}

// Product yields every different point, in canonical form, whose parameters take
// the values value(j, i), 0 <= i < counts[j], where they exist. The last
// parameter in the order of [Space.Order] changes fastest.
func (s *Space) Product(counts []float64, value func(j, i int) float64) iter.Seq[Point] {
	order := s.Order()
	return func(yield func(Point) bool) {
		digits := make([]int, len(counts))
		p := make(Point, len(counts))
		for {
			for j, i := range digits {
				p[j] = value(j, i)
			}
			if !yield(s.Canonical(p.Clone())) {
				return
			}
			k := len(order) - 1
			for ; k >= 0; k-- {
				// A parameter that does not exist has one value. Whether it does is
				// up to parameters before it, which this step leaves alone.
				j := order[k]
				if digits[j]++; float64(digits[j]) < counts[j] && s.Active(p, j) {
					break
				}
				digits[j] = 0
			}
			if k < 0 {
				return
			}
		}
	}
}

// Branches yields a canonical point for every combination of conditions that can
// hold together: one in all for a space without conditions. Parents have the
// smallest of the values that give the combination, other parameters their
// smallest value or first category.
func (s *Space) Branches() iter.Seq[Point] {
	values := make([][]float64, len(s.Parameters))
	counts := make([]float64, len(s.Parameters))
	for j := range values {
		values[j] = s.decisive(j)
		counts[j] = float64(len(values[j]))
	}
	return s.Product(counts, func(j, i int) float64 { return values[j][i] })
}

// decisive returns one value of parameter j for every set of its children that
// can exist together, in increasing order.
func (s *Space) decisive(j int) []float64 {
	children := s.children(j)
	if len(children) == 0 {
		return []float64{s.Parameters[j].smallest()}
	}
	var values []float64
	seen := make(map[string]bool)
	consider := func(v float64) {
		set := make([]byte, len(children))
		for i, c := range children {
			if slices.Contains(s.Parameters[c].Condition.Values, v) {
				set[i] = 1
			}
		}
		if !seen[string(set)] {
			seen[string(set)] = true
			values = append(values, v)
		}
	}
	listed := s.listed(children)
	for _, v := range listed {
		consider(v)
	}
	// The first value that no condition lists is among the first len(listed) + 1.
	p := &s.Parameters[j]
	for i := range int(min(p.Count(), float64(len(listed)+1))) {
		if v := p.Value(i); !slices.Contains(listed, v) {
			consider(v)
			break
		}
	}
	slices.Sort(values)
	return values
}

// children returns the parameters whose parent is j.
func (s *Space) children(j int) []int {
	var children []int
	for i := range s.Parameters {
		if c := s.Parameters[i].Condition; c != nil && c.Parent == j {
			children = append(children, i)
		}
	}
	return children
}

// IsParent reports whether a parameter has a condition on parameter j.
func (s *Space) IsParent(j int) bool { return len(s.children(j)) > 0 }

// listed returns the values in the conditions of the given parameters, sorted.
func (s *Space) listed(parameters []int) []float64 {
	var values []float64
	for _, j := range parameters {
		values = append(values, s.Parameters[j].Condition.Values...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

// cardinality returns the number of canonical points of parameter j, where it
// exists, and of all parameters below it.
func (s *Space) cardinality(j int) float64 {
	children := s.children(j)
	below := make([]float64, len(children))
	for i, c := range children {
		below[i] = s.cardinality(c)
	}
	if fixed := s.Parameters[j].Fixed; fixed != nil {
		points := 1.0
		for i, c := range children {
			if slices.Contains(s.Parameters[c].Condition.Values, *fixed) {
				points *= below[i]
			}
		}
		return points
	}
	listed := s.listed(children)
	n := s.Parameters[j].Count() - float64(len(listed)) // no child exists
	for _, v := range listed {
		points := 1.0
		for i, c := range children {
			if slices.Contains(s.Parameters[c].Condition.Values, v) {
				points *= below[i]
			}
		}
		n += points
	}
	return n
}

// validateConditions appends the violations of conditions.
func (s *Space) validateConditions(errs *FieldErrors) {
	for j := range s.Parameters {
		c := s.Parameters[j].Condition
		if c == nil {
			continue
		}
		field := fmt.Sprintf("parameters[%d].condition", j)
		if c.Parent < 0 || c.Parent >= len(s.Parameters) {
			errs.Add(field+".parent", fmt.Sprintf("%d is not the index of a parameter", c.Parent))
			continue
		}
		parent := &s.Parameters[c.Parent]
		switch {
		case parent.Kind == Double:
			errs.Add(field+".parent", fmt.Sprintf("%q must be integer, discrete or categorical, is double", parent.Name))
			continue
		case s.isBelowItself(j):
			errs.Add(field+".parent", fmt.Sprintf("%q is below %q itself", parent.Name, s.Parameters[j].Name))
			continue
		}
		if len(c.Values) == 0 {
			errs.Add(field+".values", "must not be empty")
		}
		for i, v := range c.Values {
			at := fmt.Sprintf("%s.values[%d]", field, i)
			if !parent.inDomain(v) {
				errs.Add(at, fmt.Sprintf("%g is not a value of %s parameter %q%s", v, parent.Kind, parent.Name, parent.domain()))
			} else if slices.Index(c.Values, v) < i {
				errs.Add(at, fmt.Sprintf("%g occurs twice", v))
			}
		}
	}
}

// isBelowItself reports whether the parents of j lead back to it. Parents that
// are not parameters end the way.
func (s *Space) isBelowItself(j int) bool {
	at := j
	for range s.Parameters {
		c := s.Parameters[at].Condition
		if c == nil || c.Parent < 0 || c.Parent >= len(s.Parameters) {
			return false
		}
		if at = c.Parent; at == j {
			return true
		}
	}
	return false
}
