package experiment

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

func TestLoad(t *testing.T) {
	cache := dataset.NewCache()
	for _, tt := range []struct {
		settings trainer.Settings
		want     dataset.Split
	}{
		{trainer.Settings{}, dataset.Split{
			Dataset: "adult", Name: "shuffled", Seed: 1, HoldOutSeed: 1, Train: 35000, Validation: 5000, Test: 8842,
		}},
		{trainer.Settings{SettingTrainRows: "40000"}, dataset.Split{
			Dataset: "adult", Name: "shuffled", Seed: 1, HoldOutSeed: 1, Train: 35000, Validation: 5000, Test: 8842,
		}},
		{trainer.Settings{SettingTrainRows: "1000", SettingSplitSeed: "3"}, dataset.Split{
			Dataset: "adult", Name: "shuffled", Seed: 3, HoldOutSeed: 3, Train: 900, Validation: 100, Test: 47842,
		}},
		{trainer.Settings{SettingSplit: "published", SettingValidationRows: "956"}, dataset.Split{
			Dataset: "adult", Name: "published", Seed: 1, HoldOutSeed: 1, Train: 30000, Validation: 956, Test: 1605,
		}},
		{trainer.Settings{SettingSplit: "published", SettingEvaluation: "test"}, dataset.Split{
			Dataset: "adult", Name: "published", Seed: 1, Train: 30956, Test: 1605,
		}},
		{trainer.Settings{SettingSplit: "uci", SettingEvaluation: "test"}, dataset.Split{
			Dataset: "adult", Name: "uci", Seed: 1, Train: 32561, Test: 16281,
		}},
		{trainer.Settings{SettingDataset: "mnist"}, dataset.Split{
			Dataset: "mnist", Name: "published", Seed: 1, HoldOutSeed: 1, Train: 55000, Validation: 5000, Test: 10000,
		}},
	} {
		tt.settings[SettingGenerated] = "true"
		tt.want.Generated = true
		parts, err := Load(t.Context(), cache, trainer.Options{Settings: tt.settings})
		require.NoError(t, err)
		if diff := cmp.Diff(tt.want, parts.Split); diff != "" {
			t.Errorf("%v: split (-want +got):\n%s", tt.settings, diff)
		}
		again, err := Load(t.Context(), cache, trainer.Options{Settings: tt.settings})
		if err != nil || again != parts {
			t.Errorf("%v: the same division is loaded twice (error %v)", tt.settings, err)
		}
	}
}

// A tenth of a small dataset is held out.
func TestValidationRows(t *testing.T) {
	for _, tt := range []struct {
		name string
		rows int
		want int
	}{
		{"adult", 0, 5000}, {"adult", 19999, 1999}, {"adult", 5, 1},
		{"gisette", 0, 600}, {"breast-cancer", 0, 56}, {"kddcup99", 0, 5000},
	} {
		if got := validationRows(tt.name, tt.rows); got != tt.want {
			t.Errorf("%s of %d rows: %d for validation, want %d", tt.name, tt.rows, got, tt.want)
		}
	}
}

func TestLoadErrors(t *testing.T) {
	for _, tt := range []struct {
		name, value, want string
	}{
		{SettingSplit, "paper", `split "paper" is unknown`},
		{SettingTrainRows, "many", `setting train_rows is "many", want a whole number of at least 1`},
		{SettingTrainRows, "0", `setting train_rows is "0", want a whole number of at least 1`},
		{SettingTrainRows, "48842", "train rows 48842"},
		{SettingSplitSeed, "-1", `setting split_seed is "-1", want a whole number between 0 and`},
		{SettingGenerated, "perhaps", `setting generated is "perhaps", want true or false`},
		{SettingDataset, "iris", `dataset "iris" is unknown`},
		{SettingEvaluation, "train", `setting evaluation is "train", want validation or test`},
		{SettingValidationRows, "0", `setting validation_rows is "0", want a whole number of at least 1`},
		{SettingValidationRows, "40000", "validation rows 40000"},
	} {
		settings := trainer.Settings{SettingGenerated: "true"}
		settings[tt.name] = tt.value
		_, err := Load(t.Context(), dataset.NewCache(), trainer.Options{Settings: settings})
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("error %v, want %s", err, tt.want)
		}
	}
	_, err := Load(t.Context(), dataset.NewCache(), trainer.Options{Settings: trainer.Settings{
		SettingGenerated: "true", SettingEvaluation: "test", SettingValidationRows: "5",
	}})
	if err == nil || !strings.Contains(err.Error(), "setting validation_rows is given for evaluation test") {
		t.Errorf("validation rows for evaluation on test examples: error %v", err)
	}
	_, err = Load(t.Context(), dataset.NewCache(), trainer.Options{Settings: trainer.Settings{
		SettingGenerated: "true", SettingEvaluation: "test", SettingSplit: dataset.SplitUntouched,
	}})
	if err == nil || !strings.Contains(err.Error(), "setting evaluation is test for split untouched") {
		t.Errorf("a search on examples that none may see: error %v", err)
	}
}

// The default δ is below n^−1.1, and never above the trainer's own.
func TestDelta(t *testing.T) {
	for _, tt := range []struct {
		examples int
		most     float64
		want     float64
	}{
		{1, 1e-5, 1e-5}, {35000, 1e-5, 1e-5}, {55000, 1e-5, 6e-6}, {489021, 1e-5, 5e-7}, {1000000, 1e-5, 2e-7}, {1000000, 1e-7, 1e-7},
	} {
		if got := Delta(tt.examples, tt.most); got != tt.want || tt.examples > 1000 && got > 1/float64(tt.examples) {
			t.Errorf("%d examples: δ %v, want %v", tt.examples, got, tt.want)
		}
	}
}
