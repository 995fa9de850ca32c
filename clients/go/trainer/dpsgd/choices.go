package dpsgd

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
)

// parse returns the model that a run with these parameters trains, and the method. Errors are
// *trainer.ParameterError.
func (t *Trainer) parse(p trainer.Parameters) (Options, configuration, error) {
	known := []string{
		ParameterEpochs, ParameterLotSize, ParameterLearningRate, ParameterClippingNorm,
		ParameterNoiseMultiplier, ParameterNoiseVariance, ParameterModel, ParameterHidden, ParameterFeatures,
	}
	if t.options.Optimizer == SGD {
		known = append(known, ParameterOptimizer, ParameterLearningRateSGD, ParameterLearningRateAdam, ParameterNormalizedRate)
	}
	if t.options.Matrix == Banded {
		known = append(known, ParameterBands, ParameterMechanism)
	}
	if err := p.Only(known...); err != nil {
		return Options{}, configuration{}, err
	}
	o, err := t.optionsOf(p)
	if err != nil {
		return o, configuration{}, err
	}
	c, err := parseParameters(p, o.Optimizer, t.parts.Train.Rows)
	switch {
	case err != nil:
	case o.Matrix == Banded:
		c.bands, err = bands(p, c.rows, c.lotSize)
	case o.Sampling == FixedOrder:
		c.stepsPerEpoch = int64(c.rows / c.lotSize)
		if steps := mostSteps / c.stepsPerEpoch; c.epochs > steps || c.epochs > steps/c.epochs {
			err = &trainer.ParameterError{
				Name: ParameterEpochs, Reason: fmt.Sprintf("is %d: its square times the %d steps of an epoch is more than %d", c.epochs, c.stepsPerEpoch, mostSteps),
			}
		}
	}
	return o, c, err
}

// optionsOf returns the trainer's options, with the optimizer and the model that the parameters
// name in place of its own.
func (t *Trainer) optionsOf(p trainer.Parameters) (Options, error) {
	o := t.options
	o.Initialization = t.initialization
	if p.Has(ParameterOptimizer) {
		name, err := chosen(p, ParameterOptimizer, SGD, Adam)
		if err != nil {
			return o, err
		}
		o.Optimizer = name
	}
	if p.Has(ParameterFeatures) {
		f, err := chosen(p, ParameterFeatures, Raw, HOG)
		if err != nil {
			return o, err
		}
		if err := t.checkFeatures(f); err != nil {
			return o, &trainer.ParameterError{Name: ParameterFeatures, Reason: fmt.Sprintf("is %q: %v", f, err)}
		}
		o.Features = f
	}
	if p.Has(ParameterModel) {
		kind, err := chosen(p, ParameterModel, model.Kinds()...)
		if err != nil {
			return o, err
		}
		if kind != t.options.Model.Kind {
			o.Model = model.Spec{Kind: kind}
		}
	}
	if p.Has(ParameterHidden) {
		var err error
		if o.Model.Hidden, err = hidden(p, o.Model.Kind); err != nil {
			return o, err
		}
	} else if o.Model.Kind == model.MLP && len(o.Model.Hidden) == 0 {
		o.Model.Hidden = defaultHidden
	}
	o, err := o.normal()
	if err == nil {
		err = t.checkClasses(o.Model)
	}
	if err != nil {
		return o, &trainer.ParameterError{Name: ParameterModel, Reason: fmt.Sprintf("is %q: %v", o.Model.Kind, err)}
	}
	return o, nil
}

// chosen returns a parameter that must be one of the choices.
func chosen[T ~string](p trainer.Parameters, name string, choices ...T) (T, error) {
	text, err := p.Text(name)
	if err == nil && !slices.Contains(choices, T(text)) {
		err = &trainer.ParameterError{Name: name, Reason: fmt.Sprintf("is %q, want %s", text, trainer.Enumerate(choices...))}
	}
	return T(text), err
}

// hidden returns the widths of the hidden layers, which the parameter gives as the whole number
// of a single layer or as a text, such as "128,64".
func hidden(p trainer.Parameters, kind model.Kind) ([]int, error) {
	var text string
	switch value := p[ParameterHidden].(type) {
	case int64:
		text = strconv.FormatInt(value, 10)
	case string:
		text = value
	default:
		return nil, &trainer.ParameterError{Name: ParameterHidden, Reason: fmt.Sprintf("is %v (%[1]T), want an int64 or a string", value)}
	}
	if kind != model.MLP {
		return nil, &trainer.ParameterError{
			Name: ParameterHidden, Reason: fmt.Sprintf("is %s, want none: model %s has no hidden layers (give the parameter a condition on %s)", text, kind, ParameterModel),
		}
	}
	widths, ok := parseWidths(text)
	if !ok {
		return nil, &trainer.ParameterError{Name: ParameterHidden, Reason: fmt.Sprintf("is %q, want %s", text, wantWidths)}
	}
	return widths, nil
}

// learningRate returns η of an optimizer, from the parameter of all or of this one, or the normalised rate.
func learningRate(p trainer.Parameters, optimizer Optimizer) (float64, error) {
	if p.Has(ParameterNormalizedRate) {
		if optimizer != SGD || p.Has(ParameterLearningRate) || p.Has(ParameterLearningRateSGD) || p.Has(ParameterLearningRateAdam) {
			return 0, &trainer.ParameterError{Name: ParameterNormalizedRate, Reason: "is given with another learning rate or optimizer adam"}
		}
		return p.Positive(ParameterNormalizedRate)
	}
	own, other := ParameterLearningRateSGD, ParameterLearningRateAdam
	if optimizer == Adam {
		own, other = other, own
	}
	if p.Has(other) {
		return 0, &trainer.ParameterError{
			Name: other, Reason: fmt.Sprintf("is given for %s %s (give the parameter a condition on %[1]s)", ParameterOptimizer, optimizer),
		}
	}
	if !p.Has(own) {
		return p.Positive(ParameterLearningRate)
	}
	if p.Has(ParameterLearningRate) {
		return 0, &trainer.ParameterError{Name: own, Reason: "is given together with " + ParameterLearningRate + ", want one of them"}
	}
	return p.Positive(own)
}
