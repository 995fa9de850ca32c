package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// frontKind is a flag.
type frontKind dparetov1.FrontKind

const frontKindPrefix = "FRONT_KIND_"

// String implements pflag.Value.
func (k *frontKind) String() string {
	return strings.ToLower(strings.TrimPrefix(dparetov1.FrontKind(*k).String(), frontKindPrefix))
}

// Set implements pflag.Value.
func (k *frontKind) Set(name string) error {
	number, ok := dparetov1.FrontKind_value[frontKindPrefix+strings.ToUpper(name)]
	if !ok || number == 0 {
		return errors.New("want observed, posterior, best or worst")
	}
	*k = frontKind(number)
	return nil
}

// Type implements pflag.Value.
func (k *frontKind) Type() string { return "kind" }

// frontFlags say what to show of a front.
type frontFlags struct {
	kind       frontKind
	picture    string
	overTime   bool
	remeasure  bool
	remeasures remeasureFlags
}

func (a *app) frontCommand() *cobra.Command {
	f := frontFlags{kind: frontKind(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)}
	cmd := &cobra.Command{
		Use:   "front STUDY",
		Short: "Show the Pareto front of a study",
		Long: `Shows the Pareto front of a study: the configurations that no other one beats in every
objective.

The posterior front, the default, is what fresh runs would give, by a model of all
measurements, with 90 % intervals. The observed front takes measurements at face value,
and so shows the luckiest of many; best and worst take the best or worst of each
configuration's runs.

Beside each point stand the mean that was observed (_observed), its standard error (_se),
the best and the worst run, the number of runs, and the contribution: by how much the
hypervolume would shrink without the point. The remark tells the knee, where the trade-off
turns, and points beyond the reference, which add nothing.

--over-time shows the hypervolume after every trial instead, of the observed front unless
--kind says otherwise; of the posterior front after at most 20 trials, as each costs a fit.

--remeasure N runs up to --points configurations of the front N more times and shows what
fresh runs give beside what the front claims. These are trials of the study, beyond its
budget if that is spent, and count as runs on the data; their results improve the front
that is shown from then on. Agents run them, or --workers of this command do.`,
		Example: `  dpareto front svt
  dpareto front svt --kind observed --output csv > front.csv
  dpareto front svt --plot front.svg
  dpareto front svt --over-time --plot hypervolume.svg
  dpareto front svt --remeasure 10 --workers 2`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.overTime && !cmd.Flags().Changed("kind") {
				f.kind = frontKind(dparetov1.FrontKind_FRONT_KIND_OBSERVED)
			}
			f.remeasure = cmd.Flags().Changed("remeasure")
			f.remeasures.hasSeed = cmd.Flags().Changed("seed")
			return a.front(cmd.Context(), studyID(args[0]), f)
		},
	}
	flags := cmd.Flags()
	flags.Var(&f.kind, "kind", "by which values the front is chosen: posterior, observed, best or worst")
	flags.StringVar(&f.picture, "plot", "", "also draw the front to this file ("+plot.Formats+")")
	flags.BoolVar(&f.overTime, "over-time", false, "show the hypervolume in the course of the study")
	flags.IntVar(&f.remeasures.replicates, "remeasure", 0, "number of trials with which each configuration of the front is run again")
	flags.IntVar(&f.remeasures.points, "points", 12, "with --remeasure: number of points of the front, those that dominate most")
	flags.IntVar(&f.remeasures.workers, "workers", 0, "with --remeasure: number of trials that this command trains at the same time; default: none, agents do")
	flags.Uint64Var(&f.remeasures.seed, "seed", 0, "with --workers: seed of the training; default: drawn")
	flags.DurationVar(&f.remeasures.timeout, "timeout", 0, "with --remeasure: show what is there after this time; default: wait for all")
	command.DataDirFlag(cmd, &f.remeasures.dataDir)
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// validate checks the flags.
func (f *frontFlags) validate() error {
	switch {
	case f.remeasure && f.overTime:
		return errors.New("front: --remeasure and --over-time show different things; give one")
	case f.remeasure && f.picture != "":
		return errors.New("front: --plot does not draw what --remeasure shows; draw the front before or after")
	case f.remeasure && f.remeasures.replicates == 0:
		return errors.New("front: --remeasure is 0, want at least 1")
	case f.picture != "":
		return plot.CheckPath(f.picture)
	default:
		return f.remeasures.validate()
	}
}

func (a *app) front(ctx context.Context, id string, f frontFlags) error {
	if err := f.validate(); err != nil {
		return command.Usage(err)
	}
	kind := dparetov1.FrontKind(f.kind)
	if f.remeasure {
		return a.remeasure(ctx, id, kind, f.remeasures)
	}
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle := client.Study(id)
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		if f.overTime {
			return a.showHypervolumes(ctx, handle, study, kind, f.picture)
		}
		return a.showFront(ctx, handle, study, kind, f.picture)
	})
}

// showFront prints a front, and draws it if a file is given.
func (a *app) showFront(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study, kind dparetov1.FrontKind, picture string) error {
	front, err := handle.Front(ctx, kind)
	if err != nil {
		return err
	}
	if picture != "" {
		trials, err := collect(handle.Trials(ctx))
		if err != nil {
			return err
		}
		if err := figure(study, front, trials).Save(picture); err != nil {
			return err
		}
		a.Logger.Info("drew the front", "file", picture)
	}
	if a.output == output.Text {
		if err := a.printHeading(view.FrontHeading(study, front)); err != nil {
			return err
		}
	}
	return a.print(view.Front(study.GetSpec(), front), front)
}

// showHypervolumes prints the hypervolume over time, and draws it if a file is given.
func (a *app) showHypervolumes(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study, kind dparetov1.FrontKind, picture string) error {
	points, err := handle.HypervolumesOf(ctx, kind)
	if err != nil {
		return err
	}
	if picture != "" {
		if err := hypervolumeCurve(study, kind, points).Save(picture); err != nil {
			return err
		}
		a.Logger.Info("drew the hypervolume", "file", picture)
	}
	return printAll(a, view.Hypervolumes(study.GetSpec(), points), points)
}

// printHeading prints lines above a table, and an empty one.
func (a *app) printHeading(lines []string) error {
	for _, line := range append(lines, "") {
		if _, err := fmt.Fprintln(a.Stdout, line); err != nil {
			return err
		}
	}
	return nil
}
