package front

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/enumflag"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// flags say what to show of a front.
type flags struct {
	kind       dparetov1.FrontKind
	picture    string
	colorBy    string
	overTime   bool
	all, wide  bool
	spread     bool
	remeasure  bool
	remeasures remeasureFlags
}

// Command returns the command front.
func Command(env *command.Env) *cobra.Command {
	server, out := remote.New(env), command.NewPrinter(env)
	f := flags{kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR}
	var seed uint64
	cmd := &cobra.Command{
		Use:   "front STUDY...",
		Short: "Show the Pareto front of a study, or of several",
		Long: `Shows the Pareto front of a study: the configurations that no other one beats in every
objective.

The posterior front, the default, is what fresh runs would give, by a model of all
measurements, with 90 % intervals. The observed front takes measurements at face value, and
so shows the luckiest of many; best and worst take the best or worst of each configuration's
runs.

The table has at most 20 points that are spread over the front, or with --all every one. With
--wide, each point also comes with the observed mean (_observed), its standard error (_se), the
best and the worst run, the number of runs, and the contribution. Without the point, the
hypervolume would shrink by its contribution. JSON and CSV have all points and columns. The
remark marks the knee, where the trade-off turns, and points beyond the reference, which add
nothing.

--over-time shows the hypervolume after every trial instead, of the observed front unless
--kind says otherwise. For the posterior front it does so after at most 20 trials, as each
costs a fit.

Several studies with the same objectives are shown one below the other, and drawn over each
other. The flag --spread draws a band from the front of the best runs to the front of the
worst ones.

--remeasure N runs up to --points configurations of the front N more times and compares the
results of these fresh runs with the front. They are trials of the study, beyond
its budget if that is spent, and count as runs on the data; their results improve the front
from then on. Agents run them, or --workers of this command.`,
		Example: `  dpareto front svt
  dpareto front svt --kind observed --output csv > front.csv
  dpareto front svt --plot front.svg
  dpareto front adult-models --plot models.svg --color-by model
  dpareto front svt --over-time --plot hypervolume.svg
  dpareto front dp-sgd dp-adam --plot fronts.svg
  dpareto front svt --kind observed --spread --plot spread.svg
  dpareto front svt --remeasure 10 --workers 2`,
		Args: command.Args(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.overTime && !cmd.Flags().Changed("kind") {
				f.kind = dparetov1.FrontKind_FRONT_KIND_OBSERVED
			}
			f.remeasure = cmd.Flags().Changed("remeasure")
			if cmd.Flags().Changed("seed") {
				f.remeasures.local.Seed = &seed
			}
			if err := f.validate(); err != nil {
				return command.Usage(err)
			}
			ids := make([]string, len(args))
			for i, arg := range args {
				ids[i] = remote.StudyID(arg)
			}
			if err := f.checkSeveral(ids); err != nil {
				return command.Usage(err)
			}
			if f.remeasure {
				return remeasure(cmd.Context(), env, server, out, ids[0], f.kind, f.remeasures)
			}
			return server.Session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				if len(ids) > 1 || f.spread {
					return f.showSeveral(ctx, env.Logger, out, client, ids)
				}
				return f.show(ctx, env.Logger, out, client.Study(ids[0]))
			})
		},
	}
	set := cmd.Flags()
	enumflag.Var(set, &f.kind, "kind", "values by which the front is chosen")
	set.StringVar(&f.picture, "plot", "", "also draw the front to this file ("+plot.Formats+")")
	set.StringVar(&f.colorBy, "color-by", "", "with --plot: categorical parameter that gives the front's points their colours and shapes")
	set.BoolVar(&f.all, "all", false, fmt.Sprintf("show all points in the table, and not %d that stand for them", shownPoints))
	set.BoolVar(&f.wide, "wide", false, "show all columns in the table")
	set.BoolVar(&f.spread, "spread", false, "with --plot: draw a band between the fronts of the best and of the worst runs")
	set.BoolVar(&f.overTime, "over-time", false, "show the hypervolume over the course of the study")
	set.IntVar(&f.remeasures.replicates, "remeasure", 0, "number of new trials of each configuration of the front")
	set.IntVar(&f.remeasures.points, "points", 12, "with --remeasure: largest number of points of the front, those that dominate most")
	set.IntVar(&f.remeasures.local.Workers, "workers", 0, "with --remeasure: number of trials that this command trains at the same time; default: none, agents do")
	set.Uint64Var(&seed, "seed", 0, "with --workers: seed of the training, which then is not private; default: the operating system's entropy")
	set.DurationVar(&f.remeasures.timeout, "timeout", 0, "with --remeasure: show the results that are complete after this time; default: wait for all")
	command.DataDirFlag(cmd, &f.remeasures.local.DataDir)
	server.AddFlags(cmd)
	out.AddFlag(cmd)
	return cmd
}

// validate checks the flags.
func (f *flags) validate() error {
	switch {
	case f.remeasure && f.overTime:
		return errors.New("--remeasure and --over-time cannot be used together")
	case f.remeasure && f.picture != "":
		return errors.New("--plot cannot be used with --remeasure; draw the front before or after it")
	case f.remeasure && f.remeasures.replicates == 0:
		return errors.New("--remeasure must be at least 1, is 0")
	case f.colorBy != "" && (f.picture == "" || f.overTime):
		return errors.New("--color-by is for the picture of a front: give --plot, and not --over-time")
	case f.picture != "":
		return plot.CheckPath(f.picture)
	default:
		return f.remeasures.validate()
	}
}

// show prints a front, or the hypervolume over time, and draws it if a file is given.
func (f *flags) show(ctx context.Context, logger *slog.Logger, out *command.Printer, handle *dpareto.Study) error {
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	if f.overTime {
		return f.showHypervolumes(ctx, logger, out, handle, study)
	}
	front, err := handle.Front(ctx, f.kind)
	if err != nil {
		return err
	}
	if f.picture != "" {
		trials, err := remote.Collect(handle.Trials(ctx))
		if err != nil {
			return err
		}
		figure := Figure(study, front, trials)
		if err := colorBy(figure, study.GetSpec(), front, f.colorBy); err != nil {
			return err
		}
		if err := figure.Save(f.picture); err != nil {
			return err
		}
		logger.Info("drew the front", "file", f.picture)
	}
	if err := out.Heading(Heading(study, front)); err != nil {
		return err
	}
	if out.Format != output.Text {
		return view.Print(out, table(study.GetSpec(), front, true), front)
	}
	return f.write(out, study.GetSpec(), front)
}

// shownPoints is the number of points that people are shown unless they want all.
const shownPoints = 20

// write prints the table of a front for people.
func (f *flags) write(out *command.Printer, spec *dparetov1.StudySpec, front *dparetov1.Front) error {
	shown := front
	if !f.all {
		shown = spread(spec, front, shownPoints)
	}
	if err := out.Table(table(spec, shown, f.wide)); err != nil {
		return err
	}
	var more []string
	if n := len(shown.GetPoints()); n < len(front.GetPoints()) {
		more = append(more, fmt.Sprintf("%d of %d points, spread over the front; --all shows the others.", n, len(front.GetPoints())))
	}
	if !f.wide {
		more = append(more, "--wide shows more of each: measurements, runs, contribution.")
	}
	if len(more) == 0 || len(front.GetPoints()) == 0 {
		return nil
	}
	_, err := fmt.Fprintf(out, "\n%s\n", strings.Join(more, " "))
	return err
}

// showHypervolumes prints the hypervolume over time, and draws it if a file is given.
func (f *flags) showHypervolumes(ctx context.Context, logger *slog.Logger, out *command.Printer, handle *dpareto.Study, study *dparetov1.Study) error {
	resp, err := handle.Hypervolumes(ctx, f.kind)
	if err != nil {
		return err
	}
	points := resp.GetPoints()
	if f.picture != "" {
		if err := overlayHistories(f.kind, []*member{{study: study, history: points}}).Save(f.picture); err != nil {
			return err
		}
		logger.Info("drew the hypervolume", "file", f.picture)
	}
	return view.PrintAll(out, hypervolumeTable(study.GetSpec(), points), points)
}
