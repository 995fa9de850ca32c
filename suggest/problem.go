package suggest

import (
	"errors"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/suggest/space"
)

// Goal is the direction in which an objective is better.
type Goal int

// The goals. The zero Goal is none of them and is refused by
// [Problem.Validate].
const (
	Minimize Goal = iota + 1
	Maximize
)

// String returns the lower-case name of the goal.
func (g Goal) String() string {
	switch g {
	case Minimize:
		return "minimize"
	case Maximize:
		return "maximize"
	default:
		return fmt.Sprintf("Goal(%d)", int(g))
	}
}

// Transform is the scale on which a surrogate models an objective: that on
// which its values are closest to a Gaussian process.
type Transform int

// The transforms.
const (
	Identity Transform = iota // any real number
	Log                       // positive values over orders of magnitude
	Logit                     // fractions in [0, 1]: log(v / (1 - v))
)

// String returns the lower-case name of the transform.
func (t Transform) String() string {
	switch t {
	case Identity:
		return "identity"
	case Log:
		return "log"
	case Logit:
		return "logit"
	default:
		return fmt.Sprintf("Transform(%d)", int(t))
	}
}

// DefaultFloor is the Floor of a [Log] objective that gives none.
const DefaultFloor = 1e-3

// Objective is one quantity to be minimised or maximised.
type Objective struct {
	// Name identifies the objective. It must be unique and not empty.
	Name string

	Goal Goal

	// Transform is the scale of the surrogate. Identity by default.
	Transform Transform

	// Reference is the anti-ideal value, in the objective's own unit: a
	// configuration counts only where it is strictly better in every
	// objective. It must be finite, positive for Log, and in [0, 1] for Logit.
	Reference float64

	// Known returns the exact value of the objective, in its own unit, where
	// that can be computed. It must be deterministic, safe for concurrent use
	// and free of side effects; it may return +Inf. nil means that the
	// objective is measured, with noise.
	Known func(space.Point) float64

	// SampleSize is the number of records that a Logit objective is a fraction
	// of, in each run (for a classification error, the number of test
	// records). It gives fractions of exactly 0 and 1 a finite logit and every
	// fraction a noise of the right size. 0 means unknown.
	SampleSize float64

	// Floor is the value to which smaller ones are raised before a Log
	// transform. 0 means [DefaultFloor].
	Floor float64
}

// Problem is a space of configurations and the objectives over it. Hypervolume
// is measured in the objectives' own units, whatever their transforms.
type Problem struct {
	Space      *space.Space
	Objectives []Objective
}

// Validate returns nil or a [space.FieldErrors] with every violation found, in
// fields named like "objectives[1].reference" and "parameters[0].min".
func (p *Problem) Validate() error {
	var errs space.FieldErrors
	if p.Space == nil {
		errs.Add("space", "must be given")
	} else {
		var own space.FieldErrors
		errors.As(p.Space.Validate(), &own)
		errs = append(errs, own...)
	}
	if len(p.Objectives) == 0 {
		errs.Add("objectives", "must not be empty")
	}
	seen := make(map[string]bool, len(p.Objectives))
	for i := range p.Objectives {
		o := &p.Objectives[i]
		prefix := fmt.Sprintf("objectives[%d]", i)
		o.validate(prefix, &errs)
		if o.Name != "" && seen[o.Name] {
			errs.Add(prefix+".name", fmt.Sprintf("%q occurs twice", o.Name))
		}
		seen[o.Name] = true
	}
	return errs.Err()
}

func (o *Objective) validate(prefix string, errs *space.FieldErrors) {
	add := func(field, format string, args ...any) {
		errs.Add(prefix+"."+field, fmt.Sprintf(format, args...))
	}
	if o.Name == "" {
		add("name", "must not be empty")
	}
	if o.Goal != Minimize && o.Goal != Maximize {
		add("goal", "must be minimize or maximize")
	}
	finite := !math.IsNaN(o.Reference) && !math.IsInf(o.Reference, 0)
	switch {
	case !finite:
		add("reference", "must be finite, is %g", o.Reference)
	case o.Transform == Log && o.Reference <= 0:
		add("reference", "must be positive with a log transform, is %g", o.Reference)
	case o.Transform == Logit && (o.Reference < 0 || o.Reference > 1):
		add("reference", "must be in [0, 1] with a logit transform, is %g", o.Reference)
	}
	if o.Transform < Identity || o.Transform > Logit {
		add("transform", "must be identity, log or logit")
	}
	if !(o.SampleSize >= 0) || math.IsInf(o.SampleSize, 0) {
		add("sample_size", "must not be negative, is %g", o.SampleSize)
	} else if o.SampleSize > 0 && o.Transform != Logit {
		add("sample_size", "is for a logit transform only")
	}
	if !(o.Floor >= 0) || math.IsInf(o.Floor, 0) {
		add("floor", "must not be negative, is %g", o.Floor)
	} else if o.Floor > 0 && o.Transform != Log {
		add("floor", "is for a log transform only")
	}
}

// floor returns the Floor in force.
func (o *Objective) floor() float64 {
	if o.Floor == 0 {
		return DefaultFloor
	}
	return o.Floor
}

// Evaluation is the outcome of one configuration.
type Evaluation struct {
	Point space.Point

	// Values are the objectives in their own units, one each: means over Runs.
	// A value that is not finite (an unbounded privacy loss, a metric that was
	// not reported) keeps the configuration off the front.
	Values []float64

	// StdErrors are the standard errors of Values, finite and at least 0, or NaN
	// if unknown. nil means that all are unknown.
	StdErrors []float64

	// Runs is the number of independent runs behind Values. 0 means 1.
	Runs int
}

// History is what a study knows. Several evaluations of the same point are
// pooled as replicates.
type History struct {
	Evaluations []Evaluation

	// Infeasible are configurations that cannot work.
	Infeasible []space.Point

	// Pending are configurations that are being evaluated, in the order in
	// which they were suggested.
	Pending []space.Point
}

// validate checks the shapes of h, which [Designer.Suggest] and [FitModel] rely
// on. Points may lie outside the bounds.
func (h *History) validate(p *Problem) error {
	var errs space.FieldErrors
	point := func(field string, q space.Point) {
		if len(q) != len(p.Space.Parameters) {
			errs.Add(field, fmt.Sprintf("must have %d values, has %d", len(p.Space.Parameters), len(q)))
			return
		}
		for _, v := range q {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				errs.Add(field, "must be finite")
				return
			}
		}
	}
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		field := fmt.Sprintf("evaluations[%d]", i)
		point(field+".point", e.Point)
		if len(e.Values) != len(p.Objectives) {
			errs.Add(field+".values", fmt.Sprintf("must have %d values, has %d", len(p.Objectives), len(e.Values)))
		}
		if e.StdErrors != nil && len(e.StdErrors) != len(p.Objectives) {
			errs.Add(field+".std_errors", fmt.Sprintf("must have %d values, has %d", len(p.Objectives), len(e.StdErrors)))
		}
		for _, s := range e.StdErrors {
			if s < 0 || math.IsInf(s, 1) {
				errs.Add(field+".std_errors", fmt.Sprintf("must not be negative or infinite, is %g", s))
			}
		}
		if e.Runs < 0 {
			errs.Add(field+".runs", fmt.Sprintf("must not be negative, is %d", e.Runs))
		}
	}
	for i, q := range h.Infeasible {
		point(fmt.Sprintf("infeasible[%d]", i), q)
	}
	for i, q := range h.Pending {
		point(fmt.Sprintf("pending[%d]", i), q)
	}
	return errs.Err()
}
