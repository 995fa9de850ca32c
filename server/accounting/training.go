package accounting

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/server/expression"
)

// Training is the DP-SGD of a mechanism as functions of the parameters of a study, in the order of
// the environment. Parameters may have any values between their bounds, integers too. A function is NaN
// where its expression fails.
type Training struct {
	// IsNamed says that the mechanism names its learning rate and clipping norm.
	IsNamed bool

	// Noise is the standard deviation of the noise in the sum of a lot's gradients over the clipping
	// norm, LotSize the (expected) number of records in a lot, and Steps the number of lots in a
	// run, which need not be whole.
	Noise, LotSize, Steps expression.Native

	// Uses are the names of the variables in each of the expressions behind these functions, but for the
	// dataset size.
	Uses [][]string
}

// Training returns the DP-SGD of the mechanism, and false for another mechanism, for one without the number of training
// records, and for correlated noise. Of a composition it is the first part that names its learning rate, or else the
// first without a count. Of a repeated selection it is the DP-SGD of a run. named returns the values for expressions.
func (f *Function) Training(named func([]float64) map[string]any) (*Training, bool) {
	d := f.mechanism.training
	if d == nil || d.datasetSize == nil || d.bands != nil {
		return nil, false
	}
	// The sensitivity that σ is relative to is twice the clipping norm when a record is replaced.
	scale := 1.0
	if d.adjacency == privacy.ReplaceOne {
		scale = 2
	}
	sigma, length, n := d.noiseMultiplier.Function(named), d.length.Function(named), d.datasetSize.Function(named)
	t := &Training{
		IsNamed: d.isNamed,
		Noise:   func(values []float64) float64 { return scale * sigma(values) },
		Uses:    [][]string{d.noiseMultiplier.Uses(), d.length.Uses()},
	}
	if d.probability != nil {
		probability := d.probability.Function(named)
		t.LotSize = func(values []float64) float64 { return probability(values) * n(values) }
		t.Uses = append(t.Uses, d.probability.Uses())
	} else {
		t.LotSize = d.batchSize.Function(named)
		t.Uses = append(t.Uses, d.batchSize.Uses())
	}
	t.Steps = length
	if d.unit == unitEpochs {
		t.Steps = func(values []float64) float64 { return length(values) * math.Max(1, n(values)/t.LotSize(values)) }
	}
	return t, true
}
