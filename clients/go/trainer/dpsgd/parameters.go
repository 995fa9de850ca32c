package dpsgd

import (
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/correlated"
)

// Names of the parameters, which the package comment explains.
const (
	ParameterEpochs          = "epochs"
	ParameterLotSize         = "lot_size"
	ParameterLearningRate    = "learning_rate"
	ParameterClippingNorm    = "clipping_norm"
	ParameterNoiseMultiplier = "noise_multiplier"
	ParameterNoiseVariance   = "noise_variance"

	// ParameterLearningRateSGD and ParameterLearningRateAdam are the learning rate of one
	// optimizer, for studies with a domain for each.
	ParameterLearningRateSGD  = ParameterLearningRate + "_sgd"
	ParameterLearningRateAdam = ParameterLearningRate + "_adam"

	// ParameterNormalizedRate is, for SGD, the learning rate times the clipping norm: the most by which one
	// step without noise moves the weights. It takes the place of the learning rate. Its good values depend
	// on the clipping norm much less than good learning rates do.
	ParameterNormalizedRate = "normalized_" + ParameterLearningRate

	// ParameterModel, ParameterHidden and ParameterFeatures replace the settings of these names for one run.
	ParameterModel     = SettingModel
	ParameterHidden    = SettingHidden
	ParameterFeatures  = SettingFeatures
	ParameterOptimizer = "optimizer" // of DP-SGD and DP-MF only

	ParameterBands     = "bands"     // of DP-MF only
	ParameterMechanism = "mechanism" // of DP-MF only
)

// configuration holds the parameters of a run.
type configuration struct {
	rows            int // of the training examples
	epochs          int64
	stepsPerEpoch   int64
	lotSize         int
	learningRate    float64
	clippingNorm    float64
	noiseMultiplier float64
	bands           int // of correlated noise; 1 for independent noise
	column          correlated.Column
}

// probability returns that with which a step of Poisson sampling draws a row, of its group if there are several.
func (c configuration) probability() float64 {
	return float64(c.lotSize) / float64(c.rows) * float64(c.bands)
}

// parseParameters checks the numeric parameters for training on rows examples by an optimizer.
func parseParameters(p trainer.Parameters, optimizer Optimizer, rows int) (configuration, error) {
	c := configuration{rows: rows, bands: 1}
	lotSize, err := p.IntIn(ParameterLotSize, 1, int64(rows))
	if err != nil {
		return c, err
	}
	c.lotSize = int(lotSize)
	if c.epochs, err = p.IntIn(ParameterEpochs, 1, math.MaxInt64); err != nil {
		return c, err
	}
	if c.learningRate, err = learningRate(p, optimizer); err != nil {
		return c, err
	}
	if c.noiseMultiplier, err = noise(p); err != nil {
		return c, err
	}
	if unclipped, err := p.Float(ParameterClippingNorm); err == nil && math.IsInf(unclipped, 1) && c.noiseMultiplier == 0 {
		c.clippingNorm = unclipped
	} else if c.clippingNorm, err = p.Positive(ParameterClippingNorm); err != nil {
		return c, err
	}
	if p.Has(ParameterNormalizedRate) {
		if c.learningRate /= c.clippingNorm; !(c.learningRate > 0) {
			return c, &trainer.ParameterError{Name: ParameterNormalizedRate, Reason: "is given without a finite " + ParameterClippingNorm}
		}
	}
	c.stepsPerEpoch, err = privacy.StepsPerEpoch(int64(rows), lotSize)
	return c, err
}

// noise returns σ, from the noise multiplier or the noise variance.
func noise(p trainer.Parameters) (float64, error) {
	if p.Has(ParameterNoiseMultiplier) && p.Has(ParameterNoiseVariance) {
		return 0, &trainer.ParameterError{Name: ParameterNoiseVariance, Reason: "is given together with " + ParameterNoiseMultiplier + ", want one of them"}
	}
	name := noiseName(p)
	v, err := p.NotNegative(name)
	if name == ParameterNoiseVariance {
		v = math.Sqrt(v)
	}
	return v, err
}

// noiseName returns the name of the parameter that gives the noise.
func noiseName(p trainer.Parameters) string {
	if p.Has(ParameterNoiseVariance) {
		return ParameterNoiseVariance
	}
	return ParameterNoiseMultiplier
}
