package experiment

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
)

// ownKey is a division of a user's own data in a cache.
type ownKey struct {
	request                  table.Request // without the schema
	schemaDigest, dataDigest string
}

// loadOwn loads a user's data, which must be the study's data.
func loadOwn(ctx context.Context, cache *dataset.Cache, options trainer.Options) (*dataset.Parts, error) {
	settings := options.Settings
	for _, name := range []string{SettingSplit, SettingTrainRows, SettingValidationRows, SettingGenerated} {
		if settings[name] != "" && settings[name] != "false" {
			return nil, settings.Mismatch(name, "none with "+SettingSchema+", which divides the rows")
		}
	}
	for _, name := range []string{SettingSchemaDigest, SettingDataDigest} {
		if settings[name] == "" {
			return nil, &trainer.SettingError{Name: name, Reason: "is missing, want what dpareto data check prints of " + settings[SettingDataset]}
		}
	}
	paths := make(map[string]string)
	for _, name := range []string{SettingDataset, SettingSchema} {
		file := settings[name]
		if file == "" || filepath.Base(file) != file || file == ".." || file == "." || slices.Contains(names(), file) {
			return nil, settings.Mismatch(name, "the name of a file in the data folder, without folders, that is no dataset's name")
		}
		paths[name] = filepath.Join(options.DataDir, file) // "" is the working folder
	}
	seed, err := settings.Seed(SettingSplitSeed, 1)
	if err != nil {
		return nil, err
	}
	evaluation, err := settings.Choice(SettingEvaluation, EvaluationValidation, EvaluationTest)
	if err != nil {
		return nil, err
	}
	request := table.Request{Path: paths[SettingDataset], Seed: seed, NoValidation: evaluation == EvaluationTest}
	key := ownKey{request, settings[SettingSchemaDigest], settings[SettingDataDigest]}
	return cache.Keep(ctx, key, func() (*dataset.Parts, error) {
		content, err := os.ReadFile(paths[SettingSchema])
		if err != nil {
			return nil, fmt.Errorf("%w; --data-dir names the folder of the schema and the data", err)
		}
		request := request
		if request.Schema, err = table.ParseSchema(content); err != nil {
			return nil, fmt.Errorf("%s: %w", paths[SettingSchema], err)
		}
		if digest := request.Schema.Digest(); digest != key.schemaDigest {
			return nil, fmt.Errorf("%s: has digest %s, but the study was made with a schema of digest %s; use that schema, or make a new study",
				paths[SettingSchema], digest, key.schemaDigest)
		}
		secret, err := table.ReadKey(request.Path)
		if err != nil {
			return nil, err
		}
		t, err := table.Load(ctx, request)
		if err != nil {
			return nil, err
		}
		if digest := t.Digest(secret); digest != key.dataDigest {
			return nil, fmt.Errorf("%s: has digest %s, but the study was made with data of digest %s; use the same file and key, or make a new study",
				request.Path, digest, key.dataDigest)
		}
		return t.Parts, nil
	})
}

// Identity returns the settings by which a study names a user's own data, nil if it names a dataset of the
// catalog.
func Identity(settings trainer.Settings) map[string]string {
	if settings[SettingSchema] == "" {
		return nil
	}
	return map[string]string{SettingSchemaDigest: settings[SettingSchemaDigest], SettingDataDigest: settings[SettingDataDigest]}
}

// OwnSettings returns the settings of a study on the file at path with the schema at another path, which must
// stand in one folder. It reads the file, and makes its key if there is none.
func OwnSettings(ctx context.Context, path, schemaPath string) (trainer.Settings, *table.Table, error) {
	if filepath.Clean(filepath.Dir(path)) != filepath.Clean(filepath.Dir(schemaPath)) {
		return nil, nil, errors.New("the schema must stand in the folder of the data")
	}
	content, err := os.ReadFile(schemaPath)
	if err != nil {
		return nil, nil, err
	}
	schema, err := table.ParseSchema(content)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", schemaPath, err)
	}
	t, err := table.Load(ctx, table.Request{Path: path, Schema: schema, Seed: 1})
	if err != nil {
		return nil, nil, err
	}
	key, err := table.MakeKey(path)
	if err != nil {
		return nil, nil, err
	}
	return trainer.Settings{
		SettingDataset: filepath.Base(path), SettingSchema: filepath.Base(schemaPath),
		SettingSchemaDigest: schema.Digest(), SettingDataDigest: t.Digest(key),
	}, t, nil
}

// Delta returns the default δ of a mechanism on a number of examples: at most n^−1.1, so that it is well
// below 1/n, and at most the given one. It has one significant digit.
func Delta(examples int, most float64) float64 {
	delta := math.Pow(float64(examples), -1.1)
	if delta >= most {
		return most
	}
	unit := math.Pow(10, math.Floor(math.Log10(delta)))
	digit, _ := strconv.ParseFloat(fmt.Sprintf("%ge%d", math.Floor(delta/unit), int(math.Round(math.Log10(unit)))), 64)
	return digit
}
