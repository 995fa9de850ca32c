package perturbation

import (
	"context"
	"fmt"
	"math"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Names of the settings.
const (
	SettingSplit       = "split"
	SettingTrainRows   = "train_rows"
	SettingSplitSeed   = "split_seed"
	SettingGenerated   = "generated"
	SettingFeatureNorm = "feature_norm"
	SettingNoiseSource = "noise_source"
)

// Values of SettingNoiseSource.
const (
	NoiseFromSeed = "seed"
	NoiseFromOS   = "os"
)

// AdultNorm bounds the norm of the features of Adult in LIBSVM's encoding, which
// has at most 14 ones in a row, one for each attribute of the census: a property
// of the encoding, not of the data.
var AdultNorm = math.Sqrt(14)

// Data is what both trainers are made from.
type Data struct {
	Train, Test *dataset.Dataset
	FeatureNorm float64
	OSNoise     bool
}

// Settings describes the settings that Load understands.
func Settings() []trainer.Setting {
	return []trainer.Setting{
		{Name: SettingSplit, Default: dataset.SplitShuffled, Usage: "division into training and test examples: " +
			"published (30956 and 1605), uci (32561 and 16281) or shuffled (all 48842, pooled)"},
		{Name: SettingTrainRows, Default: strconv.Itoa(dataset.DefaultTrainRows),
			Usage: "training examples of the shuffled split, at least 1; the others are test examples"},
		{Name: SettingSplitSeed, Default: "1", Usage: "seed of the shuffled split and of generated examples"},
		{Name: SettingGenerated, Default: "false", Usage: "true for generated examples in place of Adult's"},
		{Name: SettingFeatureNorm, Default: strconv.FormatFloat(AdultNorm, 'g', -1, 64),
			Usage: "public bound on the Euclidean norm of the features, positive: all are divided by it, " +
				"and those that exceed it are clipped; the default is the square root of 14"},
		{Name: SettingNoiseSource, Default: NoiseFromSeed, Usage: "seed for noise that the seed of a run repeats, " +
			"os for noise from the operating system's entropy that nothing can repeat"},
	}
}

// Load reads the settings and loads the data that they name.
func Load(ctx context.Context, cache *dataset.Cache, options trainer.Options) (Data, error) {
	data := Data{FeatureNorm: AdultNorm}
	split := dataset.AdultSplit{Name: dataset.SplitShuffled, Seed: 1}
	var err error
	for name, value := range options.Settings {
		switch name {
		case SettingSplit:
			split.Name = value
		case SettingTrainRows:
			if split.TrainRows, err = strconv.Atoi(value); err != nil || split.TrainRows < 1 {
				return data, SettingError(name, value, "a whole number of at least 1")
			}
		case SettingSplitSeed:
			if split.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
				return data, SettingError(name, value, "a whole number between 0 and 2⁶⁴−1")
			}
		case SettingGenerated:
			if split.Generated, err = strconv.ParseBool(value); err != nil {
				return data, SettingError(name, value, "true or false")
			}
		case SettingFeatureNorm:
			if data.FeatureNorm, err = PositiveSetting(name, value); err != nil {
				return data, err
			}
		case SettingNoiseSource:
			if value != NoiseFromSeed && value != NoiseFromOS {
				return data, SettingError(name, value, NoiseFromSeed+" or "+NoiseFromOS)
			}
			data.OSNoise = value == NoiseFromOS
		}
	}
	source := dataset.Source{DataDir: options.DataDir, Progress: options.Progress}
	data.Train, data.Test, err = cache.Adult(ctx, split, source)
	return data, err
}

// PositiveSetting parses a positive finite number.
func PositiveSetting(name, value string) (float64, error) {
	v, err := strconv.ParseFloat(value, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, SettingError(name, value, "a positive finite number")
	}
	return v, nil
}

// SettingError says what a setting should have been.
func SettingError(name, value, want string) error {
	return fmt.Errorf("setting %s is %q, want %s", name, value, want)
}
