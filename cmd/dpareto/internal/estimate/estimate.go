package estimate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
)

// flags say what to estimate, and how.
type flags struct {
	dataset        string
	dataDir        string
	settings       map[string]string
	loss           string
	calibration    string
	regularization float64
	split          float64
	method         string
	anchors        int
	at             float64
	draws          int
	seed           uint64
	epsilons       string
	format         output.Format
}

// methods are the values of --method.
var methods = map[string]estimate.Method{
	"hermite": estimate.MethodHermite,
	"newton":  estimate.MethodNewton,
	"line":    estimate.MethodLine,
}

// Command returns the command estimate.
func Command(env *command.Env) *cobra.Command {
	return command.Group("estimate", "Estimate the utility of private models at any ε from a few trainings",
		`Estimates loss and error of logistic regression or the Huber SVM with objective perturbation
as functions of ε, from a few exact trainings, without a server. The models of one noise,
scaled to every ε, are a smooth function of ε with known derivatives.

`+warning+`
docs/how-to/estimating.md explains the methods.`,
		curveCommand(env), epsilonForCommand(env), modelCommand(env))
}

// warning says that estimates are not private.
const warning = `Estimates are computed from the raw records and are NOT differentially private: they are
for internal use only. An ε that is chosen by them depends on the records, which the ε of the
model that is trained next does not cover.
`

// methodHelp explains --method.
const methodHelp = `
Methods:

  hermite  trains at --anchors values of ε for every draw of the noise and interpolates in
           log ε with exact slopes; nothing is estimated beyond the anchors
  newton   trains at every ε, each from the model before: exact
  line     trains at one ε (--at) and follows the tangent, as published; for comparison`

func (f *flags) add(cmd *cobra.Command) {
	set := cmd.Flags()
	set.SortFlags = false
	set.StringVar(&f.dataset, "dataset", dataset.NameAdult, "dataset of two classes, by its name")
	command.DataDirFlag(cmd, &f.dataDir)
	set.StringToStringVar(&f.settings, "set", nil, "another setting of the trainer "+objectiveperturbation.Name+", such as train_rows=10000: NAME=VALUE")
	set.StringVar(&f.loss, "loss", objectiveperturbation.LossLogistic, "logistic, or huber for the support vector machine")
	set.StringVar(&f.calibration, "calibration", objectiveperturbation.CalibrationRankOne,
		"division of ε between noise and regulariser: rank-one, chaudhuri or continuous")
	set.Float64Var(&f.regularization, "regularization", 1e-6, "least coefficient λ of the ridge penalty, positive")
	set.Float64Var(&f.split, "split", 0, "share of ε for the regulariser in the calibration rank-one, between 0 and 1 (default 0.05)")
	set.StringVar(&f.method, "method", "hermite", "hermite, newton or line")
	set.IntVar(&f.anchors, "anchors", estimate.DefaultAnchors, "trainings of hermite for each draw, at least 2")
	set.Float64Var(&f.at, "at", 0, "ε of the training of line (default the geometric mean of the least and the largest ε)")
}

func (f *flags) addDraws(cmd *cobra.Command) {
	cmd.Flags().IntVar(&f.draws, "draws", estimate.DefaultDraws, "draws of the noise that are averaged, at least 1")
	cmd.Flags().Uint64Var(&f.seed, "seed", 1, "seed of the noise")
}

// problem is the problem that the flags describe.
type problem struct {
	estimate.Problem

	trainer  *objectiveperturbation.Trainer
	settings trainer.Settings
}

// open loads the data.
func (f *flags) open(ctx context.Context, env *command.Env) (problem, error) {
	if err := command.CheckDataDir(f.dataDir); err != nil {
		return problem{}, command.Usage(err)
	}
	settings := maps.Clone(trainer.Settings(f.settings))
	if settings == nil {
		settings = make(trainer.Settings)
	}
	for flag, setting := range map[string]struct{ name, value string }{
		"--dataset":     {experiment.SettingDataset, f.dataset},
		"--loss":        {objectiveperturbation.SettingLoss, f.loss},
		"--calibration": {objectiveperturbation.SettingCalibration, strings.ReplaceAll(f.calibration, "-", "_")},
	} {
		if _, given := settings[setting.name]; given {
			return problem{}, command.Usagef("give %s, not --set %s", flag, setting.name)
		}
		settings[setting.name] = setting.value
	}
	download := env.Download("downloading " + f.dataset)
	made, err := objectiveperturbation.Open(ctx, dataset.NewCache(), trainer.Options{DataDir: f.dataDir, Settings: settings, Progress: download.Set})
	download.Finish()
	if _, ok := errors.AsType[*trainer.SettingError](err); ok {
		err = command.Usage(err)
	}
	if err != nil {
		return problem{}, err
	}
	p := problem{trainer: made, settings: settings, Problem: estimate.Problem{
		Risk: made.Risk(), HeldOut: made.HeldOut(), Regularization: f.regularization, Calibration: made.Calibration(), Split: f.split,
	}}
	if f.split != 0 && p.Calibration != privacy.RankOne {
		return problem{}, command.Usage(errors.New("--split is for --calibration rank-one"))
	}
	if err := p.Validate(); err != nil {
		return problem{}, command.Usage(err)
	}
	return p, nil
}

// estimator trains what the method needs for values of ε from lower to upper. It also
// returns a function that ends the display of progress.
func (f *flags) estimator(ctx context.Context, env *command.Env, p problem, lower, upper float64) (*estimate.Estimator, func(), error) {
	method, ok := methods[f.method]
	if !ok {
		return nil, nil, command.Usagef("--method must be hermite, newton or line, is %q", f.method)
	}
	if f.draws < 1 || f.anchors < 2 {
		return nil, nil, command.Usagef("--draws must be at least 1 and --anchors at least 2, are %d and %d", f.draws, f.anchors)
	}
	progress := &modelProgress{console: env.Console, label: "training on " + f.dataset}
	e, err := estimate.New(ctx, p.Problem, estimate.Options{
		Method: method, Lower: lower, Upper: upper, Anchors: f.anchors, At: f.at, Draws: f.draws, Seed: f.seed,
		Progress: progress.set,
	})
	if err != nil {
		progress.finish()
		return nil, nil, err
	}
	return e, progress.finish, nil
}

// modelProgress shows how many models have been trained. It starts again when many more are
// needed.
type modelProgress struct {
	console *console.Console
	label   string
	mu      sync.Mutex
	total   int
	shown   *console.Progress
}

func (p *modelProgress) set(done, total int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.shown == nil:
		p.total = total
		p.shown = p.console.Start(p.label, int64(total), "models")
	case total > p.total+1:
		p.total = total
		p.shown.Restart(p.label, int64(total), "models")
	}
	p.shown.Set(int64(min(done, p.total)), "")
}

func (p *modelProgress) finish() { p.shown.Finish() }

// notes state the meaning of the numbers, and that they are not private.
func (f *flags) notes(p problem) []string {
	train := p.Risk.Examples
	rule := p.settings[objectiveperturbation.SettingCalibration]
	return []string{
		fmt.Sprintf("worth of one model with objective perturbation, %s loss on %s: pure ε-DP when one of %d training records of %d "+
			"features is replaced (calibration %s, λ = %s, exact minimiser)", f.loss, p.trainer.Parts().Split, train.Rows(), train.Dim(), rule, show.Plain(f.regularization)),
		f.describeMethod(),
		"NOT differentially private: computed from the raw training and held-out records, for internal use only. An ε chosen by these numbers " +
			"depends on the records, and the ε of the model does not cover this choice",
		"the model that answers 0 to everything has the loss " + show.Number(p.Risk.Loss.Value(0)),
	}
}

func (f *flags) describeMethod() string {
	switch methods[f.method] {
	case estimate.MethodNewton:
		return fmt.Sprintf("exact: trained at every ε for each of %d draws of the noise. Standard errors (se) are of the mean over the noise, "+
			"deviations (sd) of one model", f.draws)
	case estimate.MethodLine:
		return fmt.Sprintf("tangents in ε through one training for each of %d draws of the noise. They may be wrong by more than the loss itself and end at a loss of 0. "+
			"Standard errors (se) are of the mean over the noise alone", f.draws)
	default:
		return fmt.Sprintf("interpolated between %d exact trainings for each of %d draws of the noise. Standard errors (se) are of the mean "+
			"over the noise, without the error of interpolation, deviations (sd) of one model", f.anchors, f.draws)
	}
}

// epsilonCount is the number of values of ε in a range by default.
const epsilonCount = 20

// parseEpsilons returns the values of ε of a list, 0.1,0.5,1, or of a range, 0.05..1 or
// 0.05..1/12 for twelve values at equal distances of log ε.
func parseEpsilons(text string) ([]float64, error) {
	number := func(text string) (float64, error) {
		x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil || !(x > 0) || math.IsInf(x, 1) {
			return 0, fmt.Errorf("--epsilons: must be positive numbers, has %q", text)
		}
		return x, nil
	}
	lower, rest, isRange := strings.Cut(text, "..")
	if !isRange {
		var epsilons []float64
		for part := range strings.SplitSeq(text, ",") {
			x, err := number(part)
			if err != nil {
				return nil, err
			}
			epsilons = append(epsilons, x)
		}
		return epsilons, nil
	}
	upper, many, counted := strings.Cut(rest, "/")
	from, err := number(lower)
	if err != nil {
		return nil, err
	}
	to, err := number(upper)
	if err != nil {
		return nil, err
	}
	count := epsilonCount
	if counted {
		if count, err = strconv.Atoi(strings.TrimSpace(many)); err != nil || count < 2 {
			return nil, fmt.Errorf("--epsilons: the number of values must be at least 2, is %q", many)
		}
	}
	if from >= to {
		return nil, fmt.Errorf("--epsilons: the range must begin below its end, is %v..%v", from, to)
	}
	return estimate.Anchors(from, to, count), nil
}

func curveCommand(env *command.Env) *cobra.Command {
	server := remote.New(env)
	var f flags
	var picture, study string
	cmd := &cobra.Command{
		Use:   "curve",
		Short: "Estimate loss and error as functions of ε",
		Long: `Estimates the mean loss and error rate, on the training records and on held-out ones, as
functions of ε, averaged over draws of the noise.

` + warning + methodHelp + `

With --study the points become completed trials of a study on the server, in the form of
the trainer ` + objectiveperturbation.Name + `, for later studies to name as prior knowledge
(prior_studies). The study is created if it does not exist. The estimates are not private, and
neither is a study that uses them.`,
		Example: `  dpareto estimate curve --set train_rows=10000 --epsilons 0.05..1 --plot adult.svg
  dpareto estimate curve --set generated=true --set train_rows=3000 --epsilons 0.1,0.5,1 --draws 4
  dpareto estimate curve --dataset kddcup99 --loss huber --epsilons 0.05..1 --output csv`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return curve(cmd.Context(), env, server, f, picture, study)
		},
	}
	f.add(cmd)
	f.addDraws(cmd)
	set := cmd.Flags()
	set.StringVar(&f.epsilons, "epsilons", "0.05..1", "values of ε: a list 0.1,0.5,1, or a range 0.05..1 or 0.05..1/12 with a number of them")
	set.StringVar(&picture, "plot", "", "also draw the curves to this file ("+plot.Formats+")")
	set.StringVar(&study, "study", "", "also add the points as trials to the study of this id, which is created if it does not exist")
	command.OutputFlag(cmd, &f.format)
	server.AddFlags(cmd)
	return cmd
}

// curve prints and draws a curve, and adds its points to a study.
func curve(ctx context.Context, env *command.Env, server *remote.Server, f flags, picture, study string) error {
	epsilons, err := parseEpsilons(f.epsilons)
	if err != nil {
		return command.Usage(err)
	}
	if picture != "" {
		if err := plot.CheckPath(picture); err != nil {
			return command.Usage(err)
		}
	}
	lower, upper := epsilons[0], epsilons[0]
	for _, epsilon := range epsilons {
		lower, upper = min(lower, epsilon), max(upper, epsilon)
	}
	if lower == upper { // a range for the anchors around a single value
		lower, upper = lower/1.1, upper*1.1
	}
	p, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	e, finish, err := f.estimator(ctx, env, p, lower, upper)
	if err != nil {
		return err
	}
	estimates, err := e.Curve(ctx, epsilons)
	finish()
	if err != nil {
		return err
	}
	notes := f.notes(p)
	if err := f.printCurve(env, estimates, notes, p.Risk.Loss.Value(0)); err != nil {
		return err
	}
	if picture != "" {
		if err := f.figure(p, estimates).Save(picture); err != nil {
			return err
		}
	}
	if study != "" {
		return addToStudy(ctx, env, server, f, p, remote.StudyID(study), estimates)
	}
	return nil
}

// metrics are the values of --metric.
var metrics = []estimate.Metric{estimate.TrainLoss, estimate.TrainError, estimate.HeldOutLoss, estimate.HeldOutError}

func epsilonForCommand(env *command.Env) *cobra.Command {
	var f flags
	var metric string
	var target, relative float64
	var names []string
	for _, m := range metrics {
		names = append(names, m.String())
	}
	cmd := &cobra.Command{
		Use:   "epsilon-for --target VALUE",
		Short: "Estimate the ε for a target loss or error rate",
		Long: `Estimates the least ε from which on the mean of a metric is at most a target, by searching the
estimated curve within --epsilons. A target that the curve does not reach there is "not
reachable", and nothing is extrapolated. With --relative-to the target is a multiple of the
mean at that ε: --target 0.9 --relative-to 0.1 asks for a tenth less than at ε = 0.1.

The interval from single_lower to single_upper holds the answers of single draws of the
noise. With R draws, the ε of one more model lies in it with probability (R−1)/(R+1),
except for the error of the method. Draws in the column missed do not reach the target
in the range.

` + warning + methodHelp,
		Example: `  dpareto estimate epsilon-for --set train_rows=10000 --metric held_out_error --target 0.2
  dpareto estimate epsilon-for --set generated=true --set train_rows=3000 --target 0.5 --epsilons 0.1..4`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("target") {
				return command.Usage(errors.New("--target is required"))
			}
			if cmd.Flags().Changed("relative-to") && !(relative > 0) {
				return command.Usagef("--relative-to must be a positive ε, is %g", relative)
			}
			for _, m := range metrics {
				if m.String() == strings.ReplaceAll(metric, "-", "_") {
					return epsilonFor(cmd.Context(), env, f, m, target, relative)
				}
			}
			return command.Usagef("--metric must be %s, is %q", trainer.Enumerate(names...), metric)
		},
	}
	f.add(cmd)
	f.addDraws(cmd)
	set := cmd.Flags()
	set.StringVar(&metric, "metric", estimate.HeldOutLoss.String(), trainer.Enumerate(names...))
	set.Float64Var(&target, "target", 0, "value that the mean of the metric is to reach")
	set.Float64Var(&relative, "relative-to", 0, "ε within the range: --target is a multiple of the mean of the metric there")
	set.StringVar(&f.epsilons, "epsilons", "0.05..1", "range of ε that is searched, 0.05..1")
	command.OutputFlag(cmd, &f.format)
	return cmd
}

// epsilonFor prints the ε that a target takes. The target is a multiple of the mean at the ε relative, if that is not 0.
func epsilonFor(ctx context.Context, env *command.Env, f flags, metric estimate.Metric, target, relative float64) error {
	epsilons, err := parseEpsilons(f.epsilons)
	if err == nil && !strings.Contains(f.epsilons, "..") {
		err = fmt.Errorf("--epsilons must be a range such as 0.05..1, is %q", f.epsilons)
	}
	if err != nil {
		return command.Usage(err)
	}
	p, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	e, finish, err := f.estimator(ctx, env, p, epsilons[0], epsilons[len(epsilons)-1])
	if err != nil {
		return err
	}
	if relative > 0 {
		var at []estimate.Estimate
		if at, err = e.Curve(ctx, []float64{relative}); err != nil {
			finish()
			return err
		}
		target *= metric.Of(at[0]).Value
	}
	answer, err := e.EpsilonFor(ctx, metric, target)
	finish()
	if err != nil {
		return err
	}
	notes := f.notes(p)
	if answer.Met {
		notes = append(notes, fmt.Sprintf("the target is met in the whole range: less than ε = %s may do, and nothing is estimated there", show.Number(answer.Epsilon)))
	}
	if f.draws > 1 && answer.Missed == 0 && answer.Lower > epsilons[0] {
		notes = append(notes, "the ε that one more model takes lies from single_lower to single_upper with probability "+
			show.Number(float64(f.draws-1)/float64(f.draws+1)))
	}
	return f.printAnswer(env, metric, target, answer, notes)
}

func modelCommand(env *command.Env) *cobra.Command {
	var f flags
	var epsilon float64
	var exact bool
	cmd := &cobra.Command{
		Use:   "model --epsilon ε",
		Short: "Estimate the weights of a model at another ε",
		Long: `Estimates the weights that a model of one draw of the noise has at an ε, without training it.
They are between anchors, or on the tangent through the model at another ε (--method line
--at).

Never release such a model together with another one of the same noise. The conditions for their
optimality are two equations from which the noise can be eliminated, and neither has any privacy
left. An estimated model is not the exact minimiser either, but the ε of objective perturbation
is for the exact minimiser. --exact shows how far away it is.

` + warning + methodHelp,
		Example: `  dpareto estimate model --set generated=true --set train_rows=3000 --epsilon 0.2 --method line --at 0.15 --exact
  dpareto estimate model --set train_rows=10000 --epsilon 0.2 --exact --output csv`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !(epsilon > 0) || math.IsInf(epsilon, 1) {
				return command.Usage(errors.New("--epsilon is required, a positive number"))
			}
			return model(cmd.Context(), env, f, epsilon, exact)
		},
	}
	f.add(cmd)
	set := cmd.Flags()
	set.Uint64Var(&f.seed, "seed", 1, "seed of the noise")
	set.StringVar(&f.epsilons, "epsilons", "0.05..1", "range of ε in which the anchors lie")
	set.Float64Var(&epsilon, "epsilon", 0, "ε of the model")
	set.BoolVar(&exact, "exact", false, "also train the model at that ε, and compare")
	command.OutputFlag(cmd, &f.format)
	return cmd
}

// model prints the weights of a model.
func model(ctx context.Context, env *command.Env, f flags, epsilon float64, exact bool) error {
	epsilons, err := parseEpsilons(f.epsilons)
	if err != nil {
		return command.Usage(err)
	}
	p, err := f.open(ctx, env)
	if err != nil {
		return err
	}
	f.draws = 1
	e, finish, err := f.estimator(ctx, env, p, epsilons[0], epsilons[len(epsilons)-1])
	if err != nil {
		return err
	}
	theta, err := e.Path(0).Model(ctx, epsilon)
	if err != nil {
		finish()
		return err
	}
	var trained *estimate.Solution
	if exact {
		trained, err = p.Solve(ctx, e.Noise(0), epsilon, theta)
	}
	finish()
	if err != nil {
		return err
	}
	return f.printModel(env, p, epsilon, theta, trained)
}
