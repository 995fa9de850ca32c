// Package perturbation has the common part of the trainers by output and by
// objective perturbation: examples of two classes with a public bound on their norm.
package perturbation

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// SettingFeatureNorm is the name of the setting that bounds the norm of the features.
const SettingFeatureNorm = "feature_norm"

// Setting describes SettingFeatureNorm.
func Setting() trainer.Setting {
	return trainer.Setting{Name: SettingFeatureNorm, Default: "", Usage: "public bound on the Euclidean norm of the features, " +
		"positive: all are divided by it, and those that exceed it are clipped; by default the square root of 14 for adult, the " +
		"norm of the schema for your file, otherwise the square root of the number of features"}
}

// adultNorm bounds the norm of the features of Adult in LIBSVM's encoding, which
// has at most 14 ones in a row, one for each attribute of the census: a property
// of the encoding, not of the data.
var adultNorm = math.Sqrt(14)

// defaultNorm is a bound for features between 0 and 1, as all of the catalog are.
func defaultNorm(parts *dataset.Parts) float64 {
	switch name := parts.Split.Dataset; {
	case parts.Train.FeatureNorm > 0:
		return parts.Train.FeatureNorm
	case name == dataset.NameAdult || name == dataset.NameAdultRaw:
		return adultNorm
	default:
		return math.Sqrt(float64(parts.Train.Dim))
	}
}

// Examples are the parts of a dataset, scaled by a bound on the norm.
type Examples struct {
	Train     *linear.Examples
	Evaluator experiment.Evaluator[*linear.Examples]
}

// NewExamples scales the parts by the norm; 0 means the default of SettingFeatureNorm. It
// returns an error if the norm is not positive and finite or there are not two classes,
// and the errors of linear.NewExamples and experiment.NewEvaluator.
func NewExamples(parts *dataset.Parts, norm float64) (e Examples, err error) {
	if norm == 0 {
		norm = defaultNorm(parts)
	}
	if !(norm > 0) || math.IsInf(norm, 1) {
		return e, fmt.Errorf("feature norm is %v, want a positive finite number", norm)
	}
	if parts.Train.Classes != 2 {
		return e, fmt.Errorf("dataset %s has %d classes, want 2", parts.Train.Name, parts.Train.Classes)
	}
	prepare := func(d *dataset.Dataset) (*linear.Examples, error) { return linear.NewExamples(d, norm) }
	if e.Train, err = prepare(parts.Train); err != nil {
		return e, err
	}
	e.Evaluator, err = experiment.NewEvaluator(parts, prepare)
	return e, err
}
