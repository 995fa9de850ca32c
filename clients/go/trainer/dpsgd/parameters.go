package dpsgd

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/privacy"
)

// Names of the parameters, which the package comment explains.
const (
	ParameterEpochs          = "epochs"
	ParameterLotSize         = "lot_size"
	ParameterLearningRate    = "learning_rate"
	ParameterClippingNorm    = "clipping_norm"
	ParameterNoiseMultiplier = "noise_multiplier"
	ParameterNoiseVariance   = "noise_variance"
)

// configuration is what the parameters of a run say.
type configuration struct {
	rows            int // of the training examples
	epochs          int64
	stepsPerEpoch   int64
	lotSize         int
	learningRate    float64
	clippingNorm    float64
	noiseMultiplier float64
}

// parseParameters checks the parameters for training on rows examples.
func parseParameters(p trainer.Parameters, rows int) (configuration, error) {
	c := configuration{rows: rows}
	if err := p.Only(ParameterEpochs, ParameterLotSize, ParameterLearningRate, ParameterClippingNorm,
		ParameterNoiseMultiplier, ParameterNoiseVariance); err != nil {
		return c, err
	}
	lotSize, err := integer(p, ParameterLotSize, int64(rows))
	if err != nil {
		return c, err
	}
	c.lotSize = int(lotSize)
	if c.epochs, err = integer(p, ParameterEpochs, math.MaxInt64); err != nil {
		return c, err
	}
	if c.learningRate, err = number(p, ParameterLearningRate); err != nil {
		return c, err
	}
	if c.noiseMultiplier, err = noise(p); err != nil {
		return c, err
	}
	if unclipped, err := p.Float(ParameterClippingNorm); err == nil && math.IsInf(unclipped, 1) && c.noiseMultiplier == 0 {
		c.clippingNorm = unclipped
	} else if c.clippingNorm, err = number(p, ParameterClippingNorm); err != nil {
		return c, err
	}
	c.stepsPerEpoch, err = privacy.StepsPerEpoch(int64(rows), lotSize)
	return c, err
}

// integer returns a parameter between 1 and most.
func integer(p trainer.Parameters, name string, most int64) (int64, error) {
	v, err := p.Int(name)
	if err != nil {
		return 0, err
	}
	if v < 1 || v > most {
		return 0, &trainer.ParameterError{Name: name, Reason: fmt.Sprintf("is %d, want between 1 and %d", v, most)}
	}
	return v, nil
}

// number returns a positive finite parameter.
func number(p trainer.Parameters, name string) (float64, error) {
	v, err := p.Float(name)
	if err != nil {
		return 0, err
	}
	if !(v > 0) || math.IsInf(v, 1) {
		return 0, &trainer.ParameterError{Name: name, Reason: fmt.Sprintf("is %v, want a positive finite number", v)}
	}
	return v, nil
}

// noise returns σ, which is given as itself or as its square.
func noise(p trainer.Parameters) (float64, error) {
	name, other := ParameterNoiseMultiplier, ParameterNoiseVariance
	if p.Has(other) {
		if p.Has(name) {
			return 0, &trainer.ParameterError{Name: other, Reason: "is given beside " + name + ", want one of them"}
		}
		name = other
	}
	v, err := p.Float(name)
	if err != nil {
		return 0, err
	}
	if !(v >= 0) || math.IsInf(v, 1) {
		return 0, &trainer.ParameterError{Name: name, Reason: fmt.Sprintf("is %v, want a finite number of at least 0", v)}
	}
	if name == ParameterNoiseVariance {
		v = math.Sqrt(v)
	}
	return v, nil
}
