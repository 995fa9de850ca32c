package spec

import (
	"slices"

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
}

// features compiles what models see of DP-SGD.
func (c *compiler) features(study *Study, environment *expression.Environment) {
	const field = "algorithm.dp_sgd_features"
	declared := c.spec.GetAlgorithm().GetDpSgdFeatures()
	if declared == nil {
		return
	}
	if _, isKnown := dparetov1.DpSgdOptimizer_name[int32(declared.GetOptimizer())]; !isKnown {
		c.addf(field+".optimizer", "is unknown: %v", declared.GetOptimizer())
	}
	compiled := &features{}
	before := c.fields.Len()
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
	for i := range study.metrics.all {
		g, ok := study.metrics.all[i].computed.(guarantee)
		if !ok || compiled.training != nil {
			continue
		}
		if t, ok := g.function.Training(study.named); ok {
			compiled.training = t
		}
	}
	if compiled.training == nil {
		c.addf(field, "needs a metric that is computed from dp_sgd with a dataset_size")
	}
	if c.fields.Len() != before {
		return
	}
	for _, name := range compiled.uses() {
		p := &study.space.Parameters[study.points.index[name]]
		if p.Condition != nil {
			c.addf(field, "must not depend on parameter %q, which has a condition", name)
		}
		if p.Kind == space.Categorical {
			c.addf(field, "must not depend on parameter %q, which has categories", name)
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

// of returns the features for designers. A parameter that is alone in an expression follows from them.
func (f *features) of(study *Study) *suggest.Features {
	rate, norm := f.learningRate.Function(study.named), f.clippingNorm.Function(study.named)
	run := func(q space.Point) dpsgd.Run {
		return dpsgd.Run{
			LearningRate: rate(q), ClippingNorm: norm(q),
			Noise: f.training.Noise(q), LotSize: f.training.LotSize(q), Steps: f.training.Steps(q),
		}
	}
	indices := func(names []string) []int {
		var list []int
		for _, name := range names {
			list = append(list, study.points.index[name])
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
	normalized := study.Spec.GetAlgorithm().GetDpSgdFeatures().GetOptimizer() == dparetov1.DpSgdOptimizer_DP_SGD_OPTIMIZER_NORMALIZED
	return dpsgd.Features(run, normalized, indices(f.uses()), indices(alone))
}
