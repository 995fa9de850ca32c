package privacy

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy/tuning"
	"github.com/dpareto/dpareto/server/accounting"
)

func randomStoppingCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	var mu float64
	var shares []float64
	cmd := &cobra.Command{
		Use:   "random-stopping --mean-runs MEAN --mechanism NAME",
		Short: "Plan a random search that stops at random and releases only the best",
		Long: `Plans private hyperparameter tuning by random search (Liu and Talwar 2019; Papernot and Steinke
2022). The number of runs is drawn secretly from a distribution with the given mean, each run
is an independent candidate, and only the best is released. It prints what that costs for a
mechanism of one run, given by its flags or by --base-mu, and how likely the search meets one
of the best candidates.

One run is everything that looks at the data: the training, and the noisy score that decides,
whose noise protects the validation records.` + mechanismHelp(),
		Example: `  dpareto privacy random-stopping --base-mu 0.25 --delta 1e-6 --mean-runs 10
  dpareto privacy random-stopping --mechanism dp-sgd --sampling fixed-size --dataset-size 32561 --batch-size 256 \
      --noise-multiplier 2 --epochs 10 --delta 1e-6 --mean-runs 32 --distribution logarithmic`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("base-mu") {
				if cmd.Flags().Changed(mechanismColumn) {
					return command.Usage(errors.New("--base-mu and --mechanism cannot be used together"))
				}
				// Noise of standard deviation 1 with the sensitivity μ is μ-GDP.
				for name, value := range map[string]string{mechanismColumn: "gaussian", sensitivityColumn: strconv.FormatFloat(mu, 'g', -1, 64), "standard-deviation": "1"} {
					if err := cmd.Flags().Set(name, value); err != nil {
						return command.Usagef("--base-mu: %w", err)
					}
				}
			}
			for _, q := range shares {
				if !(q >= 0 && q <= 1) {
					return command.Usagef("--top must be in [0, 1], is %g", q)
				}
			}
			repeated, err := flags.Repeated()
			if err != nil {
				return command.Usage(err)
			}
			if cmd.Flags().Changed("base-mu") {
				repeated.Base.Name = "a Gaussian mechanism with μ = " + show.Plain(mu)
			}
			return randomStopping(cmd.Context(), out, repeated, shares)
		},
	}
	cmd.Flags().Float64Var(&mu, "base-mu", 0, "μ of Gaussian differential privacy of one run, in place of --mechanism")
	cmd.Flags().Float64SliceVar(&shares, "top", []float64{0.05, 0.01}, "shares of the best candidates, with commas between them")
	flags.Register(cmd.Flags(), "base")
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// randomStopping prints the plan of a search.
func randomStopping(ctx context.Context, out *command.Printer, r *mechanism.Repeated, shares []float64) error {
	plan := RandomStopping{Base: r.Base.Name, Shares: shares}
	for _, part := range []struct {
		m  *mechanism.Mechanism
		to **dparetov1.PrivacyGuarantee
	}{{r.Base, &plan.One}, {r.Total, &plan.Total}} {
		response, err := accounting.Service{}.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: part.m.Spec})
		if err != nil {
			return flagError(err)
		}
		*part.to = response.GetGuarantees()[0]
	}
	plan.Distribution = r.Distribution
	part, err := accounting.Part(r.Total.Spec)
	if err != nil {
		return flagError(err)
	}
	// Mechanisms that Location cannot account have no known attack.
	if attack, err := (tuning.Location{}).Attack(part.Mechanism, plan.Total.GetDelta()); err == nil {
		if epsilon := plan.Total.GetEpsilon(); !(attack <= epsilon) {
			return fmt.Errorf("an attack shows epsilon %g, above the bound %g: one of them is wrong, please report it", attack, epsilon)
		}
		plan.Attack = attack
	}
	return plan.Report().Write(out, out.Format)
}
