package spec

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/space"
)

// features are the expressions of a DpSgdFeatures.
type features struct {
	learningRate, clippingNorm *expression.Number
	training                   *accounting.Training
	normalized                 bool     // the optimizer divides a gradient by its size
	public                     bool     // models may begin with public runs
	without                    []string // data sets of those that are left out
}

// PublicDatasets returns the names of the data sets of public runs that models of the study begin with.
func (s *Study) PublicDatasets() []string {
	p := s.Problem
	for j := range p.Objectives {
		if p.MeanOf(j) != nil {
			return slices.DeleteFunc(dpsgd.PublicDatasets(s.features.normalized), func(name string) bool {
				return slices.Contains(s.features.without, name)
			})
		}
	}
	return nil
}

// defaultFeatures returns the features of a spec with what it leaves to the mechanism that names its learning
// rate, or nil if nothing is left to that.
func defaultFeatures(spec *dparetov1.StudySpec) *dparetov1.DpSgdFeatures {
	declared := spec.GetAlgorithm().GetDpSgdFeatures()
	named, ok := namedTrainer(spec)
	if !ok || declared.GetDisabled() {
		return nil
	}
	if declared == nil {
		switch spec.GetAlgorithm().GetName() {
		case dparetov1.Algorithm_ALGORITHM_UNSPECIFIED, dparetov1.Algorithm_ALGORITHM_DEFAULT:
		default: // methods to compare with, which are what their authors say
			return nil
		}
	}
	filled := proto.CloneOf(declared)
	if filled == nil {
		// A private study may have the records of the public runs: the spec does not exclude it.
		filled = &dparetov1.DpSgdFeatures{WithoutPublicRuns: spec.GetPrivateMode() != nil}
	}
	filled.LearningRate = cmp.Or(filled.GetLearningRate(), named.GetLearningRate())
	filled.ClippingNorm = cmp.Or(filled.GetClippingNorm(), named.GetClippingNorm())
	filled.Optimizer = cmp.Or(filled.GetOptimizer(), named.GetOptimizer())
	if declared != nil && proto.Equal(filled, declared) {
		return nil
	}
	return filled
}

// allTrainers returns the DP-SGD mechanisms of all metrics, in order.
func allTrainers(spec *dparetov1.StudySpec) (all []trainer) {
	for i, m := range spec.GetMetrics() {
		all = append(all, trainers(fmt.Sprintf("metrics[%d].computed.privacy", i), m.GetComputed().GetPrivacy())...)
	}
	return all
}

// namedTrainer returns the first mechanism that names its learning rate and clipping norm.
func namedTrainer(spec *dparetov1.StudySpec) (named trainer, ok bool) {
	all := allTrainers(spec)
	i := slices.IndexFunc(all, func(t trainer) bool { return t.GetLearningRate() != "" && t.GetClippingNorm() != "" })
	if i < 0 {
		return trainer{}, false
	}
	return all[i], true
}

// trainers checks what mechanisms say of their optimizers. No accountant needs it, so that this is the only check.
func (c *compiler) trainers(environment *expression.Environment) {
	for _, t := range allTrainers(c.spec) {
		rate, norm := t.GetLearningRate(), t.GetClippingNorm()
		if _, isKnown := dparetov1.DpSgdOptimizer_name[int32(t.GetOptimizer())]; !isKnown {
			c.addf(t.path+".optimizer", "is unknown: %v", t.GetOptimizer())
		}
		switch {
		case rate == "" && norm == "":
			if t.GetOptimizer() != dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_UNSPECIFIED {
				c.addf(t.path+".optimizer", "must be unset without learning_rate and clipping_norm")
			}
			continue
		case rate == "":
			c.addf(t.path+".learning_rate", "must be set with clipping_norm")
		case norm == "":
			c.addf(t.path+".clipping_norm", "must be set with learning_rate")
		}
		if t.GetDatasetSize() == "" {
			c.addf(t.path+".dataset_size", "must be set with learning_rate and clipping_norm")
		}
		for name, source := range map[string]string{"learning_rate": rate, "clipping_norm": norm} {
			if source != "" {
				if _, err := environment.Number(source); err != nil {
					c.addf(t.path+"."+name, "%v", err)
				}
			}
		}
	}
}

// agree checks that features agree with the mechanism that names its learning rate, and returns the path at
// which the spec names it.
func (c *compiler) agree(field string, declared *dparetov1.DpSgdFeatures) (path string) {
	named, ok := namedTrainer(c.spec)
	if !ok {
		return field
	}
	for _, x := range []struct{ name, declared, named string }{
		{"learning_rate", declared.GetLearningRate(), named.GetLearningRate()},
		{"clipping_norm", declared.GetClippingNorm(), named.GetClippingNorm()},
	} {
		if x.declared != x.named {
			c.addf(field+"."+x.name, "must be %q as in %s, or unset, is %q", x.named, named.path, x.declared)
		}
	}
	if o := named.GetOptimizer(); o != dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_UNSPECIFIED && o != declared.GetOptimizer() {
		c.addf(field+".optimizer", "must be %v as in %s, or unset, is %v", o, named.path, declared.GetOptimizer())
	}
	return named.path
}

// features compiles what models see of DP-SGD.
func (c *compiler) features(study *Study, environment *expression.Environment) {
	const field = "algorithm.dp_sgd_features"
	before := c.fields.Len()
	c.trainers(environment)
	declared := c.spec.GetAlgorithm().GetDpSgdFeatures()
	if declared == nil || c.fields.Len() != before {
		return
	}
	if declared.GetDisabled() {
		if !proto.Equal(declared, &dparetov1.DpSgdFeatures{Disabled: true}) {
			c.addf(field, "must have no other field with disabled")
		}
		return
	}
	path := c.agree(field, declared)
	if _, isKnown := dparetov1.DpSgdOptimizer_name[int32(declared.GetOptimizer())]; !isKnown {
		c.addf(field+".optimizer", "is unknown: %v", declared.GetOptimizer())
	}
	compiled := &features{
		normalized: declared.GetOptimizer() == dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED,
		public:     !declared.GetWithoutPublicRuns() && len(c.spec.GetPriorStudies()) == 0,
		without:    slices.Compact(slices.Sorted(slices.Values(declared.GetWithoutDatasets()))),
	}
	for i, name := range declared.GetWithoutDatasets() {
		if all := slices.Concat(dpsgd.PublicDatasets(false), dpsgd.PublicDatasets(true)); !slices.Contains(all, name) {
			c.addf(fmt.Sprintf("%s.without_datasets[%d]", field, i), "must be one of %s, is %q", strings.Join(all, ", "), name)
		}
	}
	number := func(name, source string) (n *expression.Number) {
		n, err := environment.Number(source)
		if err != nil {
			c.addf(field+"."+name, "%v", err)
			return nil
		}
		return n
	}
	compiled.learningRate = number("learning_rate", declared.GetLearningRate())
	compiled.clippingNorm = number("clipping_norm", declared.GetClippingNorm())
	for i := range study.Metrics.all {
		g, ok := study.Metrics.all[i].computed.(guarantee)
		if !ok {
			continue
		}
		if t, ok := g.function.Training(study.Points.named); ok && (compiled.training == nil || t.IsNamed && !compiled.training.IsNamed) {
			compiled.training = t
		}
	}
	if compiled.training == nil {
		c.addf(path, "needs a metric that is computed from dp_sgd with a dataset_size")
	}
	if c.fields.Len() != before {
		return
	}
	instead := ""
	if path != field {
		instead = ": leave learning_rate and clipping_norm out"
	}
	for _, name := range compiled.uses() {
		p := &study.Points.space.Parameters[study.Points.index[name]]
		if p.Condition != nil {
			c.addf(path, "must not depend on parameter %q, which has a condition%s", name, instead)
		}
		if p.Kind == space.Categorical {
			c.addf(path, "must not depend on parameter %q, which has categories%s", name, instead)
		}
	}
	study.features = compiled
}

// expressions returns the names of the parameters in each expression.
func (f *features) expressions() [][]string {
	return append([][]string{f.learningRate.Uses(), f.clippingNorm.Uses()}, f.training.Uses...)
}

// uses returns the names of the parameters that the features depend on.
func (f *features) uses() []string {
	names := slices.Concat(f.expressions()...)
	slices.Sort(names)
	return slices.Compact(names)
}

// of returns the features for designers. They replace a parameter that is alone in an expression, if this
// grows or falls all along it.
func (f *features) of(study *Study) *suggest.Features {
	rate, norm := f.learningRate.Function(study.Points.named), f.clippingNorm.Function(study.Points.named)
	run := func(q space.Point) dpsgd.Run {
		return dpsgd.Run{
			LearningRate: rate(q), ClippingNorm: norm(q),
			Noise: f.training.Noise(q), LotSize: f.training.LotSize(q), Steps: f.training.Steps(q),
		}
	}
	indices := func(names []string) []int {
		var list []int
		for _, name := range names {
			list = append(list, study.Points.index[name])
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	var alone []string
	for _, names := range f.expressions() {
		if len(names) == 1 {
			alone = append(alone, names...)
		}
	}
	all := dpsgd.Features(run, f.normalized, indices(f.uses()), nil)
	all.Replaced = slices.DeleteFunc(indices(alone), func(j int) bool { return !determines(all, study.Points.space, j) })
	if f.public {
		all.Mean = dpsgd.PublicMean(f.normalized, f.without...)
	}
	return all
}

// determines reports whether some feature grows or falls all along a parameter, with the others in the middle
// of their scales: at 33 values of it, or all if there are fewer.
func determines(f *suggest.Features, s *space.Space, j int) bool {
	const most = 33
	q := make(space.Point, len(s.Parameters))
	for i := range q {
		if p := &s.Parameters[i]; p.Kind != space.Categorical {
			q[i] = p.At(0.5)
		}
	}
	p := &s.Parameters[j]
	grows, falls := make([]bool, f.Count), make([]bool, f.Count)
	before, now := make([]float64, f.Count), make([]float64, f.Count)
	last := math.NaN()
	for i := range most {
		if q[j] = p.At(float64(i) / (most - 1)); q[j] == last {
			continue
		}
		f.Evaluate(now, q)
		for k := range now {
			if math.IsNaN(last) {
				grows[k], falls[k] = true, true
			} else {
				grows[k], falls[k] = grows[k] && now[k] > before[k], falls[k] && now[k] < before[k]
			}
		}
		before, now = now, before
		last = q[j]
	}
	return slices.Contains(grows, true) || slices.Contains(falls, true)
}
