package spec

import (
	"fmt"
	"maps"
	"slices"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/suggest/space"
)

// Limits of the fields of a spec that are neither parameters nor metrics.
const (
	maxReplicates      = 10_000
	maxInitialTrials   = 100_000
	maxTrainerSettings = 64
	maxSettingLength   = 1000
	maxAttemptsLimit   = 100
	maxLease           = 24 * time.Hour
)

// Compile validates a spec and compiles it. Field paths in the returned
// INVALID_ARGUMENT error begin with path, for example "study.spec".
func Compile(path string, spec *dparetov1.StudySpec) (*Study, error) {
	var fields invalid.Fields
	study := CompileInto(&fields, path, spec, false)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return study, nil
}

// CompileInto is Compile for a request with other fields: it adds violations to fields. The study is
// usable if there are none, and nil if it cannot be; its Spec is WithDefaults of the given one. again is
// for a spec that has been compiled before, as of a stored study: CompileInto does not compute metrics
// to see whether they can be, which may take an accountant seconds, and warns of none.
func CompileInto(fields *invalid.Fields, path string, spec *dparetov1.StudySpec, again bool) *Study {
	c := &compiler{violations: &violations{path: path, fields: fields}, spec: WithDefaults(spec), again: again}
	return c.compile()
}

// violations are the faults of a spec. All compilers of a spec share them.
type violations struct {
	path   string
	fields *invalid.Fields
}

// addf records a violation of a field below the spec.
func (v *violations) addf(field, format string, args ...any) {
	v.fields.Addf(v.path+"."+field, format, args...)
}

// compiler compiles a spec, with a compiler for each of its larger parts.
type compiler struct {
	*violations

	spec  *dparetov1.StudySpec
	again bool // see CompileInto
}

// compile returns a study that is usable if there are no violations. It checks all that can be judged:
// expressions if the parameters have names and kinds, and their values if the space is sound.
func (c *compiler) compile() *Study {
	if c.spec == nil {
		c.fields.Addf(c.path, "must be set")
		return nil
	}
	before := c.fields.Len()
	parameters := spaceCompiler{c.violations, c.spec}
	searchSpace, isNamed := parameters.compile()
	isSound := isNamed && c.fields.Len() == before
	c.algorithm()
	c.limits()
	c.trainer()
	study := newStudy(c.spec, searchSpace)
	c.checkpoint(study)
	if isSound {
		c.priorValues(study)
	}
	expressions := c.fields.Len()
	var environment *expression.Environment
	if isNamed {
		environment = c.environment(searchSpace)
	}
	metrics := metricCompiler{c.violations, environment, study.Metrics, c.spec}
	metrics.compile()
	c.replicates()
	if environment != nil {
		c.constraints(study, environment)
		c.features(study, environment)
	}
	isSound = isSound && c.fields.Len() == expressions
	c.cost(study)
	c.constantPoints(study)
	if isSound && !c.again {
		probe := prober{c.violations, study}
		probe.probe()
	}
	if c.fields.Len() != before {
		return nil
	}
	study.Problem = newProblem(study)
	if err := study.Problem.Validate(); err != nil {
		c.addf("metrics", "%v", err)
	}
	return study
}

// Algorithms are the algorithms of the contract that this version implements, in the contract's
// order.
var Algorithms = []dparetov1.Algorithm{
	dparetov1.Algorithm_ALGORITHM_DEFAULT,
	dparetov1.Algorithm_ALGORITHM_RANDOM,
	dparetov1.Algorithm_ALGORITHM_GRID,
	dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM,
	dparetov1.Algorithm_ALGORITHM_DPARETO,
	dparetov1.Algorithm_ALGORITHM_EHVI,
	dparetov1.Algorithm_ALGORITHM_NSGA2,
}

func (c *compiler) algorithm() {
	algorithm := c.spec.GetAlgorithm()
	if !slices.Contains(Algorithms, algorithm.GetName()) {
		c.addf("algorithm.name", "must be one of the algorithms, such as ALGORITHM_DEFAULT, is %v", algorithm.GetName())
	}
	if n := algorithm.GetInitialTrials(); n < 0 || n > maxInitialTrials {
		c.addf("algorithm.initial_trials", "must be in [1, %d], or 0 for the default, is %d", maxInitialTrials, n)
	}
	if algorithm.GetPublishedAcquisition() && algorithm.GetName() != dparetov1.Algorithm_ALGORITHM_DPARETO {
		c.addf("algorithm.published_acquisition", "is for ALGORITHM_DPARETO only")
	}
}

// limits checks the fields that bound the study and its workers.
func (c *compiler) limits() {
	if n := c.spec.GetReplicates(); n < 0 || n > maxReplicates {
		c.addf("replicates", "must be in [1, %d], or 0 for the default, is %d", maxReplicates, n)
	}
	budget := c.spec.GetBudget()
	if n := budget.GetMaxTrials(); n < 0 {
		c.addf("budget.max_trials", "must not be negative, is %d", n)
	}
	if n := budget.GetMaxStagnantTrials(); n < 0 {
		c.addf("budget.max_stagnant_trials", "must not be negative, is %d", n)
	}
	if n := budget.GetMaxParallelTrials(); n < 0 {
		c.addf("budget.max_parallel_trials", "must not be negative, is %d", n)
	}
	if d := budget.GetMaxDuration(); d != nil && (d.CheckValid() != nil || d.AsDuration() <= 0) {
		c.addf("budget.max_duration", "must be a valid, positive duration")
	}
	lease := c.spec.GetLease()
	if d := lease.GetDuration(); d != nil && (d.CheckValid() != nil || d.AsDuration() < time.Second || d.AsDuration() > maxLease) {
		c.addf("lease.duration", "must be a valid duration in [1s, 24h]")
	}
	if n := lease.GetMaxAttempts(); n < 0 || n > maxAttemptsLimit {
		c.addf("lease.max_attempts", "must be in [1, %d], or 0 for the default, is %d", maxAttemptsLimit, n)
	}
}

// replicates refuses repeated runs where all of them would give the same.
func (c *compiler) replicates() {
	reported, exact := 0, 0
	for _, m := range c.spec.GetMetrics() {
		if m.GetReported() == nil {
			continue
		}
		reported++
		if m.GetReported().GetNoise() == dparetov1.Noise_NOISE_NONE {
			exact++
		}
	}
	if c.spec.GetReplicates() > 1 && reported > 0 && exact == reported {
		c.addf("replicates", "must be 1, or 0 for the default, where all reported metrics have NOISE_NONE: repeated runs give the same; is %d", c.spec.GetReplicates())
	}
}

func (c *compiler) trainer() {
	trainer := c.spec.GetTrainer()
	if trainer == nil {
		return
	}
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

// checkpoint finds the checkpoint parameter.
func (c *compiler) checkpoint(study *Study) {
	id := c.spec.GetCheckpointParameter()
	if id == "" {
		return
	}
	s := study.Points.space
	i, ok := study.Points.index[id]
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
		study.Points.checkpoint = i
	}
}

// priorValues checks the values of parameters in prior studies. The caller checks which of these lack
// them.
func (c *compiler) priorValues(study *Study) {
	values := c.spec.GetPriorValues()
	if len(values) > 0 && len(c.spec.GetPriorStudies()) == 0 {
		c.addf("prior_values", "must be empty without prior_studies")
	}
	for _, id := range slices.Sorted(maps.Keys(values)) {
		field := fmt.Sprintf("prior_values[%q]", id)
		i, ok := study.Points.index[id]
		if !ok {
			c.addf(field, "is not a parameter")
		} else if _, message := inDomain(&study.Points.space.Parameters[i], values[id]); message != "" {
			c.addf(field, "%s", message)
		}
	}
}

// cost checks the measure of cost.
func (c *compiler) cost(study *Study) {
	cost := c.spec.GetCost()
	if cost == nil {
		return
	}
	switch measure := cost.GetMeasure().(type) {
	case *dparetov1.CostSpec_Runs:
	case *dparetov1.CostSpec_CheckpointParameter:
		if c.spec.GetCheckpointParameter() == "" {
			c.addf("cost.checkpoint_parameter", "needs the study's checkpoint_parameter to be set")
		}
	case *dparetov1.CostSpec_Metric:
		i := study.Metrics.index(measure.Metric)
		switch {
		case i < 0:
			c.addf("cost.metric", "%q is not a metric", measure.Metric)
		case study.Metrics.all[i].spec.GetReported() == nil:
			c.addf("cost.metric", "%q must be a reported metric", measure.Metric)
		default:
			study.Metrics.cost = i
		}
	default:
		c.addf("cost.measure", "one of runs, checkpoint_parameter and metric must be set")
	}
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
