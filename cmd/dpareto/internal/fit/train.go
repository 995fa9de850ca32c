package fit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/fitted"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

type trainFlags struct {
	study     string
	recommend map[string]string
	out       string
	dataDir   string
}

// TrainCommand returns the command train.
func TrainCommand(env *command.Env) *cobra.Command {
	var f trainFlags
	cmd := remote.Action(env, &cobra.Command{
		Use:   "train STUDY --recommend METRIC=BOUND --out FOLDER",
		Short: "Train the model of a recommended configuration",
		Long: `Trains one model with the configuration that "dpareto recommend" returns for the bounds. Randomness
comes from the operating system's entropy. The folder gets model.safetensors, model.onnx for other
programs, and card.json with the schema of the rows, the guarantee, and the choice of the
configuration. The study must be on your own data, with dp-sgd or dp-adam.

The guarantee is for the training rows and this run. The search touched the same rows: its cost
is also in the card. This run is not a trial of the study, so the study's privacy ledger
does not list it. The card has no measured error, since validation and test rows have no guarantee.`,
		Example: `  dpareto train mine --recommend epsilon=1 --out model
  dpareto predict model new.csv`,
	}, func(ctx context.Context, call *remote.Call) error { return train(ctx, call, f) })
	flags := cmd.Flags()
	remote.TakeStudy(cmd, &f.study)
	flags.StringToStringVar(&f.recommend, "recommend", nil, "bound on an objective, as METRIC=BOUND; several are separated by commas (required)")
	flags.StringVar(&f.out, "out", "", "new or empty folder for the model (required)")
	command.DataDirFlag(cmd, &f.dataDir)
	return cmd
}

// job is a model to train.
type job struct {
	study      *dparetov1.Study
	schema     *table.Schema
	trainer    trainer.PrivateTrainer
	parameters trainer.Parameters
	answer     *dparetov1.QueryFrontResponse
	bounds     map[string]float64
	constants  []trainer.ConstantDeclaration
}

func train(ctx context.Context, call *remote.Call, f trainFlags) error {
	if f.out == "" || len(f.recommend) == 0 {
		return command.Usage(errors.New("--recommend and --out are required"))
	}
	if err := fitted.CheckFolder(f.out); err != nil {
		return err
	}
	handle := call.Handle(f.study)
	j, err := f.prepare(ctx, handle)
	if err != nil {
		return err
	}
	card, err := j.card(ctx, call, handle)
	if err != nil {
		return err
	}
	m := &fitted.Model{Card: *card}
	run := trainer.Run{Parameters: j.parameters, Replicates: 1, Fitted: func(_ int, layers []trainer.Layer) { m.Layers = layers }}
	measured, err := j.trainer.Train(ctx, run, nil)
	if err != nil {
		return err
	}
	if err := m.Write(f.out); err != nil {
		return err
	}
	call.Env.Sayf("%s\n", card.Statement)
	for _, name := range []string{experiment.MetricError, experiment.MetricTestError} {
		if values := measured.Metrics[name]; len(values) == 1 {
			call.Env.Sayf("%s: %s (for you: it is no part of the model, and not private)\n", name, show.Number(values[0]))
		}
	}
	for _, c := range j.constants {
		if errors, worst := measured.Metrics[experiment.MetricError], c.Values[experiment.MetricError]; len(errors) == 1 && errors[0] >= worst {
			call.Env.Sayf("the error is no lower than without a model (%s: %s)\n", c.Usage, show.Number(worst))
		}
	}
	_, err = fmt.Fprintln(call.Env.Stdout, f.out)
	return err
}

// prepare finds the configuration, and opens the trainer on the study's data.
func (f *trainFlags) prepare(ctx context.Context, handle *dpareto.Study) (*job, error) {
	study, err := handle.Get(ctx)
	if err != nil {
		return nil, err
	}
	spec := study.GetSpec()
	settings := trainer.Settings(spec.GetTrainer().GetSettings())
	name := spec.GetTrainer().GetName()
	switch metric := show.PrivacyMetric(spec); {
	case spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil || spec.GetTrainLedger() != "":
		return nil, errors.New("the study publishes under its own guarantee, and this run would not be charged to it")
	case experiment.Identity(settings) == nil:
		return nil, errors.New("the study is not about your own data (dpareto study init --data)")
	case metric == nil:
		return nil, errors.New("the study has no metric that is computed from a mechanism")
	case name != dpsgd.Name && name != dpsgd.NameAdam || settings.Text(trainer.SettingParts, "1") != "1":
		return nil, fmt.Errorf("trainer %s hands out no model of these settings; %s and %s do, without %s", name, dpsgd.Name, dpsgd.NameAdam, trainer.SettingParts)
	}
	j := &job{study: study, bounds: make(map[string]float64)}
	for id, text := range f.recommend {
		if j.bounds[id], err = strconv.ParseFloat(text, 64); err != nil {
			return nil, command.Usagef("--recommend %s: must be a number, is %q", id, text)
		}
	}
	if j.answer, err = handle.QueryFront(ctx, j.bounds, 0); err != nil {
		return nil, err
	}
	if !j.answer.GetReachable() || len(j.answer.GetParameters()) == 0 {
		return nil, errors.New("no configuration to train meets the bounds; see dpareto recommend")
	}
	j.parameters = dpareto.Plain(j.answer.GetParameters())
	content, err := os.ReadFile(filepath.Join(f.dataDir, settings[experiment.SettingSchema]))
	if err != nil {
		return nil, fmt.Errorf("%w; --data-dir names the folder of the schema and the data", err)
	}
	if j.schema, err = table.ParseSchema(content); err != nil {
		return nil, err
	}
	registry, options := builtin.Registry(), trainer.Options{DataDir: f.dataDir, Settings: settings}
	opened, err := registry.New(ctx, name, options)
	if err != nil {
		return nil, err
	}
	declaration, err := registry.Declare(ctx, name, options)
	if err != nil {
		return nil, err
	}
	j.constants = declaration.Constants
	private, ok := opened.(trainer.PrivateTrainer)
	if !ok {
		return nil, fmt.Errorf("trainer %s does not know its mechanism", opened.Name())
	}
	j.trainer = private
	stated := j.answer.GetPrivacy()
	if stated == nil {
		return nil, errors.New("the configuration has no guarantee")
	}
	return j, agent.CheckStated(private, show.PrivacyMetric(spec).GetId(), "this run", j.parameters, stated)
}

// card returns the card of the model.
func (j *job) card(ctx context.Context, call *remote.Call, handle *dpareto.Study) (*fitted.Card, error) {
	settings := trainer.Settings(j.study.GetSpec().GetTrainer().GetSettings())
	stated := j.answer.GetPrivacy()
	kind := settings.Text(dpsgd.SettingModel, string(model.LogisticRegression))
	if chosen, ok := j.parameters[dpsgd.ParameterModel].(string); ok {
		kind = chosen
	}
	schema := *j.schema
	schema.Missing = schema.MissingTexts() // in full, for readers without the defaults
	card := &fitted.Card{
		Format: fitted.Format, Model: model.Kind(kind), Schema: &schema,
		Trainer: j.trainer.Name(), Parameters: j.parameters,
		Guarantee: fitted.Guarantee{Epsilon: stated.GetEpsilon(), Delta: stated.GetDelta(), Adjacency: enum.Name(stated.GetAdjacency())},
		Search:    fitted.Search{Study: view.ID(j.study.GetName()), Revision: j.answer.GetRevision(), Bounds: j.bounds},
	}
	for _, a := range stated.GetAssumptions() {
		card.Guarantee.Assumptions = append(card.Guarantee.Assumptions, fitted.Assumption{
			Text: a.GetText(), Premise: enum.Underscored(a.GetPremise()), CheckedBy: enum.Underscored(a.GetCheckedBy()),
		})
	}
	if trials := j.answer.GetTrials(); len(trials) > 0 {
		card.Search.Statement = "dpareto statement " + view.ID(j.study.GetName()) + " --trial " + view.ID(trials[0])
	}
	ledger, err := call.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: handle.Name()})
	if err != nil {
		return nil, &remote.CallError{Action: "read the privacy ledger of " + handle.Name(), Err: err}
	}
	card.Search.Runs = ledger.GetRuns()
	search := "the ledger of the study states no ε for them"
	if composed := ledger.GetComposed(); composed != nil && ledger.GetUnknownRuns() == 0 && !show.IsSeeded(ledger.GetWarnings()) {
		card.Search.Epsilon, card.Search.Delta = new(composed.GetEpsilon()), composed.GetDelta()
		what := "together they have ε = %s and δ = %s by the ledger of the study"
		if ledger.GetAdaptive() {
			what = "by the ledger of the study, ε = %s at δ = %s bounds what they have lost so far. Results influenced later runs, so this was no promise beforehand"
		}
		search = fmt.Sprintf(what+". ε and δ of this run are added to it", show.NumberUp(composed.GetEpsilon()), show.Number(composed.GetDelta()))
	}
	card.Statement = fmt.Sprintf("One run with ε = %s and δ = %s, %s adjacency, for the training rows. The search that chose the configuration had "+
		"%d runs on the same rows: %s. Validation and test rows, whose errors guided the search, have no guarantee. ε is for %s. "+
		"The ledger does not have this run: further trainings on the same rows, also those that were thrown away, add their ε.",
		show.NumberUp(card.Guarantee.Epsilon), show.Number(card.Guarantee.Delta), card.Guarantee.Adjacency, card.Search.Runs, search, unit(j.study.GetSpec(), j.schema))
	return card, nil
}

// unit says whose rows ε is for.
func unit(spec *dparetov1.StudySpec, schema *table.Schema) string {
	switch k := show.PrivacyMetric(spec).GetComputed().GetPrivacy().GetDpSgd().GetRecordsPerUser(); {
	case k != "":
		return "all training rows of a user, if these are at most " + k
	case schema.Group != "":
		return fmt.Sprintf("one row, and larger for an id in column %q with several", schema.Group)
	default:
		return "one row"
	}
}
