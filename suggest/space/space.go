package space

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// Point is a configuration: one coordinate per parameter of its [Space], in
// order and in the parameter's own unit. A category is its index in Choices. Two
// points in canonical form (see [Condition]) are the same configuration if and
// only if they are equal.
type Point []float64

// Equal reports whether p and q have the same coordinates.
func (p Point) Equal(q Point) bool { return slices.Equal(p, q) }

// Clone returns a copy of p.
func (p Point) Clone() Point { return slices.Clone(p) }

// Space is an ordered list of parameters. It must hold at least one, and pass
// [Space.Validate] before any other method is used.
type Space struct {
	Parameters []Parameter
}

// Validate returns nil or a [FieldErrors] with every violation found. Fields
// are named like "parameters[2].max" and "parameters[0].design.rate".
func (s *Space) Validate() error {
	var errs FieldErrors
	if len(s.Parameters) == 0 {
		errs.Add("parameters", "must not be empty")
	}
	seen := make(map[string]bool, len(s.Parameters))
	for i := range s.Parameters {
		p := &s.Parameters[i]
		prefix := fmt.Sprintf("parameters[%d]", i)
		p.validate(prefix, &errs)
		if p.Name != "" && seen[p.Name] {
			errs.Add(prefix+".name", fmt.Sprintf("%q occurs twice", p.Name))
		}
		seen[p.Name] = true
	}
	s.validateConditions(&errs)
	return errs.Err()
}

// Contains returns nil if p is a canonical point of the space, else a
// [FieldErrors] with every coordinate at fault, named like "parameters[2]".
func (s *Space) Contains(p Point) error {
	var errs FieldErrors
	if len(p) != len(s.Parameters) {
		errs.Add("parameters", fmt.Sprintf("must have %d values, has %d", len(s.Parameters), len(p)))
		return errs
	}
	for i, v := range p {
		q := &s.Parameters[i]
		add := func(format string, args ...any) {
			errs.Add(fmt.Sprintf("parameters[%d]", i), fmt.Sprintf(format, args...))
		}
		switch {
		case !s.Active(p, i):
			if v != q.smallest() {
				add("must be %g where parameter %q does not exist, is %g", q.smallest(), q.Name, v)
			}
		case !q.Contains(v):
			add("%g is not a value of %s parameter %q%s", v, q.Kind, q.Name, q.domain())
		}
	}
	return errs.Err()
}

// checkLength panics unless p has one coordinate per parameter.
func (s *Space) checkLength(p Point) {
	if len(p) != len(s.Parameters) {
		panic("space: point and space differ in length")
	}
}

// domain describes the values for a message.
func (p *Parameter) domain() string {
	switch p.Kind {
	case Double, Integer:
		return fmt.Sprintf(" in [%g, %g]", p.Min, p.Max)
	case Discrete:
		return fmt.Sprintf(" in %v", p.Values)
	case Categorical:
		return fmt.Sprintf(" with %d choices", len(p.Choices))
	default:
		return ""
	}
}

// Dim returns the dimension of encoded points: one coordinate per numerical
// parameter and one per choice of a categorical one.
func (s *Space) Dim() int {
	dim := 0
	for i := range s.Parameters {
		dim += s.Parameters[i].width()
	}
	return dim
}

// width returns the number of encoded coordinates of the parameter.
func (p *Parameter) width() int {
	if p.Kind == Categorical {
		return len(p.Choices)
	}
	return 1
}

// Cardinality returns the number of canonical points, +Inf if a Double can vary.
func (s *Space) Cardinality() float64 {
	n := 1.0
	for i := range s.Parameters {
		if s.Parameters[i].Condition == nil {
			n *= s.cardinality(i)
		}
	}
	return n
}

// Encode appends the position of p in [0, 1]^Dim to dst[:0] and returns it:
// numerical parameters by their position on their scale, categorical ones
// one-hot. Points outside the bounds are encoded outside the cube.
//
// Parameters that do not exist at p, whatever their coordinates, are encoded in
// the middle: 1/2, or 1/k in each of k categories. So they add nothing to the
// distance of two points at which they do not exist. Encode panics if p has the
// wrong length.
func (s *Space) Encode(dst []float64, p Point) []float64 {
	s.checkLength(p)
	dst = slices.Grow(dst[:0], s.Dim())
	for i, v := range p {
		q := &s.Parameters[i]
		active := s.Active(p, i)
		switch {
		case q.Kind == Categorical:
			for c := range q.Choices {
				dst = append(dst, oneHot(active, float64(c) == v, len(q.Choices)))
			}
		case active:
			dst = append(dst, q.Unit(v))
		default:
			dst = append(dst, 0.5)
		}
	}
	return dst
}

// oneHot is the encoded coordinate of one of k categories.
func oneHot(active, chosen bool, k int) float64 {
	switch {
	case !active:
		return 1 / float64(k)
	case chosen:
		return 1
	default:
		return 0
	}
}

// Decode returns the point at u in [0, 1]^Dim, in canonical form: coordinates
// are clamped to the cube, integers and discretes take the value nearest on their
// scale, and a category is the largest of its coordinates, the first among
// equals.
//
// Decode(Encode(p)) is Canonical(p): exactly for discretes, categories, bounds, and
// integers in ranges of at most 2^50 (2^40 on a log scale), within a few
// units in the last place otherwise. It panics if u has the wrong length.
func (s *Space) Decode(u []float64) Point {
	if len(u) != s.Dim() {
		panic("space: encoded point has the wrong dimension")
	}
	p := make(Point, len(s.Parameters))
	for i := range s.Parameters {
		q := &s.Parameters[i]
		w := q.width()
		if q.Kind == Categorical {
			best := 0
			for c := 1; c < w; c++ {
				if u[c] > u[best] || math.IsNaN(u[best]) {
					best = c
				}
			}
			p[i] = float64(best)
		} else {
			p[i] = q.At(u[0])
		}
		u = u[w:]
	}
	return s.Canonical(p)
}

// Quantile returns the point, in canonical form, at the cumulative probabilities
// u, one in (0, 1) per parameter, of the parameters' design distributions. Independent
// uniform u give independent draws, a low-discrepancy sequence gives a quasi-random design.
// It panics if u has the wrong length.
func (s *Space) Quantile(u []float64) Point {
	if len(u) != len(s.Parameters) {
		panic("space: probabilities and space differ in length")
	}
	p := make(Point, len(u))
	for i := range u {
		p[i] = s.Parameters[i].Quantile(u[i])
	}
	return s.Canonical(p)
}

// Sample draws one point from the design distributions, independently for each
// parameter and with exactly one draw of rng for each, and returns it in canonical
// form.
func (s *Space) Sample(rng *rand.Rand) Point {
	p := make(Point, len(s.Parameters))
	for i := range p {
		// 2^53 equally likely numbers strictly between 0 and 1.
		u := (float64(rng.Uint64()>>11) + 0.5) / (1 << 53)
		p[i] = s.Parameters[i].Quantile(u)
	}
	return s.Canonical(p)
}
