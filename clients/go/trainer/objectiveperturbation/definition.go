package objectiveperturbation

import (
	"context"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/privacy"
)

// Names of the settings, besides feature_norm, which bounds the norm of the features, and
// the settings of package experiment.
const (
	SettingLoss        = "loss"
	SettingHuberWidth  = "huber_width"
	SettingCalibration = "calibration"
)

// Values of SettingLoss.
const (
	LossLogistic = "logistic"
	LossHuber    = "huber"
)

// DefaultHuberWidth is the default of SettingHuberWidth, from Chaudhuri et al. (2011).
const DefaultHuberWidth = 0.5

// Values of SettingCalibration.
const (
	CalibrationRankOne    = "rank_one"   // privacy.RankOne
	CalibrationChaudhuri  = "chaudhuri"  // privacy.Chaudhuri
	CalibrationContinuous = "continuous" // privacy.ContinuousChaudhuri
)

var rules = map[string]privacy.ObjectiveCalibration{
	CalibrationRankOne:    privacy.RankOne,
	CalibrationChaudhuri:  privacy.Chaudhuri,
	CalibrationContinuous: privacy.ContinuousChaudhuri,
}

// Definition describes the trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache) trainer.Definition {
	return trainer.Definition{
		Name: Name,
		Summary: "logistic regression or Huber SVM by objective perturbation (exact minimiser, pure DP) " +
			"on Adult and other data of two classes",
		Subsets: true,
		Settings: append([]trainer.Setting{
			{Name: SettingLoss, Default: LossLogistic, Usage: "logistic, or huber for the support vector machine"},
			{Name: SettingHuberWidth, Default: "", Usage: "half width h of the rounded corner of the huber loss, positive; its curvature " +
				"is 1/(2h); 0.5 by default"},
			{Name: SettingCalibration, Default: CalibrationRankOne, Usage: "division of ε between noise and regulariser: rank_one (least " +
				"noise), chaudhuri (as published) or continuous (as published, without its pole)"},
			perturbation.Setting(),
		}, experiment.Settings()...),
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			return Open(ctx, cache, options)
		},
		Declare: func(ctx context.Context, options trainer.Options) (trainer.Declaration, error) {
			t, err := Open(ctx, cache, options)
			if err != nil {
				return trainer.Declaration{}, err
			}
			declaration := t.Declaration()
			declaration.Constants = experiment.Constants(t.parts, options)
			return declaration, nil
		},
	}
}

// Open returns the trainer for the settings that Definition describes. It returns
// *trainer.SettingError and the errors of experiment.Load and New.
func Open(ctx context.Context, cache *dataset.Cache, options trainer.Options) (*Trainer, error) {
	o, err := parseSettings(options.Settings)
	if err != nil {
		return nil, err
	}
	parts, err := experiment.Load(ctx, cache, options)
	if err != nil {
		return nil, err
	}
	return New(parts, o)
}

// parseSettings returns the options that the settings name.
func parseSettings(settings trainer.Settings) (o Options, err error) {
	loss, err := settings.Choice(SettingLoss, LossLogistic, LossHuber)
	if err != nil {
		return o, err
	}
	width, err := settings.Positive(SettingHuberWidth, DefaultHuberWidth)
	if err != nil {
		return o, err
	}
	switch {
	case loss == LossHuber:
		o.Loss = linear.Huber{Width: width}
	case settings[SettingHuberWidth] != "":
		return o, settings.Mismatch(SettingHuberWidth, "none without "+SettingLoss+" "+LossHuber)
	}
	calibration, err := settings.Choice(SettingCalibration, CalibrationRankOne, CalibrationChaudhuri, CalibrationContinuous)
	if err != nil {
		return o, err
	}
	o.Calibration = rules[calibration]
	o.FeatureNorm, err = settings.Positive(perturbation.SettingFeatureNorm, 0)
	return o, err
}

// Declaration returns domains that are useful on data of the size of Adult: beyond ε = 10
// there is little to gain, and with a regularisation above 0.1 the model predicts the
// majority.
func (t *Trainer) Declaration() trainer.Declaration {
	parameters := []trainer.ParameterDeclaration{
		{
			Name: ParameterTargetEpsilon, Usage: "ε of one model, which the noise is calibrated to",
			Min: 0.05, Max: 10, Logarithmic: true,
		},
		{
			Name: ParameterRegularization, Usage: "least coefficient of the ridge penalty",
			Min: 1e-6, Max: 0.1, Logarithmic: true,
		},
	}
	fields := map[string]string{
		"epsilon":        ParameterTargetEpsilon,
		"dataset_size":   strconv.Itoa(t.parts.Train.Rows),
		"regularization": ParameterRegularization,
		"curvature":      strconv.FormatFloat(t.options.Loss.Curvature(), 'e', -1, 64),
	}
	switch t.options.Calibration {
	case privacy.Chaudhuri:
		fields["calibration"] = "CHAUDHURI"
	case privacy.ContinuousChaudhuri:
		fields["calibration"] = "CONTINUOUS"
	default:
		fields["calibration"] = "RANK_ONE"
		fields["split"] = ParameterSplit
		parameters = append(parameters, trainer.ParameterDeclaration{
			Name: ParameterSplit, Usage: "share of ε of the regulariser",
			Min: 0.01, Max: 0.5, Logarithmic: true,
		})
	}
	lossUnit := ""
	if t.options.Loss == (linear.Logistic{}) {
		lossUnit = "nats"
	}
	return trainer.Declaration{
		Parameters: parameters,
		Metrics:    experiment.Metrics(t.parts, lossUnit),
		Privacy: &trainer.PrivacyDeclaration{
			Mechanism: "objective_perturbation",
			Fields:    fields,
			Adjacency: "REPLACE_ONE",
		},
	}
}
