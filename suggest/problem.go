package suggest

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/suggest/pareto"
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

// Transform is the scale on which a surrogate models an objective: the one on
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

	// InferReference says that Reference is not given, but follows from the results: designers and
	// models take [Problem.Inferred], and Reference is [UnknownReference] before. Only for objectives
	// without a Known function: a known one says what it can be before any run.
	InferReference bool

	// Known computes the exact value of the objective, in its own unit. It must be
	// deterministic, safe for concurrent use and free of side effects; it may return
	// +Inf. nil means that the objective is measured, with noise.
	Known func(space.Point) float64

	// Search, if not nil, is a cheap and smooth stand-in for Known, under the same
	// conditions. It is good to a few per cent, but for what Known rounds. Designers
	// compare thousands of candidates by it; all values in results come from Known.
	Search func(space.Point) float64

	// SampleSize is the number of records of which a Logit objective is a fraction in
	// each run: for a classification error, the number of test records. It gives
	// fractions of exactly 0 and 1 a finite logit, and every fraction a noise of the
	// right size. 0 means unknown.
	SampleSize float64

	// Floor is the value to which smaller ones are raised before a Log
	// transform. 0 means [DefaultFloor].
	Floor float64

	// NoiseFree says that a measured value is a deterministic function of the configuration,
	// but for Noise. Standard errors do not count then.
	NoiseFree bool

	// Noise is the standard deviation of Gaussian noise that was added to every value, in
	// the objective's own unit, for example for the privacy of test records. Values of a
	// Logit objective that are nearer than Noise to 0 or 1, or beyond, count as Noise away
	// from it. The standard errors of evaluations include this noise.
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

	// Known, SampleSize, Floor, NoiseFree and Noise are as for an [Objective].
	Known      func(space.Point) float64
	SampleSize float64
	Floor      float64
	NoiseFree  bool
	Noise      float64
}

// Cost is the measure of the cost of a run. A designer divides the value of a configuration by
// it.
type Cost int

// The measures of cost.
const (
	CostRuns       Cost = iota // every run costs the same
	CostCheckpoint             // the value of the checkpoint parameter
	CostMeasured               // Evaluation.Cost, modelled on a log scale
	CostKnown                  // Problem.RunCost
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
	case CostKnown:
		return "known"
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

	// Allowed reports whether a configuration may be tried. It must be deterministic,
	// fast and safe for concurrent use. nil allows all.
	Allowed func(space.Point) bool

	// Repair returns an allowed configuration near one that Allowed refuses, or nil. It
	// must be deterministic and safe for concurrent use. Designers that draw or search
	// use it where few configurations are allowed. It is optional.
	Repair func(space.Point) space.Point

	// Checkpoint names an Integer parameter, at least 1, such as the number of epochs: a
	// run with value T passes through the states of all smaller values, so that one run
	// is an evaluation at each of them. The parameter has no condition and is no parent.
	// Empty if there is none.
	Checkpoint string

	// Cost is the measure of the cost of a run. CostCheckpoint needs a Checkpoint.
	Cost Cost

	// RunCost returns the cost of a run with CostKnown, a positive number in any unit. It must
	// be deterministic, fast and safe for concurrent use.
	RunCost func(space.Point) float64

	// Constants are results that can be had without a run, which no configuration is worth that is
	// not better somewhere: the values of the objectives, finite, in their own units. A value may
	// lie outside the range of a Log transform: ε = 0 is one.
	Constants [][]float64

	// Features are inputs of surrogates in place of parameters. nil if there are none.
	Features *Features
}

// Allows reports whether q may be tried: whether it passes Allowed and meets all
// constraints that are known.
func (p *Problem) Allows(q space.Point) bool {
	if p.Allowed != nil && !p.Allowed(q) {
		return false
	}
	for i := range p.Constraints {
		c := &p.Constraints[i]
		if c.Known != nil && !c.Holds(c.Known(q)) {
			return false
		}
	}
	return true
}

// Metrics returns the objectives and then the constraints. The constraints have the form
// of objectives, for code that does not depend on the goal.
func (p *Problem) Metrics() []Objective {
	metrics := slices.Clone(p.Objectives)
	for i := range p.Constraints {
		metrics = append(metrics, p.Constraints[i].objective())
	}
	return metrics
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
	p.validateFeatures(&errs)
	for i, values := range p.Constants {
		if len(values) != len(p.Objectives) || slices.ContainsFunc(values, func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }) {
			errs.Add(fmt.Sprintf("constants[%d]", i), fmt.Sprintf("must hold %d finite values, one per objective", len(p.Objectives)))
		}
	}
	return errs.Err()
}

// validateCheckpoint checks the checkpoint parameter and the cost.
func (p *Problem) validateCheckpoint(errs *space.FieldErrors) {
	if p.Cost < CostRuns || p.Cost > CostKnown {
		errs.Add("cost", "must be runs, checkpoint, measured or known")
	}
	if (p.Cost == CostKnown) != (p.RunCost != nil) {
		errs.Add("run_cost", "must be set with a known cost, and only then")
	}
	if p.Cost == CostCheckpoint && p.Checkpoint == "" {
		errs.Add("cost", "needs a checkpoint parameter")
	}
	if p.Checkpoint == "" || p.Space == nil {
		return
	}
	switch i := p.CheckpointIndex(); {
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

// objective returns the metric of c as an objective.
func (c *Constraint) objective() Objective {
	o := Objective{
		Name: c.Name, Goal: Minimize, Transform: c.Transform,
		Known: c.Known, SampleSize: c.SampleSize, Floor: c.Floor, NoiseFree: c.NoiseFree, Noise: c.Noise,
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
	if o.InferReference && o.Known != nil {
		add("reference", "must be given for an objective with a known function")
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

// Cost maps a value in the objective's own unit to one that is minimised. The map keeps
// lengths and is its own inverse.
func (o *Objective) Cost(v float64) float64 {
	switch {
	case o.Goal == Minimize:
		return v
	case o.Transform == Logit:
		return 1 - v
	default:
		return -v
	}
}

// Costs returns the costs of objective values; see [Objective.Cost].
func (p *Problem) Costs(values []float64) []float64 {
	costs := make([]float64, len(p.Objectives))
	for j := range costs {
		costs[j] = p.Objectives[j].Cost(values[j])
	}
	return costs
}

// ReferenceCosts returns the costs of the objectives' references.
func (p *Problem) ReferenceCosts() []float64 {
	reference := make([]float64, len(p.Objectives))
	for j := range reference {
		reference[j] = p.Objectives[j].Cost(p.Objectives[j].Reference)
	}
	return reference
}

// ConstantCosts returns the costs of the constants. They are on every front that a search improves.
func (p *Problem) ConstantCosts() [][]float64 {
	costs := make([][]float64, len(p.Constants))
	for i, values := range p.Constants {
		costs[i] = p.Costs(values)
	}
	return costs
}

// Hypervolume returns the volume within the references that the constants and results with these
// costs dominate, in the product of the objectives' units.
func (p *Problem) Hypervolume(costs [][]float64) float64 {
	return pareto.Hypervolume(slices.Concat(costs, p.ConstantCosts()), p.ReferenceCosts())
}

// KnownCost returns the cost of the exact value at q. It is +Inf, which improves nothing,
// for a value that is not finite.
func (o *Objective) KnownCost(q space.Point) float64 { return o.finiteCost(o.Known(q)) }

// SearchCost is KnownCost by the cheap stand-in, if there is one.
func (o *Objective) SearchCost(q space.Point) float64 {
	if o.Search != nil {
		return o.finiteCost(o.Search(q))
	}
	return o.KnownCost(q)
}

func (o *Objective) finiteCost(v float64) float64 {
	c := o.Cost(v)
	if math.IsNaN(c) || math.IsInf(c, 0) {
		return math.Inf(1)
	}
	return c
}

// Holds reports whether a value is within the bounds.
func (c *Constraint) Holds(v float64) bool { return c.Lower <= v && v <= c.Upper }
