package spec

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits of a spec.
const (
	maxParameters      = 100
	maxMetrics         = 20
	maxValues          = 1000 // of a discrete or categorical domain, and of all conditions
	maxGridLevels      = 1000
	maxReplicates      = 10_000
	maxInitialTrials   = 100_000
	maxConstraints     = 20
	maxTrainerSettings = 64
	maxSettingLength   = 1000
	maxCategoryLength  = 1000
	maxUnitLength      = 100
	maxObjectives      = 5       // exact hypervolumes are exponential in their number
	maxDimension       = 500     // of encoded points: one for a number, one for every category
	maxInteger         = 1 << 53 // largest magnitude at which every int64 is a float64
)

// Defaults of a spec.
const (
	// DefaultReplicates is the number of runs of a trial.
	DefaultReplicates = 1
	// DefaultInitialTrials is the number of trials before a model takes over.
	DefaultInitialTrials = 16
	// DefaultLeaseDuration is the time that a worker may be silent.
	DefaultLeaseDuration = time.Minute
	// DefaultMaxAttempts is how often a trial is handed out.
	DefaultMaxAttempts = 5
	// defaultReportTolerance is the relative difference between a computed value and
	// the worker's own that is not flagged.
	defaultReportTolerance = 1e-6
	// logFloor times the reference value, or the smallest bound of a constraint, is the
	// smallest value that is modelled under the log transform.
	logFloor = 1e-3
)

// identifier is the form of the ids of parameters and metrics.
var identifier = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]{0,63}$`)

// Study is a compiled spec. It is immutable and safe for concurrent use.
type Study struct {
	// Spec is the spec that was compiled.
	Spec *dparetov1.StudySpec
	// Problem is what designers solve: a parameter for every parameter of the spec, an
	// objective for every metric with the role OBJECTIVE and a constraint for every one
	// with the role CONSTRAINT, in the order of the spec.
	Problem *suggest.Problem
	// Warnings are what a reader of the study's results must know.
	Warnings []*dparetov1.Warning

	metrics     []metric
	objectives  []int // indexes into metrics
	constrained []int // indexes into metrics of those with bounds
	constraints []constraint
	parameters  map[string]int // index by id
	checkpoint  int            // index of the checkpoint parameter, -1 without
	cost        int            // index into metrics of the measured cost, -1 without
	noise       float64        // standard deviation of what private_mode adds to every value

	computed memo
}

// metric is a compiled MetricSpec.
type metric struct {
	spec     *dparetov1.MetricSpec
	computed function // nil for reported metrics
	// rounded is a cheap stand-in of a computed objective, for bounds (see function).
	rounded func(space.Point) float64
}

// Compile validates a spec and compiles it. Field paths in the returned
// INVALID_ARGUMENT error begin with path, for example "study.spec".
func Compile(path string, spec *dparetov1.StudySpec) (*Study, error) {
	c := &compiler{path: path}
	study := c.study(spec)
	if err := c.fields.Err(); err != nil {
		return nil, err
	}
	return study, nil
}

// compiler collects violations while it compiles.
type compiler struct {
	path   string
	fields invalid.Fields
}

// addf records a violation of a field below the spec.
func (c *compiler) addf(field, format string, args ...any) {
	c.fields.Addf(c.path+"."+field, format, args...)
}

func (c *compiler) study(spec *dparetov1.StudySpec) *Study {
	if spec == nil {
		c.fields.Addf(c.path, "must be set")
		return nil
	}
	study := &Study{Spec: spec, parameters: make(map[string]int), checkpoint: -1, cost: -1}
	searchSpace := c.space(spec)
	c.algorithm(spec)
	c.limits(spec)
	if searchSpace == nil {
		return nil // expressions cannot be compiled without sound parameters
	}
	for i, p := range spec.GetParameters() {
		study.parameters[p.GetId()] = i
	}
	c.checkpoint(study, searchSpace)
	if environment := c.environment(searchSpace); environment != nil {
		c.metrics(study, environment)
		c.constraints(study, environment)
	}
	c.cost(study)
	c.randomStopping(study)
	if c.fields.Empty() {
		c.private(study)
	}
	if c.fields.Empty() {
		study.Problem = study.problem(searchSpace)
		if err := study.Problem.Validate(); err != nil {
			c.addf("metrics", "%v", err)
		}
		var examples []space.Point
		if len(study.constraints) > 0 {
			examples = c.examples(study)
		}
		if !c.fields.Empty() {
			return study // there is nowhere to compute a metric
		}
		for i := range study.metrics {
			if f := study.metrics[i].computed; f != nil {
				c.probe(fmt.Sprintf("metrics[%d].computed", i), study, f, examples)
			}
		}
		c.privateWarnings(study)
		c.searchWarnings(study)
	}
	return study
}

// checkpoint finds the checkpoint parameter.
func (c *compiler) checkpoint(study *Study, s *space.Space) {
	id := study.Spec.GetCheckpointParameter()
	if id == "" {
		return
	}
	i, ok := study.parameters[id]
	if !ok {
		c.addf("checkpoint_parameter", "%q is not a parameter", id)
		return
	}
	switch p := s.Parameters[i]; {
	case p.Kind != space.Integer:
		c.addf("checkpoint_parameter", "%q must be an integer parameter, is %s", id, p.Kind)
	case p.Min < 1:
		c.addf("checkpoint_parameter", "%q must have a minimum of at least 1, has %g", id, p.Min)
	case p.Condition != nil:
		c.addf("checkpoint_parameter", "%q must not have a condition", id)
	case s.IsParent(i):
		c.addf("checkpoint_parameter", "%q must not be the parent in a condition", id)
	default:
		study.checkpoint = i
	}
}

// cost checks the measure of cost.
func (c *compiler) cost(study *Study) {
	cost := study.Spec.GetCost()
	if cost == nil {
		return
	}
	switch measure := cost.GetMeasure().(type) {
	case *dparetov1.CostSpec_Runs:
	case *dparetov1.CostSpec_CheckpointParameter:
		if study.Spec.GetCheckpointParameter() == "" {
			c.addf("cost.checkpoint_parameter", "needs the study's checkpoint_parameter to be set")
		}
	case *dparetov1.CostSpec_Metric:
		i := slices.IndexFunc(study.metrics, func(m metric) bool { return m.spec.GetId() == measure.Metric })
		switch {
		case i < 0:
			c.addf("cost.metric", "%q is not a metric", measure.Metric)
		case study.metrics[i].spec.GetReported() == nil:
			c.addf("cost.metric", "%q must be a reported metric", measure.Metric)
		default:
			study.cost = i
		}
	default:
		c.addf("cost.measure", "one of runs, checkpoint_parameter and metric must be set")
	}
}

// space returns the search space, or nil if it has violations.
func (c *compiler) space(spec *dparetov1.StudySpec) *space.Space {
	before := c.fields.Len()
	if n := len(spec.GetParameters()); n < 1 || n > maxParameters {
		c.addf("parameters", "must hold 1 to %d parameters, holds %d", maxParameters, n)
		return nil
	}
	s := &space.Space{Parameters: make([]space.Parameter, len(spec.GetParameters()))}
	for i, p := range spec.GetParameters() {
		s.Parameters[i] = c.parameter(fmt.Sprintf("parameters[%d]", i), p)
	}
	c.uniqueIDs(spec)
	c.conditions(spec, s)
	if c.fields.Len() == before {
		c.spaceErrors(spec, s.Validate())
	}
	if dim := s.Dim(); c.fields.Len() == before && dim > maxDimension {
		c.addf("parameters", "may have at most %d numerical parameters and categories together, have %d", maxDimension, dim)
	}
	if c.fields.Len() != before {
		return nil
	}
	return s
}

// uniqueIDs checks the ids of parameters and metrics.
func (c *compiler) uniqueIDs(spec *dparetov1.StudySpec) {
	seen := make(map[string]string)
	check := func(field, id string, variable bool) {
		switch other, used := seen[id]; {
		case !identifier.MatchString(id):
			c.addf(field, "must be a letter followed by at most 63 letters, digits or underscores, is %q", id)
		case variable && expression.Reserved(id):
			c.addf(field, "%q is a reserved word of the expression language", id)
		case used:
			c.addf(field, "%q is already the id of %s", id, other)
		default:
			seen[id] = field[:len(field)-len(".id")]
		}
	}
	for i, p := range spec.GetParameters() {
		check(fmt.Sprintf("parameters[%d].id", i), p.GetId(), true)
	}
	for i, m := range spec.GetMetrics() {
		check(fmt.Sprintf("metrics[%d].id", i), m.GetId(), false)
	}
}

// parameter converts one parameter and checks what the message adds to a
// space.Parameter; the rest is checked by space.Space.Validate.
func (c *compiler) parameter(field string, p *dparetov1.ParameterSpec) space.Parameter {
	out := space.Parameter{Name: p.GetId(), Levels: int(p.GetGridLevels())}
	switch domain := p.GetDomain().(type) {
	case *dparetov1.ParameterSpec_DoubleDomain:
		out.Kind = space.Double
		out.Min, out.Max = domain.DoubleDomain.GetMin(), domain.DoubleDomain.GetMax()
		if !(out.Min < out.Max) {
			c.addf(field+".double_domain.max", "must be above min (%g), is %g", out.Min, out.Max)
		}
	case *dparetov1.ParameterSpec_IntegerDomain:
		out.Kind = space.Integer
		lo, hi := domain.IntegerDomain.GetMin(), domain.IntegerDomain.GetMax()
		if lo < -maxInteger {
			c.addf(field+".integer_domain.min", "must be at least -2^53, is %d", lo)
		}
		if hi > maxInteger {
			c.addf(field+".integer_domain.max", "must be at most 2^53, is %d", hi)
		}
		if lo >= hi {
			c.addf(field+".integer_domain.max", "must be above min (%d), is %d", lo, hi)
		}
		out.Min, out.Max = float64(lo), float64(hi)
	case *dparetov1.ParameterSpec_DiscreteDomain:
		out.Kind = space.Discrete
		out.Values = domain.DiscreteDomain.GetValues()
		c.size(field+".discrete_domain.values", len(out.Values))
	case *dparetov1.ParameterSpec_CategoricalDomain:
		out.Kind = space.Categorical
		out.Choices = domain.CategoricalDomain.GetCategories()
		c.size(field+".categorical_domain.categories", len(out.Choices))
		for i, category := range out.Choices {
			if n := len(category); n > maxCategoryLength {
				c.addf(fmt.Sprintf("%s.categorical_domain.categories[%d]", field, i), "must have at most %d bytes, has %d", maxCategoryLength, n)
			}
		}
	default:
		c.addf(field+".domain", "one of double_domain, integer_domain, discrete_domain and categorical_domain must be set")
		return out
	}
	switch scale := p.GetScale(); {
	case out.Kind == space.Categorical && scale != dparetov1.Scale_SCALE_UNSPECIFIED:
		c.addf(field+".scale", "must not be set for a categorical parameter, is %v", scale)
	case out.Kind == space.Categorical:
	case scale == dparetov1.Scale_SCALE_LINEAR:
		out.Scale = space.Linear
	case scale == dparetov1.Scale_SCALE_LOG:
		out.Scale = space.Log
	default:
		c.addf(field+".scale", "must be SCALE_LINEAR or SCALE_LOG, is %v", scale)
	}
	if n := p.GetGridLevels(); n < 0 || n > maxGridLevels {
		c.addf(field+".grid_levels", "must be in [1, %d], or 0 for the default, is %d", maxGridLevels, n)
	}
	if p.GetDesign() != nil {
		out.Design = c.design(field+".design", p.GetDesign(), out)
	}
	return out
}

// size checks the number of values of a finite domain.
func (c *compiler) size(field string, n int) {
	if n < 2 || n > maxValues {
		c.addf(field, "must hold 2 to %d values, holds %d", maxValues, n)
	}
}

func (c *compiler) design(field string, d *dparetov1.DesignDistribution, p space.Parameter) space.Distribution {
	if p.Kind != space.Double && p.Kind != space.Integer {
		c.addf(field, "is only for double and integer parameters")
		return nil
	}
	lo, hi := p.Min, p.Max
	if d.AcceptMin != nil {
		lo = d.GetAcceptMin()
	}
	if d.AcceptMax != nil {
		hi = d.GetAcceptMax()
	}
	if !(lo < hi) {
		c.addf(field+".accept_max", "must be above accept_min (%g), is %g", lo, hi)
		return nil
	}
	switch dist := d.GetDistribution().(type) {
	case *dparetov1.DesignDistribution_Uniform:
		return space.Uniform{AcceptMin: lo, AcceptMax: hi}
	case *dparetov1.DesignDistribution_LogUniform:
		return space.LogUniform{AcceptMin: lo, AcceptMax: hi}
	case *dparetov1.DesignDistribution_Normal:
		return space.Normal{
			Mean: dist.Normal.GetMean(), StdDev: dist.Normal.GetStandardDeviation(),
			AcceptMin: lo, AcceptMax: hi,
		}
	case *dparetov1.DesignDistribution_ShiftedExponential:
		return space.ShiftedExponential{
			Rate: dist.ShiftedExponential.GetRate(), Shift: dist.ShiftedExponential.GetShift(),
			AcceptMin: lo, AcceptMax: hi,
		}
	default:
		c.addf(field+".distribution", "one of uniform, log_uniform, normal and shifted_exponential must be set")
		return nil
	}
}

// spaceErrors records the violations that a Space found, under the names of the
// message's fields.
func (c *compiler) spaceErrors(spec *dparetov1.StudySpec, err error) {
	if err == nil {
		return
	}
	var fields space.FieldErrors
	if !errors.As(err, &fields) {
		c.addf("parameters", "%v", err)
		return
	}
	for _, f := range fields {
		c.addf(messageField(spec, f.Field), "%s", f.Message)
	}
}

// spaceField matches the path of a field of a space.Parameter.
var spaceField = regexp.MustCompile(`^parameters\[(\d+)\]\.(min|max|values|choices|levels|name|design\.mean|design\.std_dev|design\.rate|design\.shift)(.*)$`)

// messageField translates the path of a field of a space.Space into that of the
// ParameterSpec from which it came.
func messageField(spec *dparetov1.StudySpec, path string) string {
	match := spaceField.FindStringSubmatch(path)
	if match == nil {
		return path
	}
	var i int
	if _, err := fmt.Sscan(match[1], &i); err != nil || i >= len(spec.GetParameters()) {
		return path
	}
	name := match[2]
	switch name {
	case "name":
		name = "id"
	case "levels":
		name = "grid_levels"
	case "values":
		name = "discrete_domain.values"
	case "design.mean":
		name = "design.normal.mean"
	case "design.std_dev":
		name = "design.normal.standard_deviation"
	case "design.rate":
		name = "design.shifted_exponential.rate"
	case "design.shift":
		name = "design.shifted_exponential.shift"
	case "choices":
		name = "categorical_domain.categories"
	case "min", "max":
		if spec.GetParameters()[i].GetIntegerDomain() != nil {
			name = "integer_domain." + name
		} else {
			name = "double_domain." + name
		}
	}
	return fmt.Sprintf("parameters[%d].%s%s", i, name, match[3])
}

// environment returns the environment of expressions over the parameters.
func (c *compiler) environment(s *space.Space) *expression.Environment {
	variables := make([]expression.Variable, len(s.Parameters))
	for i, p := range s.Parameters {
		variables[i] = expression.Variable{Name: p.Name, Type: expression.Double}
		switch p.Kind {
		case space.Integer:
			variables[i].Type = expression.Int
		case space.Categorical:
			variables[i].Type = expression.String
		case space.Double, space.Discrete:
		}
	}
	environment, err := expression.NewEnvironment(variables)
	if err != nil {
		c.addf("parameters", "%v", err)
	}
	return environment
}

// metrics compiles the metrics into study.
func (c *compiler) metrics(study *Study, environment *expression.Environment) {
	spec := study.Spec
	if n := len(spec.GetMetrics()); n < 1 || n > maxMetrics {
		c.addf("metrics", "must hold 1 to %d metrics, holds %d", maxMetrics, n)
		return
	}
	for i, m := range spec.GetMetrics() {
		field := fmt.Sprintf("metrics[%d]", i)
		c.metricFields(field, m)
		compiled := metric{spec: m}
		if computed := m.GetComputed(); computed != nil {
			compiled.computed = c.computed(field+".computed", environment, computed)
		}
		study.metrics = append(study.metrics, compiled)
		switch m.GetRole() {
		case dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE:
			study.objectives = append(study.objectives, i)
		case dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT:
			study.constrained = append(study.constrained, i)
		default:
		}
	}
	if n := len(study.objectives); n < 1 || n > maxObjectives {
		c.addf("metrics", "must hold 1 to %d metrics with METRIC_ROLE_OBJECTIVE, holds %d", maxObjectives, n)
	}
}

// metricFields checks the fields of one metric other than a computed function.
func (c *compiler) metricFields(field string, m *dparetov1.MetricSpec) {
	if n := len(m.GetUnit()); n > maxUnitLength {
		c.addf(field+".unit", "must have at most %d bytes, has %d", maxUnitLength, n)
	}
	objective := m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE
	constrained := m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT
	if !objective && !constrained && m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_TRACKED {
		c.addf(field+".role", "must be METRIC_ROLE_OBJECTIVE, METRIC_ROLE_CONSTRAINT or METRIC_ROLE_TRACKED, is %v", m.GetRole())
	}
	if objective {
		c.objective(field, m)
	} else {
		if m.ReferenceValue != nil {
			c.addf(field+".reference_value", "is only for objectives")
		}
		if m.GetGoal() != dparetov1.Goal_GOAL_UNSPECIFIED {
			c.addf(field+".goal", "is only for objectives")
		}
	}
	if constrained {
		c.bounds(field, m)
	} else if m.GetBounds() != nil {
		c.addf(field+".bounds", "is only for metrics with METRIC_ROLE_CONSTRAINT")
	}
	if !objective && !constrained && m.GetTransform() != dparetov1.Transform_TRANSFORM_UNSPECIFIED {
		c.addf(field+".transform", "is only for objectives and constraints")
	}
	switch source := m.GetSource().(type) {
	case *dparetov1.MetricSpec_Reported:
		if n := source.Reported.GetSampleSize(); !(n >= 0) || math.IsInf(n, 0) {
			c.addf(field+".reported.sample_size", "must be finite and not negative, is %g", n)
		} else if n > 0 && m.GetTransform() != dparetov1.Transform_TRANSFORM_LOGIT {
			c.addf(field+".reported.sample_size", "is only for metrics with TRANSFORM_LOGIT")
		}
	case *dparetov1.MetricSpec_Computed:
	default:
		c.addf(field+".source", "one of reported and computed must be set")
	}
}

func (c *compiler) objective(field string, m *dparetov1.MetricSpec) {
	switch m.GetGoal() {
	case dparetov1.Goal_GOAL_MINIMIZE, dparetov1.Goal_GOAL_MAXIMIZE:
	default:
		c.addf(field+".goal", "must be GOAL_MINIMIZE or GOAL_MAXIMIZE for an objective, is %v", m.GetGoal())
	}
	if m.ReferenceValue == nil {
		c.addf(field+".reference_value", "must be set for an objective")
		return
	}
	reference := m.GetReferenceValue()
	if math.IsNaN(reference) || math.IsInf(reference, 0) {
		c.addf(field+".reference_value", "must be finite, is %g", reference)
	}
	switch m.GetTransform() {
	case dparetov1.Transform_TRANSFORM_IDENTITY:
	case dparetov1.Transform_TRANSFORM_LOG:
		if !(reference > 0) {
			c.addf(field+".reference_value", "must be positive under TRANSFORM_LOG, is %g", reference)
		}
	case dparetov1.Transform_TRANSFORM_LOGIT:
		if !(reference >= 0 && reference <= 1) {
			c.addf(field+".reference_value", "must be in [0, 1] under TRANSFORM_LOGIT, is %g", reference)
		}
	default:
		c.addf(field+".transform", "must be set for an objective, is %v", m.GetTransform())
	}
}

// bounds checks what a metric with METRIC_ROLE_CONSTRAINT has of its own.
func (c *compiler) bounds(field string, m *dparetov1.MetricSpec) {
	transform := m.GetTransform()
	if _, known := dparetov1.Transform_name[int32(transform)]; !known {
		c.addf(field+".transform", "is unknown: %v", transform)
	}
	bounds := m.GetBounds()
	if bounds == nil || bounds.Min == nil && bounds.Max == nil {
		c.addf(field+".bounds", "at least one of min and max must be set")
		return
	}
	check := func(name string, bound float64) {
		switch at := field + ".bounds." + name; {
		case math.IsNaN(bound) || math.IsInf(bound, 0):
			c.addf(at, "must be finite, is %g", bound)
		case transform == dparetov1.Transform_TRANSFORM_LOG && bound <= 0:
			c.addf(at, "must be positive under TRANSFORM_LOG, is %g", bound)
		case transform == dparetov1.Transform_TRANSFORM_LOGIT && (bound < 0 || bound > 1):
			c.addf(at, "must be in [0, 1] under TRANSFORM_LOGIT, is %g", bound)
		}
	}
	if bounds.Min != nil {
		check("min", bounds.GetMin())
	}
	if bounds.Max != nil {
		check("max", bounds.GetMax())
	}
	if bounds.Min != nil && bounds.Max != nil && bounds.GetMin() > bounds.GetMax() {
		c.addf(field+".bounds.max", "must be at least min (%g), is %g", bounds.GetMin(), bounds.GetMax())
	}
}

func (c *compiler) algorithm(spec *dparetov1.StudySpec) {
	algorithm := spec.GetAlgorithm()
	switch algorithm.GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_RANDOM,
		dparetov1.Algorithm_ALGORITHM_GRID, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
		dparetov1.Algorithm_ALGORITHM_DPARETO, dparetov1.Algorithm_ALGORITHM_EHVI,
		dparetov1.Algorithm_ALGORITHM_NSGA2:
	default:
		c.addf("algorithm.name", "must be one of the algorithms, such as ALGORITHM_DEFAULT, is %v", algorithm.GetName())
	}
	if n := algorithm.GetInitialTrials(); n < 0 || n > maxInitialTrials {
		c.addf("algorithm.initial_trials", "must be in [1, %d], or 0 for the default, is %d", maxInitialTrials, n)
	}
}

// limits checks the fields that bound the study and its workers.
func (c *compiler) limits(spec *dparetov1.StudySpec) {
	if n := spec.GetReplicates(); n < 0 || n > maxReplicates {
		c.addf("replicates", "must be in [1, %d], or 0 for the default, is %d", maxReplicates, n)
	}
	if n := spec.GetBudget().GetMaxTrials(); n < 0 {
		c.addf("budget.max_trials", "must not be negative, is %d", n)
	}
	if n := spec.GetBudget().GetMaxStagnantTrials(); n < 0 {
		c.addf("budget.max_stagnant_trials", "must not be negative, is %d", n)
	}
	if n := spec.GetBudget().GetMaxParallelTrials(); n < 0 {
		c.addf("budget.max_parallel_trials", "must not be negative, is %d", n)
	}
	if d := spec.GetBudget().GetMaxDuration(); d != nil && (d.CheckValid() != nil || d.AsDuration() <= 0) {
		c.addf("budget.max_duration", "must be a valid, positive duration")
	}
	if d := spec.GetLease().GetDuration(); d != nil && (d.CheckValid() != nil || d.AsDuration() < time.Second || d.AsDuration() > 24*time.Hour) {
		c.addf("lease.duration", "must be a valid duration in [1s, 24h]")
	}
	if n := spec.GetLease().GetMaxAttempts(); n < 0 || n > 100 {
		c.addf("lease.max_attempts", "must be in [1, 100], or 0 for the default, is %d", n)
	}
	if trainer := spec.GetTrainer(); trainer != nil {
		if n := len(trainer.GetName()); n < 1 || n > 100 {
			c.addf("trainer.name", "must have 1 to 100 bytes, has %d", n)
		}
		if n := len(trainer.GetSettings()); n > maxTrainerSettings {
			c.addf("trainer.settings", "must hold at most %d keys, holds %d", maxTrainerSettings, n)
		}
		for key, value := range trainer.GetSettings() {
			if len(key) < 1 || len(key) > 63 || len(value) > maxSettingLength {
				c.addf("trainer.settings", "key %.63q must have 1 to 63 bytes and a value of at most %d", key, maxSettingLength)
			}
		}
	}
}

// problem builds the optimisation problem.
func (s *Study) problem(searchSpace *space.Space) *suggest.Problem {
	p := &suggest.Problem{Space: searchSpace, Checkpoint: s.Spec.GetCheckpointParameter()}
	for _, i := range s.objectives {
		p.Objectives = append(p.Objectives, s.objective(&s.metrics[i]))
	}
	for _, i := range s.constrained {
		p.Constraints = append(p.Constraints, s.constraint(&s.metrics[i]))
	}
	if len(s.constraints) > 0 {
		p.Allowed = s.allowed
	}
	if s.checkpoint >= 0 {
		p.Checkpoint = searchSpace.Parameters[s.checkpoint].Name
	}
	switch s.Spec.GetCost().GetMeasure().(type) {
	case *dparetov1.CostSpec_CheckpointParameter:
		p.Cost = suggest.CostCheckpoint
	case *dparetov1.CostSpec_Metric:
		p.Cost = suggest.CostMeasured
	default:
	}
	return p
}

func (s *Study) objective(m *metric) suggest.Objective {
	o := suggest.Objective{
		Name:       m.spec.GetId(),
		Goal:       suggest.Minimize,
		Transform:  transform(m.spec),
		Reference:  m.spec.GetReferenceValue(),
		SampleSize: m.spec.GetReported().GetSampleSize(),
	}
	if m.computed == nil {
		o.Noise = s.noise
	}
	if m.spec.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		o.Goal = suggest.Maximize
	}
	if o.Transform == suggest.Log {
		o.Floor = logFloor * o.Reference
	}
	if m.computed != nil {
		o.Known = func(point space.Point) float64 {
			return number(m.computed.value(s.variables(point)))
		}
		o.Search, m.rounded = m.computed.search(s, o.Reference)
	}
	return o
}

func (s *Study) constraint(m *metric) suggest.Constraint {
	c := suggest.Constraint{
		Name:       m.spec.GetId(),
		Transform:  transform(m.spec),
		Lower:      math.Inf(-1),
		Upper:      math.Inf(1),
		SampleSize: m.spec.GetReported().GetSampleSize(),
	}
	if m.computed == nil {
		c.Noise = s.noise
	}
	bounds := m.spec.GetBounds()
	if bounds.Max != nil {
		c.Upper = bounds.GetMax()
	}
	smallest := c.Upper
	if bounds.Min != nil {
		c.Lower = bounds.GetMin()
		smallest = c.Lower
	}
	if c.Transform == suggest.Log {
		c.Floor = logFloor * smallest
	}
	if m.computed != nil {
		c.Known = func(point space.Point) float64 {
			value, err := m.computed.value(s.variables(point))
			return constraintNumber(value, err)
		}
	}
	return c
}

// transform returns the transform of a metric's surrogate: none by default.
func transform(m *dparetov1.MetricSpec) suggest.Transform {
	switch m.GetTransform() {
	case dparetov1.Transform_TRANSFORM_LOG:
		return suggest.Log
	case dparetov1.Transform_TRANSFORM_LOGIT:
		return suggest.Logit
	default:
		return suggest.Identity
	}
}

// Objectives returns the ids of the objectives in the order of the problem's.
func (s *Study) Objectives() []string {
	ids := make([]string, len(s.objectives))
	for i, m := range s.objectives {
		ids[i] = s.metrics[m].spec.GetId()
	}
	return ids
}

// Checkpoints reports whether every measurement on the way is an evaluation of the
// same configuration with a smaller checkpoint parameter.
func (s *Study) Checkpoints() bool { return s.checkpoint >= 0 }

// Replicates returns the number of runs of a trial.
func (s *Study) Replicates() int32 {
	if n := s.Spec.GetReplicates(); n > 0 {
		return n
	}
	return DefaultReplicates
}

// InitialTrials returns the number of trials before a model takes over.
func (s *Study) InitialTrials() int {
	algorithm := s.Spec.GetAlgorithm()
	if n := algorithm.GetInitialTrials(); n > 0 {
		return int(n)
	}
	switch algorithm.GetName() {
	case dparetov1.Algorithm_ALGORITHM_DEFAULT, dparetov1.Algorithm_ALGORITHM_EHVI:
		return suggest.EngineInitialPoints(s.Problem)
	default:
		return DefaultInitialTrials
	}
}

// LeaseDuration returns the time that a worker may be silent.
func (s *Study) LeaseDuration() time.Duration {
	if d := s.Spec.GetLease().GetDuration(); d != nil {
		return d.AsDuration()
	}
	return DefaultLeaseDuration
}

// MaxAttempts returns how often a trial is handed out.
func (s *Study) MaxAttempts() int32 {
	if n := s.Spec.GetLease().GetMaxAttempts(); n > 0 {
		return n
	}
	return DefaultMaxAttempts
}

// variables returns the values of a point for expressions: none for parameters that do
// not exist there.
func (s *Study) variables(point space.Point) map[string]any {
	values := make(map[string]any, len(point))
	for i := range s.Problem.Space.Parameters {
		if !s.Problem.Space.Active(point, i) {
			continue
		}
		p := &s.Problem.Space.Parameters[i]
		switch p.Kind {
		case space.Integer:
			values[p.Name] = int64(point[i])
		case space.Categorical:
			values[p.Name] = p.Choices[int(point[i])]
		case space.Double, space.Discrete:
			values[p.Name] = point[i]
		}
	}
	return values
}

// Point converts the parameters of a trial to a canonical point, refusing missing,
// unknown, mistyped and out-of-range values, and values of parameters that do not
// exist there. Field paths begin with path, for example "trial.parameters".
func (s *Study) Point(path string, values map[string]*dparetov1.Value) (space.Point, error) {
	var fields invalid.Fields
	searchSpace := s.Problem.Space
	point := make(space.Point, len(searchSpace.Parameters))
	given := make([]bool, len(point)) // with a value of the domain
	for _, i := range searchSpace.Order() {
		p := &searchSpace.Parameters[i]
		field := fmt.Sprintf("%s[%q]", path, p.Name)
		value, ok := values[p.Name]
		if ok {
			x, message := coordinate(p, value)
			if message == "" && !p.Contains(x) {
				message = fmt.Sprintf("%v is not in the parameter's domain", plain(value))
			}
			if message != "" {
				fields.Addf(field, "%s", message)
			}
			point[i], given[i] = x, message == ""
		}
		if !isKnown(searchSpace, i, given, point) {
			continue // the fault lies with a parameter above
		}
		switch exists := searchSpace.Active(point, i); {
		case exists && !ok && p.Condition == nil:
			fields.Addf(field, "must be set")
		case exists && !ok:
			fields.Addf(field, "must be set where %s", s.requirement(i))
		case !exists && ok:
			fields.Addf(field, "must not be set: it exists only where %s", s.requirement(i))
		}
	}
	for id := range values {
		if _, ok := s.parameters[id]; !ok {
			fields.Addf(fmt.Sprintf("%s[%q]", path, id), "is not a parameter of the study")
		}
	}
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return searchSpace.Canonical(point), nil
}

// coordinate converts a value of a parameter; message is not empty if it cannot.
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

// Values is the inverse of Point.
func (s *Study) Values(point space.Point) map[string]*dparetov1.Value {
	values := make(map[string]*dparetov1.Value, len(point))
	for i := range s.Problem.Space.Parameters {
		if !s.Problem.Space.Active(point, i) {
			continue
		}
		p := &s.Problem.Space.Parameters[i]
		switch p.Kind {
		case space.Integer:
			values[p.Name] = &dparetov1.Value{Kind: &dparetov1.Value_IntValue{IntValue: int64(point[i])}}
		case space.Categorical:
			values[p.Name] = &dparetov1.Value{Kind: &dparetov1.Value_StringValue{StringValue: p.Choices[int(point[i])]}}
		case space.Double, space.Discrete:
			values[p.Name] = &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: point[i]}}
		}
	}
	return values
}

// At returns the configuration that a measurement at step evaluates: the point with
// the checkpoint parameter set to step. Step 0 and studies without checkpoints give
// the point itself.
func (s *Study) At(point space.Point, step int64) space.Point {
	if s.checkpoint < 0 || step == 0 {
		return point
	}
	at := point.Clone()
	at[s.checkpoint] = float64(step)
	return at
}

// LastStep returns the step at the end of a run: the value of the checkpoint
// parameter, or 0 for studies without one.
func (s *Study) LastStep(point space.Point) int64 {
	if s.checkpoint < 0 {
		return 0
	}
	return int64(point[s.checkpoint])
}
