package experiment

import (
	"context"
	"fmt"
	"slices"

	"github.com/dpareto/dpareto/clients/go/subset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
)

// Names of the settings.
const (
	SettingDataset        = "dataset"
	SettingSplit          = "split"
	SettingTrainRows      = "train_rows"
	SettingSplitSeed      = "split_seed"
	SettingGenerated      = "generated"
	SettingEvaluation     = "evaluation"
	SettingValidationRows = "validation_rows"

	// SettingSchema and the digests name a user's own data.
	SettingSchema       = "schema"
	SettingSchemaDigest = "schema_digest"
	SettingDataDigest   = "data_digest"
)

// Values of SettingEvaluation, which the package comment explains.
const (
	EvaluationValidation = "validation"
	EvaluationTest       = "test"
)

// defaultValidationRows is the default number of validation examples: usual for MNIST,
// and enough to distinguish errors of 15 and 16 percent.
const defaultValidationRows = 5000

// Settings describes the settings that Load reads.
func Settings() []trainer.Setting {
	return []trainer.Setting{
		{Name: SettingDataset, Default: dataset.NameAdult, Usage: "data: " + trainer.Enumerate(names()...) + "; with schema, the name of your file"},
		{Name: SettingSplit, Default: "", Usage: "division into training and test examples: published, untouched (of adult: published, whose test " +
			"examples validate, and a9a.t tests), uci (of adult) or shuffled (all pooled); shuffled by default of adult, otherwise the dataset's own"},
		{Name: SettingTrainRows, Default: "", Usage: "training and validation examples of the shuffled split, the others being test " +
			"examples; 40000 of adult by default"},
		{Name: SettingSplitSeed, Default: "1", Usage: "seed of the shuffled split, of the validation examples and of generated examples"},
		{Name: SettingGenerated, Default: "false", Usage: "true for generated examples in the shape of adult or mnist"},
		{Name: SettingEvaluation, Default: EvaluationValidation, Usage: "examples for the error: validation (held out of the " +
			"training ones, with test_error in addition) or test (the paper's protocol)"},
		{Name: SettingValidationRows, Default: "", Usage: "validation examples, taken from the training ones; 5000 by default, or a tenth " +
			"of fewer than 20000 training examples"},
		{Name: SettingSchema, Default: "", Usage: "name of the schema of your file, in the same data folder; " +
			"it also divides the rows"},
		{Name: SettingSchemaDigest, Default: "", Usage: "digest of the schema, as dpareto study init writes it"},
		{Name: SettingDataDigest, Default: "", Usage: "keyed digest of the file, as dpareto study init writes it"},
		{Name: trainer.SettingParts, Default: "1", Usage: "disjoint parts of equal size of the training examples, on each of which a run is trained; " +
			"metrics are means over the parts"},
		{Name: trainer.SettingShards, Default: "1", Usage: "disjoint shards of equal size into which the training examples are cut; agents set " +
			"it by the study's private_mode"},
		{Name: trainer.SettingShard, Default: "0", Usage: "the shard to train on, from 0"},
	}
}

// Load reads the settings and loads the data that they name, once per cache, of which only the subset
// of the options is for training. Under the paper's
// protocol there is no validation part. It returns *trainer.SettingError and the errors of
// dataset.Load.
func Load(ctx context.Context, cache *dataset.Cache, options trainer.Options) (*dataset.Parts, error) {
	shards, err := options.Settings.Int(trainer.SettingShards, 1, 1)
	if err != nil {
		return nil, err
	}
	shard, err := options.Settings.Int(trainer.SettingShard, 0, 0)
	if err == nil && shard >= shards {
		err = options.Settings.Mismatch(trainer.SettingShard, fmt.Sprintf("one of 0 to %d", shards-1))
	}
	if err != nil {
		return nil, err
	}
	load := loadNamed
	if options.Settings[SettingSchema] != "" {
		load = loadOwn
	}
	parts, err := load(ctx, cache, options)
	if err == nil && options.Subset != nil {
		parts, err = onSubset(parts, *options.Subset)
	}
	if err == nil && shards > 1 {
		parts, err = parts.Shard(shard, shards)
	}
	return parts, err
}

// loadNamed loads a dataset of the catalog.
func loadNamed(ctx context.Context, cache *dataset.Cache, options trainer.Options) (*dataset.Parts, error) {
	name := options.Settings.Text(SettingDataset, dataset.NameAdult)
	for _, digest := range []string{SettingSchemaDigest, SettingDataDigest} {
		if options.Settings[digest] != "" {
			return nil, options.Settings.Mismatch(digest, "none without "+SettingSchema)
		}
	}
	division, err := parseDivision(options.Settings, name)
	if err != nil {
		return nil, err
	}
	return cache.Load(ctx, name, division, dataset.Source{DataDir: options.DataDir, Outline: options.Outline, Progress: options.Progress})
}

// onSubset returns the parts with a subset of the training rows in the place of all.
func onSubset(parts *dataset.Parts, s subset.Subset) (*dataset.Parts, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	if s.Of != parts.Train.Rows {
		return nil, fmt.Errorf("dataset %s: has %d training examples, but the study draws its subset from %d; compare its final_run.dataset_size with the trainer's settings",
			parts.Train.Name, parts.Train.Rows, s.Of)
	}
	return parts.Subset(s.Indices()), nil
}

// parseDivision returns the division of the named dataset that the settings ask for.
func parseDivision(settings trainer.Settings, name string) (d dataset.Division, err error) {
	d.Split = settings.Text(SettingSplit, "")
	if d.Split == "" && name == dataset.NameAdult {
		d.Split = dataset.SplitShuffled
	}
	if d.TrainRows, err = settings.Int(SettingTrainRows, 1, 0); err != nil {
		return d, err
	}
	if d.ValidationRows, err = settings.Int(SettingValidationRows, 1, 0); err != nil {
		return d, err
	}
	if d.Seed, err = settings.Seed(SettingSplitSeed, 1); err != nil {
		return d, err
	}
	if d.Generated, err = settings.Bool(SettingGenerated); err != nil {
		return d, err
	}
	evaluation, err := settings.Choice(SettingEvaluation, EvaluationValidation, EvaluationTest)
	if err != nil {
		return d, err
	}
	switch {
	case evaluation == EvaluationTest && d.ValidationRows > 0:
		return d, &trainer.SettingError{
			Name: SettingValidationRows, Reason: "is given for " + SettingEvaluation + " " + EvaluationTest + ", which holds no examples out",
		}
	case d.Split == dataset.SplitUntouched && evaluation == EvaluationTest:
		return d, &trainer.SettingError{
			Name: SettingEvaluation, Reason: "is " + EvaluationTest + " for " + SettingSplit + " " + d.Split + ", whose test examples no search may see",
		}
	case evaluation == EvaluationValidation && d.ValidationRows == 0 && d.Split != dataset.SplitUntouched:
		d.ValidationRows = validationRows(name, d.TrainRows)
	}
	return d, nil
}

// validationRows is the default number of validation examples among trainRows, or 0 for
// as many as the dataset has.
func validationRows(name string, trainRows int) int {
	catalog := dataset.Catalog()
	if i := slices.IndexFunc(catalog, func(info dataset.Info) bool { return info.Name == name }); i >= 0 && trainRows == 0 {
		trainRows = catalog[i].TrainRows
	}
	if trainRows < 4*defaultValidationRows {
		return max(1, trainRows/10)
	}
	return defaultValidationRows
}

// names returns the names of the datasets.
func names() []string {
	catalog := dataset.Catalog()
	all := make([]string, len(catalog))
	for i, info := range catalog {
		all[i] = info.Name
	}
	return all
}
