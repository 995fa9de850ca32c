package spec

import (
	"fmt"
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
	"github.com/dpareto/dpareto/suggest/space"
)

// Codes of warnings that the server itself adds.
const (
	// WarnNotComputable marks a computed metric that has no value at a configuration.
	WarnNotComputable = "NOT_COMPUTABLE"
	// WarnReportDiffers marks a worker's own value of a computed metric that differs
	// from the computed one.
	WarnReportDiffers = "REPORT_DIFFERS"
	// WarnLargeDelta marks a guarantee whose δ is not below 1/dataset_size: it allows to
	// publish a record.
	WarnLargeDelta = "LARGE_DELTA"
)

// function is the function behind a computed metric. It is safe for concurrent use.
type function interface {
	// value returns the metric at a configuration, with the details that belong in a
	// message.
	value(variables map[string]any) (*dparetov1.MetricValue, error)
}

// number returns the plain number of a computed value: +Inf, which is never on a
// front, where it cannot be computed.
func number(value *dparetov1.MetricValue, err error) float64 {
	if err != nil || value.Value == nil {
		return math.Inf(1)
	}
	return value.GetValue()
}

// computed compiles the function of a computed metric.
func (c *compiler) computed(field string, environment *expression.Environment, source *dparetov1.ComputedSource) function {
	if t := source.GetReportTolerance(); !(t >= 0 && t <= 1) {
		c.addf(field+".report_tolerance", "must be in [0, 1], is %g", t)
	}
	switch f := source.GetFunction().(type) {
	case *dparetov1.ComputedSource_Expression:
		if n := c.number(field+".expression", environment.Number, f.Expression); n != nil {
			return formula{n}
		}
		return nil
	case *dparetov1.ComputedSource_Privacy:
		return c.privacy(field+".privacy", environment, f.Privacy)
	default:
		c.addf(field+".function", "one of privacy and expression must be set")
		return nil
	}
}

// number compiles an expression, recording its error.
func (c *compiler) number(field string, compile func(string) (*expression.Number, error), source string) *expression.Number {
	n, err := compile(source)
	if err != nil {
		c.addf(field, "%v", err)
	}
	return n
}

// formula is a computed metric given by an expression.
type formula struct{ expression *expression.Number }

func (f formula) value(variables map[string]any) (*dparetov1.MetricValue, error) {
	x, err := f.expression.Float(variables)
	if err != nil {
		return nil, err
	}
	return &dparetov1.MetricValue{Value: &x}, nil
}

// guarantee is a computed metric that is the ε of a mechanism.
type guarantee struct {
	spec       *dparetov1.PrivacySpec
	accountant privacy.Accountant
	// mechanism returns the mechanism at a configuration and how often it is applied.
	mechanism func(variables map[string]any) (privacy.Mechanism, int64, error)
}

func (g guarantee) value(variables map[string]any) (*dparetov1.MetricValue, error) {
	mechanism, steps, err := g.mechanism(variables)
	if err != nil {
		return nil, err
	}
	result, err := privacy.Epsilon(g.accountant, mechanism, steps, g.spec.GetDelta())
	if err != nil {
		return nil, err
	}
	message := guaranteeMessage(result, g.spec)
	if m, ok := mechanism.(privacy.FixedSizeGaussian); ok && result.Delta >= 1/float64(m.DatasetSize) {
		message.Warnings = append(message.Warnings, &dparetov1.Warning{
			Code:    WarnLargeDelta,
			Message: fmt.Sprintf("delta %g is not below 1/dataset_size = %.3g: publishing one record would be allowed", result.Delta, 1/float64(m.DatasetSize)),
		})
	}
	return &dparetov1.MetricValue{Value: &result.Epsilon, Privacy: message}, nil
}

// guaranteeMessage converts a guarantee that was computed for a spec.
func guaranteeMessage(g privacy.Guarantee, spec *dparetov1.PrivacySpec) *dparetov1.PrivacyGuarantee {
	message := &dparetov1.PrivacyGuarantee{
		Epsilon:     g.Epsilon,
		Delta:       g.Delta,
		Adjacency:   spec.GetAdjacency(),
		Accountant:  spec.GetAccountant(),
		Conversion:  spec.GetConversion(),
		Order:       g.Order,
		Steps:       g.Steps,
		Assumptions: g.Assumptions,
	}
	if g.EpsilonLower > 0 {
		message.EpsilonLower = &g.EpsilonLower
	}
	for _, w := range g.Warnings {
		message.Warnings = append(message.Warnings, &dparetov1.Warning{Code: string(w.Code), Message: w.Message})
	}
	return message
}

// privacy compiles a mechanism with its accountant.
func (c *compiler) privacy(field string, environment *expression.Environment, spec *dparetov1.PrivacySpec) function {
	before := c.fields.Len()
	g := guarantee{spec: spec, accountant: c.accountant(field, spec)}
	var adjacency privacy.Adjacency
	switch spec.GetAdjacency() {
	case dparetov1.Adjacency_ADJACENCY_ADD_REMOVE:
		adjacency = privacy.AddRemove
	case dparetov1.Adjacency_ADJACENCY_REPLACE_ONE:
		adjacency = privacy.ReplaceOne
	default:
		c.addf(field+".adjacency", "must be ADJACENCY_ADD_REMOVE or ADJACENCY_REPLACE_ONE, is %v", spec.GetAdjacency())
	}
	delta := spec.GetDelta()
	pure := spec.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_PURE
	switch {
	case pure && delta != 0:
		c.addf(field+".delta", "must be 0 with ACCOUNTANT_PURE, is %g", delta)
	case !pure && !(delta > 0 && delta < 1):
		c.addf(field+".delta", "must be in (0, 1), is %g", delta)
	}
	switch m := spec.GetMechanism().(type) {
	case *dparetov1.PrivacySpec_DpSgd:
		g.mechanism = c.dpSGD(field+".dp_sgd", environment, m.DpSgd)
		if adjacency != privacy.ReplaceOne {
			c.addf(field+".adjacency", "must be ADJACENCY_REPLACE_ONE for lots of a fixed size, is %v", spec.GetAdjacency())
		}
		if pure {
			c.addf(field+".accountant", "cannot be ACCOUNTANT_PURE: DP-SGD with Gaussian noise has no pure guarantee")
		}
	case *dparetov1.PrivacySpec_SparseVector:
		g.mechanism = c.sparseVector(field+".sparse_vector", environment, m.SparseVector, adjacency)
		if !pure {
			c.addf(field+".accountant", "must be ACCOUNTANT_PURE for the sparse vector technique, is %v", spec.GetAccountant())
		}
	default:
		c.addf(field+".mechanism", "must be set")
	}
	if c.fields.Len() != before {
		return nil
	}
	return g
}

func (c *compiler) accountant(field string, spec *dparetov1.PrivacySpec) privacy.Accountant {
	conversion := spec.GetConversion()
	if spec.GetAccountant() != dparetov1.Accountant_ACCOUNTANT_RDP && conversion != dparetov1.Conversion_CONVERSION_UNSPECIFIED {
		c.addf(field+".conversion", "is only for ACCOUNTANT_RDP")
	}
	switch spec.GetAccountant() {
	case dparetov1.Accountant_ACCOUNTANT_PURE:
		return privacy.Pure{}
	case dparetov1.Accountant_ACCOUNTANT_RDP:
		switch conversion {
		case dparetov1.Conversion_CONVERSION_CLASSIC:
			return privacy.RDP{Conversion: privacy.Classic}
		case dparetov1.Conversion_CONVERSION_IMPROVED:
			return privacy.RDP{Conversion: privacy.Improved}
		default:
			c.addf(field+".conversion", "must be CONVERSION_CLASSIC or CONVERSION_IMPROVED, is %v", conversion)
		}
	default:
		c.addf(field+".accountant", "must be ACCOUNTANT_RDP or ACCOUNTANT_PURE, is %v", spec.GetAccountant())
	}
	return nil
}

// dpSGD compiles DP-SGD with lots of a fixed size.
func (c *compiler) dpSGD(field string, environment *expression.Environment, m *dparetov1.DpSgdMechanism) func(map[string]any) (privacy.Mechanism, int64, error) {
	if m.GetSampling() != dparetov1.Sampling_SAMPLING_FIXED_SIZE {
		c.addf(field+".sampling", "must be SAMPLING_FIXED_SIZE, is %v", m.GetSampling())
	}
	datasetSize := c.number(field+".dataset_size", environment.Integer, m.GetDatasetSize())
	batchSize := c.number(field+".batch_size", environment.Integer, m.GetBatchSize())
	noiseMultiplier := c.number(field+".noise_multiplier", environment.Number, m.GetNoiseMultiplier())
	var epochs, steps *expression.Number
	switch length := m.GetLength().(type) {
	case *dparetov1.DpSgdMechanism_Epochs:
		epochs = c.number(field+".epochs", environment.Integer, length.Epochs)
	case *dparetov1.DpSgdMechanism_Steps:
		steps = c.number(field+".steps", environment.Integer, length.Steps)
	default:
		c.addf(field+".length", "one of epochs and steps must be set")
	}
	return func(variables map[string]any) (privacy.Mechanism, int64, error) {
		var e evaluation
		gaussian := privacy.FixedSizeGaussian{
			DatasetSize:     e.integer("dataset_size", datasetSize, variables),
			BatchSize:       e.integer("batch_size", batchSize, variables),
			NoiseMultiplier: e.float("noise_multiplier", noiseMultiplier, variables),
		}
		if steps != nil {
			total := e.integer("steps", steps, variables)
			return gaussian, total, e.err
		}
		n := e.integer("epochs", epochs, variables)
		if e.err != nil {
			return nil, 0, e.err
		}
		total, err := privacy.Steps(gaussian.DatasetSize, gaussian.BatchSize, n)
		return gaussian, total, err
	}
}

// sparseVector compiles the sparse vector technique.
func (c *compiler) sparseVector(field string, environment *expression.Environment, m *dparetov1.SparseVectorMechanism, adjacency privacy.Adjacency) func(map[string]any) (privacy.Mechanism, int64, error) {
	cutoff := c.number(field+".cutoff", environment.Integer, m.GetCutoff())
	noise := c.number(field+".noise_scale", environment.Number, m.GetNoiseScale())
	return func(variables map[string]any) (privacy.Mechanism, int64, error) {
		var e evaluation
		mechanism := privacy.SparseVector{
			Bound:      e.integer("cutoff", cutoff, variables),
			Noise:      e.float("noise_scale", noise, variables),
			Neighbours: adjacency,
		}
		return mechanism, 1, e.err
	}
}

// evaluation evaluates the expressions of one mechanism and keeps the first error.
type evaluation struct{ err error }

func (e *evaluation) integer(field string, n *expression.Number, variables map[string]any) int64 {
	if e.err != nil {
		return 0
	}
	x, err := n.Int(variables)
	if err != nil {
		e.err = fmt.Errorf("%s: %w", field, err)
	}
	return x
}

func (e *evaluation) float(field string, n *expression.Number, variables map[string]any) float64 {
	if e.err != nil {
		return 0
	}
	x, err := n.Float(variables)
	if err != nil {
		e.err = fmt.Errorf("%s: %w", field, err)
	}
	return x
}

// probe evaluates a computed metric at the centre and the corners of the space, and
// records an error if it can be computed at none of them: a slip in a constant that
// no type check finds.
func (c *compiler) probe(field string, study *Study, f function) {
	var first error
	for _, u := range []float64{0.5, 0, 1} {
		point := make(space.Point, len(study.Problem.Space.Parameters))
		for i := range study.Problem.Space.Parameters {
			p := &study.Problem.Space.Parameters[i]
			if p.Kind != space.Categorical { // categories: the first
				point[i] = p.At(u)
			}
		}
		_, err := f.value(study.variables(point))
		if err == nil {
			return
		}
		if first == nil {
			first = err
		}
	}
	c.addf(field, "cannot be computed in the centre of the space, nor at its lowest or highest corner: %v", first)
}
