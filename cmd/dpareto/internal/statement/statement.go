package statement

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/server/web/statement"
)

// formats are the forms of a statement, the default first.
var formats = []string{"text", "html", "json"}

// choice is a flag that takes one of some names. It implements pflag.Value.
type choice struct {
	value string
	names []string
}

func (c *choice) String() string { return c.value }

func (c *choice) Type() string { return "name" }

func (c *choice) Set(name string) error {
	if !slices.Contains(c.names, name) {
		return fmt.Errorf("must be one of %s", strings.Join(c.names, ", "))
	}
	c.value = name
	return nil
}

// Command returns the command statement.
func Command(env *command.Env) *cobra.Command {
	var study string
	var o statement.Options
	format := choice{formats[0], formats}
	sampler := choice{names: statement.Samplers}
	cmd := remote.Action(env, &cobra.Command{
		Use:   "statement STUDY",
		Short: "Write a statement of one ε, to be signed",
		Long: `Writes a privacy statement, one page. It has the people and records that ε protects, the
released results, and the cost of the search and whether ε includes it. It also has the
accounted and the executed mechanism, the limits of an attacker, and the command that
computes ε again. Appendices have a draft for the Differential Privacy Deployments Registry
and answers to the questions of NIST SP 800-226. Fields that the server cannot fill are
marked FILL IN.

In an ordinary study --epsilon chooses the best measured trial within it, and --trial names
one. A study with private_mode or random_stopping has one guarantee for all that it publishes:
--epsilon is then the most that it may be.

A statement that the study does not support is refused, and the exit code is 1.`,
		Example: `  dpareto statement adult --epsilon 1
  dpareto statement adult --trial 7 --output html > statement.html
  dpareto statement mine --epsilon 1 --sampler poisson --output json`,
	}, func(ctx context.Context, call *remote.Call) error {
		if call.Changed("epsilon") && (!(o.Epsilon > 0) || math.IsInf(o.Epsilon, 1)) {
			return command.Usagef("--epsilon: must be positive and finite, is %g", o.Epsilon)
		}
		if call.Changed("trial") && o.Trial < 1 {
			return command.Usagef("--trial: must be at least 1, is %d", o.Trial)
		}
		o.Sampler, o.Now = sampler.value, time.Now()
		name := call.Handle(study).Name()
		made, err := statement.New(ctx, &statement.Clients{
			Studies: call.Studies, Fronts: call.Fronts, Privacy: call.Privacy, Releases: call.Releases, Admin: call.Admin,
		}, name, o)
		if _, isRefusal := errors.AsType[statement.RefusalError](err); isRefusal {
			return err
		}
		if err != nil {
			return &remote.CallError{Action: "state the privacy of " + name, Err: err}
		}
		switch format.value {
		case "html":
			return made.HTML(env.Stdout)
		case "json":
			return made.JSON(env.Stdout)
		default:
			return made.Text(env.Stdout)
		}
	})
	remote.TakeStudy(cmd, &study)
	flags := cmd.Flags()
	flags.Float64Var(&o.Epsilon, "epsilon", 0, "largest ε to state")
	flags.Int64Var(&o.Trial, "trial", 0, "number of the trial to state")
	flags.Var(&sampler, "sampler", "how the trainer drew its lots, if the study names no bundled trainer: "+strings.Join(sampler.names, ", "))
	flags.BoolVar(&o.Price, "price", true, "compute the cost of a planned search of as many runs, which takes seconds")
	flags.VarP(&format, "output", "o", "form of the statement: "+strings.Join(formats, ", "))
	return cmd
}
