package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	dpsgdtrainer "github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/suggest/dpsgd"
)

// initFlags are the flags of dpareto study init.
type initFlags struct {
	trainer  string
	settings map[string]string
	id       string
	file     string
	force    bool
	trials   int
	epsilon  float64
	delta    float64
	constant bool
	dataDir  string
	data     string
	schema   string
}

func initCommand(env *command.Env) *cobra.Command {
	var f initFlags
	registry := builtin.Registry()
	cmd := &cobra.Command{
		Use:   "init {--trainer NAME | --data FILE --schema FILE}",
		Short: "Write a study file for a trainer",
		Long: `Writes a study file from the declarations of a trainer: its parameters and their domains, its
metrics, and the mechanism by which the server computes ε. Edit the file, and create the study
from it. The data need not be present: the program has the sizes of its datasets.

With --constant the command reads the data and adds a baseline that needs no run: always
predicting the most frequent class, at ε = 0. Fronts then omit worse results.

With --data and --schema the study is about your own file, and the trainer is dp-sgd unless
--trainer names another. The study has digests of the schema and of the data, and agents
refuse other files. The digest of the data is keyed, because everyone who sees the study sees it. The
command writes the key to FILE.key; agents on other machines need it in the folder of the data.

--set NAME=VALUE changes a setting. A setting with the name of a parameter fixes that
parameter: it is not searched, and ε is computed for its value.

Trainers and their settings:

` + view.Trainers(),
		Example: `  dpareto study init --trainer dp-sgd > my-study.yaml
  dpareto study init --trainer dp-adam --set model=logistic-regression --id adult-adam --file adult-adam.yaml
  dpareto study init --trainer dp-sgd --set dataset=mnist --set model=mlp --set hidden=128,64 \
      --set lot_size=600 --set noise_multiplier=4 --id digits --file digits.yaml
  dpareto study init --data my.csv --schema my.yaml --id mine --file mine.yaml`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (f.data == "") != (f.schema == "") {
				return command.Usage(errors.New("--data and --schema must be given together"))
			}
			if f.trainer == "" && f.data == "" {
				return command.Usage(errors.New("--trainer or --data is required; dpareto study init --help lists the trainers"))
			}
			var delta *float64
			if cmd.Flags().Changed("delta") {
				delta = &f.delta
			}
			return writeFile(cmd.Context(), env, registry, f, delta)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.trainer, "trainer", "", "name of the trainer")
	flags.StringToStringVar(&f.settings, "set", nil, "a setting of the trainer: NAME=VALUE")
	flags.StringVar(&f.id, "id", "", "id of the study (default the trainer's name)")
	flags.StringVar(&f.file, "file", "", "file to write (default standard output)")
	flags.BoolVar(&f.force, "force", false, "overwrite the file if it exists")
	flags.IntVar(&f.trials, "trials", 64, "number of trials of the study")
	flags.Float64Var(&f.epsilon, "epsilon-reference", 10, "largest ε of interest")
	flags.Float64Var(&f.delta, "delta", 0, "δ (default the trainer's own choice)")
	flags.BoolVar(&f.constant, "constant", false, "read the data, and add the result of always predicting the most frequent class")
	flags.StringVar(&f.data, "data", "", "your file to study")
	flags.StringVar(&f.schema, "schema", "", "schema of --data, in the same folder")
	command.DataDirFlag(cmd, &f.dataDir)
	return cmd
}

// own adds the settings of a user's own data, and says what the file has that its owner should know.
func (f *initFlags) own(ctx context.Context, env *command.Env) error {
	own, read, err := experiment.OwnSettings(ctx, f.data, f.schema)
	if err != nil {
		return err
	}
	for _, finding := range read.Findings {
		env.Sayf("%s: %s\n", own[experiment.SettingDataset], finding)
	}
	if !f.constant {
		for _, c := range experiment.Constants(read.Parts, trainer.Options{}) {
			env.Sayf("%s: %s: error %s; --constant adds it to the study\n", own[experiment.SettingDataset], c.Usage, show.Number(c.Values[experiment.MetricError]))
		}
	}
	f.dataDir = filepath.Dir(f.data)
	f.trainer = cmp.Or(f.trainer, dpsgdtrainer.Name)
	if read.Parts.Train.Classes > 2 && (f.trainer == dpsgdtrainer.Name || f.trainer == dpsgdtrainer.NameAdam) {
		own[dpsgdtrainer.SettingModel] = string(model.SoftmaxRegression)
	}
	if read.Parts.Train.Numeric() {
		own[dpsgdtrainer.SettingModel] = string(model.LinearRegression)
	}
	maps.Copy(own, f.settings)
	f.settings = own
	return nil
}

// writeFile writes the study file of a trainer.
func writeFile(ctx context.Context, env *command.Env, registry *trainer.Registry, f initFlags, delta *float64) error {
	if f.trials < 1 {
		return command.Usagef("--trials must be at least 1, is %d", f.trials)
	}
	if !(f.epsilon > 0) || math.IsInf(f.epsilon, 1) {
		return command.Usagef("--epsilon-reference must be positive and finite, is %g", f.epsilon)
	}
	if f.id != "" && !resource.IsID(f.id) {
		return command.Usagef("--id must be %s, is %q", resource.IDRule, f.id)
	}
	if f.data != "" {
		if err := f.own(ctx, env); err != nil {
			return err
		}
	}
	options := trainer.Options{Settings: f.settings, DataDir: f.dataDir, Outline: true} // the numbers of the examples are known
	read := trainer.Options{Settings: f.settings, Outline: !f.constant, DataDir: f.dataDir}
	declaration, err := registry.Declare(ctx, f.trainer, read)
	if err != nil {
		return err
	}
	pure := declaration.Privacy != nil && declaration.Privacy.Delta == 0
	if delta != nil && !(*delta > 0 && *delta < 1 || *delta == 0 && pure) {
		return command.Usagef("--delta must be above 0 and below 1, is %g", *delta)
	}
	if len(declaration.Parameters) == 0 {
		return command.Usage(errors.New("--set fixes every parameter: none is left to study"))
	}
	made, err := registry.New(ctx, f.trainer, options)
	if err != nil {
		return err
	}
	if private, ok := made.(trainer.PrivateTrainer); ok {
		if _, err := private.Mechanism(centre(declaration)); err != nil {
			return command.Usagef("with these settings no configuration can be trained: %w", err)
		}
	}
	study := studyfile.Declared{
		ID: f.id, Trainer: f.trainer, Settings: f.settings, Declaration: declaration,
		Trials: f.trials, EpsilonReference: f.epsilon, Delta: delta, File: f.file,
	}
	if f.data != "" {
		study.DataDir = f.dataDir
	}
	if study.ID == "" {
		study.ID = f.trainer
	}
	for _, d := range registry.Definitions() {
		if d.Name == f.trainer {
			study.Summary = d.Summary
			if f.data != "" {
				what, _, _ := strings.Cut(d.Summary, " on ")
				study.Summary = what + " on " + filepath.Base(f.data)
			}
			study.WithoutDatasets = publicDatasets(d, f.settings, declaration)
		}
	}
	content := study.Write()
	if _, err := studyfile.Parse(content); err != nil {
		return fmt.Errorf("the trainer's declaration makes no valid file: %w", err)
	}
	if f.file == "" {
		_, err := env.Stdout.Write(content)
		return err
	}
	mode := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if f.force {
		mode = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := os.OpenFile(f.file, mode, 0o644) //nolint:gosec // a study is no secret
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s exists; --force overwrites it", f.file)
	}
	if err != nil {
		return err
	}
	if _, err := file.Write(content); err != nil {
		return errors.Join(err, file.Close())
	}
	return file.Close()
}

// publicDatasets returns the dataset of a study if models would begin with public runs on it.
func publicDatasets(d trainer.Definition, settings map[string]string, declaration trainer.Declaration) []string {
	if p := declaration.Privacy; p == nil || p.Fields["learning_rate"] == "" {
		return nil
	}
	name := settings[experiment.SettingDataset]
	for _, s := range d.Settings {
		if s.Name == experiment.SettingDataset && name == "" {
			name = s.Default
		}
	}
	if !slices.Contains(dpsgd.PublicDatasets(declaration.Privacy.Fields["optimizer"] == "NORMALIZED"), name) {
		return nil
	}
	return []string{name}
}

// centre returns the configuration in the middle of the declared domains.
func centre(d trainer.Declaration) trainer.Parameters {
	all := make(trainer.Parameters)
	for _, p := range d.Parameters {
		middle := (p.Min + p.Max) / 2
		if p.Logarithmic {
			middle = math.Sqrt(p.Min * p.Max)
		}
		if p.Integer {
			all[p.Name] = int64(middle)
		} else {
			all[p.Name] = middle
		}
	}
	return all
}
