package space

import (
	"fmt"
	"math"
	"slices"
)

// Kind is the type of a parameter's values.
type Kind int

// The kinds of parameters. The zero Kind is none of them and is refused by
// [Space.Validate].
const (
	Double      Kind = iota + 1 // any real number in [Min, Max]
	Integer                     // any whole number in [Min, Max]
	Discrete                    // one of Values
	Categorical                 // one of Choices
)

// String returns the lower-case name of the kind.
func (k Kind) String() string {
	switch k {
	case Double:
		return "double"
	case Integer:
		return "integer"
	case Discrete:
		return "discrete"
	case Categorical:
		return "categorical"
	default:
		return fmt.Sprintf("Kind(%d)", int(k))
	}
}

// Scale is the axis on which a numerical parameter is measured by the
// surrogate, by grids and by the default design distribution.
type Scale int

// The scales.
const (
	Linear Scale = iota
	Log          // the logarithm of the value; all values must be positive
)

// String returns the lower-case name of the scale.
func (s Scale) String() string {
	switch s {
	case Linear:
		return "linear"
	case Log:
		return "log"
	default:
		return fmt.Sprintf("Scale(%d)", int(s))
	}
}

// DefaultLevels is the number of grid levels of a [Double] or [Integer]
// parameter whose Levels is 0.
const DefaultLevels = 3

// maxInteger is the largest magnitude at which every whole number is a float64.
const maxInteger = 1 << 53

// Parameter is one axis of a [Space].
type Parameter struct {
	// Name identifies the parameter. It must be unique and not empty.
	Name string
	Kind Kind

	// Min and Max are the inclusive bounds of a Double or Integer, finite,
	// Min <= Max. Integer bounds are whole numbers of magnitude at most 2^53.
	Min, Max float64

	// Values are the values of a Discrete: finite and strictly increasing.
	Values []float64

	// Choices are the names of a Categorical's categories: unique, not empty.
	Choices []string

	// Scale is the axis of a Double, Integer or Discrete. Linear by default.
	Scale Scale

	// Design is the distribution that designs draw a Double or Integer from. nil means
	// the default distribution, the only one for Discrete and Categorical: uniform on
	// the parameter's scale for a Double, equal mass on every value otherwise.
	Design Distribution

	// Levels is the number of values of a Double or Integer on a grid, spaced
	// evenly on Scale with both bounds included (one level is the middle).
	// 0 means [DefaultLevels]. Discrete and Categorical take all their values.
	Levels int

	// Condition says when the parameter exists. nil means always.
	Condition *Condition

	// Fixed, one of its values, is the only one that designs give the parameter where it
	// exists. Positions on the scale still refer to the whole range, so that points tried
	// with other values keep their places. nil leaves the parameter free.
	Fixed *float64
}

// Count returns the number of different values, +Inf for a Double that is not
// a constant.
func (p *Parameter) Count() float64 {
	if p.Fixed != nil {
		return 1
	}
	switch p.Kind {
	case Integer:
		return p.Max - p.Min + 1
	case Discrete:
		return float64(len(p.Values))
	case Categorical:
		return float64(len(p.Choices))
	default:
		if p.Min == p.Max {
			return 1
		}
		return math.Inf(1)
	}
}

// Value returns the i-th value of a parameter with a finite Count, in
// increasing order, 0 <= i < Count.
func (p *Parameter) Value(i int) float64 {
	if p.Fixed != nil {
		return *p.Fixed
	}
	switch p.Kind {
	case Discrete:
		return p.Values[i]
	case Categorical:
		return float64(i)
	default:
		return p.Min + float64(i)
	}
}

// Ends returns the values between which all others lie: all categories, or the smallest
// and the largest number.
func (p *Parameter) Ends() []float64 {
	if p.Kind != Categorical {
		return []float64{p.At(0), p.At(1)}
	}
	values := make([]float64, len(p.Choices))
	for i := range values {
		values[i] = float64(i)
	}
	return values
}

// GridValues returns the parameter's values on a grid in increasing order (see
// Levels). Integer levels are rounded half to even and those that coincide are
// merged.
func (p *Parameter) GridValues() []float64 {
	if p.Fixed != nil {
		return []float64{*p.Fixed}
	}
	levels := p.Levels
	if levels == 0 {
		levels = DefaultLevels
	}
	if p.Kind == Discrete || p.Kind == Categorical {
		levels = int(p.Count())
	} else if p.Count() < float64(levels) {
		levels = int(p.Count())
	}
	values := make([]float64, levels)
	for i := range values {
		switch {
		case p.Kind == Discrete, p.Kind == Categorical:
			values[i] = p.Value(i)
		case levels == 1:
			values[i] = p.At(0.5)
		case p.Kind == Integer && p.Scale == Linear:
			// Round half to even, as the published grids do: 1, 32, 64.
			values[i] = math.RoundToEven(p.Min + float64(i)*(p.Max-p.Min)/float64(levels-1))
		default:
			values[i] = p.At(float64(i) / float64(levels-1))
		}
	}
	return slices.Compact(values)
}

// bounds returns the smallest and largest value of a numerical parameter.
func (p *Parameter) bounds() (lo, hi float64) {
	if p.Kind == Discrete {
		return p.Values[0], p.Values[len(p.Values)-1]
	}
	return p.Min, p.Max
}

// Unit returns the position in [0, 1] of a numerical parameter's value on its
// scale: 0 at the smallest value and 1 at the largest. Values outside the
// bounds give positions outside [0, 1]; a constant gives 0. Unit panics for a
// Categorical.
func (p *Parameter) Unit(v float64) float64 {
	if p.Kind == Categorical {
		panic("space: a categorical parameter has no scale")
	}
	lo, hi := p.bounds()
	if lo == hi {
		return 0
	}
	if p.Scale == Log {
		return math.Log(v/lo) / math.Log(hi/lo)
	}
	return (v - lo) / (hi - lo)
}

// At returns the value at position t on the scale, the inverse of Unit: t is
// clamped to [0, 1] (NaN to 0) and the value of an Integer or Discrete is the
// one nearest on the scale. At panics for a Categorical.
func (p *Parameter) At(t float64) float64 {
	if p.Kind == Categorical {
		panic("space: a categorical parameter has no scale")
	}
	if p.Fixed != nil {
		return *p.Fixed
	}
	lo, hi := p.bounds()
	if !(t > 0) {
		return lo
	}
	if t >= 1 {
		return hi
	}
	var v float64
	if p.Scale == Log {
		v = lo * math.Exp(t*math.Log(hi/lo))
	} else {
		v = lo + t*(hi-lo)
	}
	switch p.Kind {
	case Integer:
		if p.Scale == Linear {
			v = math.RoundToEven(v)
			break
		}
		v = nearest(t, math.Floor(v), math.Floor(v)+1, p.Unit)
	case Discrete:
		i, exact := slices.BinarySearch(p.Values, v)
		if exact || i == 0 || i == len(p.Values) {
			i = min(i, len(p.Values)-1)
			return p.Values[i]
		}
		v = nearest(t, p.Values[i-1], p.Values[i], p.Unit)
	default:
	}
	return math.Min(math.Max(v, lo), hi)
}

// nearest returns the one of a < b whose position is nearer to t.
func nearest(t, a, b float64, unit func(float64) float64) float64 {
	if t-unit(a) <= unit(b)-t {
		return a
	}
	return b
}

// acceptRange returns the open interval on which the design distribution is conditioned.
func (p *Parameter) acceptRange() (lo, hi float64) {
	lo, hi = p.Design.accept()
	if lo == 0 && hi == 0 {
		return p.Min, p.Max
	}
	return lo, hi
}

// Quantile returns the value at cumulative probability u in (0, 1) of the
// parameter's design distribution: the inverse of its distribution function.
func (p *Parameter) Quantile(u float64) float64 {
	if p.Fixed != nil {
		return *p.Fixed
	}
	if p.Design != nil && p.Min < p.Max {
		lo, hi := p.acceptRange()
		v := strictlyInside(p.Design.quantile(u, lo, hi), lo, hi)
		if p.Kind == Integer {
			v = math.RoundToEven(v)
		}
		return v
	}
	if p.Kind == Double {
		return p.At(u)
	}
	n := p.Count()
	i := math.Min(math.Max(math.Floor(u*n), 0), n-1)
	if p.Kind == Integer {
		return p.Min + i
	}
	return p.Value(int(i))
}

// Contains reports whether v is a value of the parameter: the fixed one, if there is one.
func (p *Parameter) Contains(v float64) bool {
	if p.Fixed != nil {
		return v == *p.Fixed
	}
	return p.inDomain(v)
}

// inDomain reports whether v is a value of the parameter if it is not fixed.
func (p *Parameter) inDomain(v float64) bool {
	switch p.Kind {
	case Double:
		return v >= p.Min && v <= p.Max
	case Integer:
		return v >= p.Min && v <= p.Max && v == math.Trunc(v)
	case Discrete:
		return slices.Contains(p.Values, v)
	case Categorical:
		return v >= 0 && v < float64(len(p.Choices)) && v == math.Trunc(v)
	default:
		return false
	}
}

// validate appends the parameter's violations, prefix being its own path.
func (p *Parameter) validate(prefix string, errs *FieldErrors) {
	add := func(field, format string, args ...any) {
		errs.Add(prefix+"."+field, fmt.Sprintf(format, args...))
	}
	if p.Name == "" {
		add("name", "must not be empty")
	}
	switch p.Kind {
	case Double, Integer:
		p.validateRange(add)
	case Discrete:
		p.validateValues(add)
	case Categorical:
		p.validateChoices(add)
	default:
		add("kind", "must be double, integer, discrete or categorical")
		return
	}
	if p.Scale != Linear && p.Scale != Log {
		add("scale", "must be linear or log")
	}
	if p.Levels < 0 {
		add("levels", "must not be negative, is %d", p.Levels)
	}
	if p.Fixed != nil && !p.inDomain(*p.Fixed) {
		add("fixed", "%g is not a value of %s parameter %q%s", *p.Fixed, p.Kind, p.Name, p.domain())
	}
}

type adder func(field, format string, args ...any)

func (p *Parameter) validateRange(add adder) {
	ok := true
	for _, b := range []struct {
		field string
		value float64
	}{{"min", p.Min}, {"max", p.Max}} {
		switch {
		case !isFinite(b.value):
			add(b.field, "must be finite, is %g", b.value)
			ok = false
		case p.Kind == Integer && b.value != math.Trunc(b.value):
			add(b.field, "must be a whole number, is %g", b.value)
			ok = false
		case p.Kind == Integer && math.Abs(b.value) > maxInteger:
			add(b.field, "must have a magnitude of at most 2^53, is %g", b.value)
			ok = false
		}
	}
	if p.Min > p.Max {
		add("max", "must be at least min = %g, is %g", p.Min, p.Max)
		ok = false
	}
	if p.isTooWide(p.Min, p.Max) && isFinite(p.Min) && isFinite(p.Max) {
		add("max", "is too far from min for a float64")
		ok = false
	}
	if p.Scale == Log && p.Min <= 0 {
		add("min", "must be positive on a log scale, is %g", p.Min)
		ok = false
	}
	if p.Design == nil || !ok || p.Min == p.Max {
		return
	}
	lo, hi := p.acceptRange()
	if !isFinite(lo) || lo < p.Min {
		add("design.accept_min", "must be at least min = %g, is %g", p.Min, lo)
		ok = false
	}
	if !isFinite(hi) || hi > p.Max {
		add("design.accept_max", "must be at most max = %g, is %g", p.Max, hi)
		ok = false
	}
	if ok && !(math.Nextafter(lo, hi) < hi) {
		add("design.accept_max", "must be above accept_min = %g, is %g", lo, hi)
		ok = false
	}
	own := p.Design.check(lo, hi)
	for _, e := range own {
		add("design."+e.Field, "%s", e.Message)
	}
	if ok && len(own) == 0 {
		if mass := p.Design.mass(lo, hi); !(mass >= minAcceptedMass) {
			add("design", "gives the accepted range (%g, %g) a probability of only %.2g", lo, hi, mass)
		}
	}
}

// isTooWide reports whether positions between two values of the parameter overflow.
func (p *Parameter) isTooWide(lo, hi float64) bool {
	if p.Scale == Log {
		return lo > 0 && math.IsInf(hi/lo, 0)
	}
	return math.IsInf(hi-lo, 0)
}

func (p *Parameter) validateValues(add adder) {
	if len(p.Values) == 0 {
		add("values", "must not be empty")
	}
	for i, v := range p.Values {
		field := fmt.Sprintf("values[%d]", i)
		switch {
		case !isFinite(v):
			add(field, "must be finite, is %g", v)
		case i > 0 && v <= p.Values[i-1]:
			add(field, "must be above the value before it, %g, is %g", p.Values[i-1], v)
		case p.Scale == Log && v <= 0:
			add(field, "must be positive on a log scale, is %g", v)
		case p.isTooWide(p.Values[0], v):
			add(field, "is too far from the first value, %g, for a float64", p.Values[0])
		}
	}
	if p.Design != nil {
		add("design", "is for double and integer parameters only")
	}
}

func (p *Parameter) validateChoices(add adder) {
	if len(p.Choices) == 0 {
		add("choices", "must not be empty")
	}
	for i, c := range p.Choices {
		if c == "" {
			add(fmt.Sprintf("choices[%d]", i), "must not be empty")
		} else if slices.Index(p.Choices, c) < i {
			add(fmt.Sprintf("choices[%d]", i), "%q occurs twice", c)
		}
	}
	if p.Scale == Log {
		add("scale", "must be linear for a categorical parameter")
	}
	if p.Design != nil {
		add("design", "is for double and integer parameters only")
	}
}
