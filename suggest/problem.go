package suggest

import (
	"errors"
	"fmt"
	"math"
	"slices"

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

	// Search, if not nil, is a cheap stand-in for Known, under the same conditions: smooth,
	// and good to a few per cent but for what Known rounds. Designers use it to compare thousands of
	// candidates; whatever is reported comes from Known.
	Search func(space.Point) float64

	// SampleSize is the number of records that a Logit objective is a fraction
	// of, in each run (for a classification error, the number of test
	// records). It gives fractions of exactly 0 and 1 a finite logit and every
	// fraction a noise of the right size. 0 means unknown.
	SampleSize float64

	// Floor is the value to which smaller ones are raised before a Log
	// transform. 0 means [DefaultFloor].
	Floor float64

	// Noise is the standard deviation of Gaussian noise that was added to every value, in
	// the objective's own unit, for example for the privacy of test records. A Logit
	// objective is taken to be at least that far from 0 and 1: what is nearer, or beyond,
	// says no more. The noise belongs to the standard errors of evaluations, too.
	Noise float64
}

// Constraint is a metric that must stay within closed bounds for a configuration
// to count. A configuration that violates one is never on a front.
type Constraint struct {
	// Name identifies the metric, different from every objective's.
	Name string

	// Transform is the scale of the surrogate. Identity by default.
	Transform Transform

	// Lower and Upper are the bounds in the metric's own unit, Lower <= Upper;
	// -Inf and +Inf stand for none, but not both.
	Lower, Upper float64

	// Known, SampleSize, Floor and Noise are as for an [Objective].
	Known      func(space.Point) float64
	SampleSize float64
	Floor      float64
	Noise      float64
}

// Cost is the measure of what a run costs. A designer divides the value of a
// configuration by it.
type Cost int

// The measures of cost.
const (
	CostRuns       Cost = iota // every run costs the same
	CostCheckpoint             // the value of the checkpoint parameter
	CostMeasured               // Evaluation.Cost, modelled on a log scale
)

// String returns the lower-case name of the measure.
func (c Cost) String() string {
	switch c {
	case CostRuns:
		return "runs"
	case CostCheckpoint:
		return "checkpoint"
	case CostMeasured:
		return "measured"
	default:
		return fmt.Sprintf("Cost(%d)", int(c))
	}
}

// Problem is a space of configurations and the objectives over it. Hypervolume
// is measured in the objectives' own units, whatever their transforms.
type Problem struct {
	Space      *space.Space
	Objectives []Objective

	// Constraints bound further metrics.
	Constraints []Constraint

	// Allowed tells which configurations may be tried: the known constraints. It
	// must be deterministic, fast and safe for concurrent use. nil allows all.
	Allowed func(space.Point) bool

	// Repair returns an allowed configuration near one that Allowed refuses, or nil. It
	// must be deterministic and safe for concurrent use. Designers that draw or search
	// use it where few configurations are allowed. nil where there is no such function.
	Repair func(space.Point) space.Point

	// Checkpoint names an Integer parameter, at least 1, with the property that a
	// run with value T passes through the states of all smaller values, so that
	// one run is an evaluation at every one of them. It has no condition and is the
	// parent of none. Empty if there is none.
	Checkpoint string

	// Cost is what the value of a configuration is measured against.
	// CostCheckpoint needs a Checkpoint.
	Cost Cost
}

// checkpoint returns the index of the checkpoint parameter, or -1.
func (p *Problem) checkpoint() int {
	if p.Checkpoint == "" {
		return -1
	}
	return slices.IndexFunc(p.Space.Parameters, func(q space.Parameter) bool { return q.Name == p.Checkpoint })
}

// allowed reports whether q may be tried: whether it meets all constraints that are
// known.
func (p *Problem) allowed(q space.Point) bool {
	if p.Allowed != nil && !p.Allowed(q) {
		return false
	}
	for i := range p.Constraints {
		c := &p.Constraints[i]
		if c.Known != nil && !c.holds(c.Known(q)) {
			return false
		}
	}
	return true
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
	for i := range p.Constraints {
		c := &p.Constraints[i]
		prefix := fmt.Sprintf("constraints[%d]", i)
		c.validate(prefix, &errs)
		if c.Name != "" && seen[c.Name] {
			errs.Add(prefix+".name", fmt.Sprintf("%q occurs twice", c.Name))
		}
		seen[c.Name] = true
	}
	p.validateCheckpoint(&errs)
	return errs.Err()
}

// validateCheckpoint checks the checkpoint parameter and the cost.
func (p *Problem) validateCheckpoint(errs *space.FieldErrors) {
	if p.Cost < CostRuns || p.Cost > CostMeasured {
		errs.Add("cost", "must be runs, checkpoint or measured")
	}
	if p.Cost == CostCheckpoint && p.Checkpoint == "" {
		errs.Add("cost", "needs a checkpoint parameter")
	}
	if p.Checkpoint == "" || p.Space == nil {
		return
	}
	switch i := p.checkpoint(); {
	case i < 0:
		errs.Add("checkpoint", fmt.Sprintf("%q is not a parameter", p.Checkpoint))
	case p.Space.Parameters[i].Kind != space.Integer || p.Space.Parameters[i].Min < 1:
		errs.Add("checkpoint", fmt.Sprintf("%q must be an integer parameter with a minimum of at least 1", p.Checkpoint))
	case p.Space.Parameters[i].Condition != nil || p.Space.IsParent(i):
		errs.Add("checkpoint", fmt.Sprintf("%q must neither have a condition nor be the parent of one", p.Checkpoint))
	}
}

func (c *Constraint) validate(prefix string, errs *space.FieldErrors) {
	if !(c.Lower <= c.Upper) {
		errs.Add(prefix+".upper", fmt.Sprintf("must be at least lower = %g, is %g", c.Lower, c.Upper))
	}
	if math.IsInf(c.Lower, -1) && math.IsInf(c.Upper, 1) {
		errs.Add(prefix+".upper", "must be finite where lower is not")
	}
	o := c.objective()
	o.validate(prefix, errs)
}

// objective returns the metric of c as an objective, for what does not depend on
// a goal.
func (c *Constraint) objective() Objective {
	o := Objective{
		Name: c.Name, Goal: Minimize, Transform: c.Transform,
		Known: c.Known, SampleSize: c.SampleSize, Floor: c.Floor, Noise: c.Noise,
	}
	if c.Transform == Log {
		o.Reference = 1
	}
	return o
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
	if !(o.Noise >= 0) || math.IsInf(o.Noise, 0) {
		add("noise", "must not be negative, is %g", o.Noise)
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

	// Values are the objectives, then the constraints, in their own units, one
	// each: means over Runs. A value that is not finite (an unbounded privacy
	// loss, a metric that was not reported) keeps the configuration off the front.
	Values []float64

	// StdErrors are the standard errors of Values, finite and at least 0, or NaN
	// if unknown. nil means that all are unknown.
	StdErrors []float64

	// Runs is the number of independent runs behind Values. 0 means 1.
	Runs int

	// Run tells which evaluations are checkpoints of one run, and so share its
	// noise: those with the same Run other than 0. They differ in the checkpoint
	// parameter only.
	Run int64

	// Cost is the measured cost of the run, positive, or 0 if unknown.
	Cost float64
}

// History is what a study knows. Several evaluations of the same point are
// pooled as replicates. The order is that of the completion of runs; the
// checkpoints of one run follow each other.
type History struct {
	Evaluations []Evaluation

	// Prior are evaluations of an earlier study of the same space: what the model
	// expects until its own evaluations say otherwise. They are on no front.
	Prior []Evaluation

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
	// The names are made when they are needed: a history is long, and mostly right.
	point := func(list string, i int, suffix string, q space.Point) {
		if len(q) != len(p.Space.Parameters) {
			errs.Add(fmt.Sprintf("%s[%d]%s", list, i, suffix), fmt.Sprintf("must have %d values, has %d", len(p.Space.Parameters), len(q)))
			return
		}
		for _, v := range q {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				errs.Add(fmt.Sprintf("%s[%d]%s", list, i, suffix), "must be finite")
				return
			}
		}
	}
	metrics := len(p.Objectives) + len(p.Constraints)
	evaluation := func(list string, i int, e *Evaluation) {
		point(list, i, ".point", e.Point)
		add := func(field, format string, args ...any) {
			errs.Add(fmt.Sprintf("%s[%d].%s", list, i, field), fmt.Sprintf(format, args...))
		}
		if len(e.Values) != metrics {
			add("values", "must have %d values, has %d", metrics, len(e.Values))
		}
		if e.StdErrors != nil && len(e.StdErrors) != metrics {
			add("std_errors", "must have %d values, has %d", metrics, len(e.StdErrors))
		}
		for _, s := range e.StdErrors {
			if s < 0 || math.IsInf(s, 1) {
				add("std_errors", "must not be negative or infinite, is %g", s)
			}
		}
		if e.Runs < 0 {
			add("runs", "must not be negative, is %d", e.Runs)
		}
		if !(e.Cost >= 0) || math.IsInf(e.Cost, 1) {
			add("cost", "must be finite and not negative, is %g", e.Cost)
		}
	}
	for i := range h.Evaluations {
		evaluation("evaluations", i, &h.Evaluations[i])
	}
	for i := range h.Prior {
		evaluation("prior", i, &h.Prior[i])
	}
	for i, q := range h.Infeasible {
		point("infeasible", i, "", q)
	}
	for i, q := range h.Pending {
		point("pending", i, "", q)
	}
	return errs.Err()
}
