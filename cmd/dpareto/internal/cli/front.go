package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/plot"
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

func (a *app) frontCommand() *cobra.Command {
	kind := frontKind(dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
	var picture string
	cmd := &cobra.Command{
		Use:   "front STUDY",
		Short: "Show the Pareto front of a study",
		Long: `Shows the Pareto front of a study: the configurations that no other one beats in every
objective.

The posterior front, the default, is what fresh runs would give, by a model of all
measurements, with 90 % intervals. The observed front takes measurements at face value,
and so shows the luckiest of many; best and worst take the best or worst of each
configuration's runs.`,
		Example: `  dpareto front svt
  dpareto front svt --kind observed --output csv > front.csv
  dpareto front svt --plot front.svg`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.front(cmd.Context(), output.ID(args[0]), dparetov1.FrontKind(kind), picture)
		},
	}
	cmd.Flags().Var(&kind, "kind", "by which values the front is chosen: posterior, observed, best or worst")
	cmd.Flags().StringVar(&picture, "plot", "", "also draw the front to this file ("+plot.Formats+")")
	a.addClientFlags(cmd)
	a.addOutputFlag(cmd)
	return cmd
}

func (a *app) front(ctx context.Context, id string, kind dparetov1.FrontKind, picture string) error {
	if picture != "" {
		if err := plot.CheckPath(picture); err != nil {
			return &usageError{err}
		}
	}
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle := client.Study(id)
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		front, err := handle.Front(ctx, kind)
		if err != nil {
			return err
		}
		if picture != "" {
			trials, err := listTrials(ctx, handle)
			if err != nil {
				return err
			}
			if err := figure(study, front, trials).Save(picture); err != nil {
				return err
			}
			a.logger.Info("drew the front", "file", picture)
		}
		if a.output == output.Text {
			for _, line := range output.FrontHeading(study, front) {
				if _, err := fmt.Fprintln(a.stdout, line); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprintln(a.stdout); err != nil {
				return err
			}
		}
		return a.print(output.Front(study.GetSpec(), front), front)
	})
}
