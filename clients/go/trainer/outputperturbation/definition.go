package outputperturbation

import (
	"context"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/perturbation"
)

// Definition describes the trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache) trainer.Definition {
	open := func(ctx context.Context, options trainer.Options) (*Trainer, error) {
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
	return trainer.Definition{
		Name:    Name,
		Summary: "logistic regression by output perturbation (projected SGD) on Adult and other data of two classes",
		Subsets: true,
		Settings: append([]trainer.Setting{
			{Name: SettingProjection, Default: string(NoProjection), Usage: "ball that the iterates are projected to, which decides the " +
				"sensitivity: none (2/(γn)), published (radius 1/γ: 4/(γn)) or small (radius min(1/γ, √(2·log 2/γ)))"},
			perturbation.Setting(),
		}, experiment.Settings()...),
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			return open(ctx, options)
		},
		Declare: func(ctx context.Context, options trainer.Options) (trainer.Declaration, error) {
			t, err := open(ctx, options)
			if err != nil {
				return trainer.Declaration{}, err
			}
			declaration := t.Declaration()
			declaration.Constants = experiment.Constants(t.parts, options)
			return declaration, nil
		},
	}
}

// parseSettings returns the options that the settings name.
func parseSettings(settings trainer.Settings) (o Options, err error) {
	projection, err := settings.Choice(SettingProjection, string(NoProjection), string(PublishedProjection), string(SmallProjection))
	if err != nil {
		return o, err
	}
	o.Projection = Projection(projection)
	o.FeatureNorm, err = settings.Positive(perturbation.SettingFeatureNorm, 0)
	return o, err
}

// Declaration returns γ, σ and δ of the example of Avent et al. (2020, Figure 1), and up
// to its 10 epochs.
func (t *Trainer) Declaration() trainer.Declaration {
	fields := map[string]string{
		"dataset_size":       strconv.Itoa(t.parts.Train.Rows),
		"regularization":     ParameterRegularization,
		"feature_norm":       "1.0", // of the scaled features
		"standard_deviation": ParameterStandardDeviation,
	}
	if radius := t.options.Projection.expression(); radius != "" {
		fields["radius"] = radius
	}
	return trainer.Declaration{
		Parameters: []trainer.ParameterDeclaration{
			{
				Name: ParameterEpochs, Usage: "passes over the training examples", Integer: true,
				Min: 1, Max: 10,
			},
			{
				Name: ParameterRegularization, Usage: "coefficient of the ridge penalty",
				Min: 1e-4, Max: 1, Logarithmic: true,
			},
			{
				Name: ParameterStandardDeviation, Usage: "standard deviation of the noise on each weight",
				Min: 0.1, Max: 10, Logarithmic: true,
			},
		},
		Metrics: append(experiment.Metrics(t.parts, "nats"), experiment.CostMetrics(t.parts)...),
		Privacy: &trainer.PrivacyDeclaration{
			Mechanism: "output_perturbation",
			Fields:    fields,
			Delta:     experiment.Delta(t.parts.Train.Rows, 1e-6),
			Adjacency: "REPLACE_ONE",
		},
		CheckpointParameter: ParameterEpochs,
	}
}
