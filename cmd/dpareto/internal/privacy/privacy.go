// Package privacy holds the commands dpareto privacy: they account mechanisms, plan private
// tuning, and show the cost of the runs of a study.
package privacy

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/accounting"
)

// mostRows bounds the table of a curve whose spacing is not given.
const mostRows = 64

// Command returns the command privacy with further commands of other packages.
func Command(env *command.Env, more ...*cobra.Command) *cobra.Command {
	return command.Group("privacy", "Account privacy: ε of a mechanism, or of all runs of a study",
		`Computes the guarantee of a private mechanism: ε for a δ, an adjacency and an accountant, as
an upper bound, with a lower bound if one is known. It needs no server and gives the server's
numbers. Only the ledger, which adds up all runs of a study, asks a server.

docs/reference/privacy.md explains which accountant fits which sampler, and what each assumes.`,
		append([]*cobra.Command{
			epsilonCommand(env), curveCommand(env), tradeoffCommand(env), calibrateCommand(env), composeCommand(env), ledgerCommand(env),
			randomStoppingCommand(env), searchCommand(env),
		}, more...)...)
}

// mechanismHelp ends the description of commands that take a mechanism.
func mechanismHelp() string { return "\n\nMechanisms and their flags:\n\n" + mechanism.Help() }

func epsilonCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	cmd := &cobra.Command{
		Use:   "epsilon --mechanism NAME",
		Short: "Compute ε of a mechanism",
		Long: `Computes ε of a mechanism, by the tightest accountant that is valid for it unless another one
is named. ε is rounded up; JSON has all digits.` + mechanismHelp(),
		Example: `  dpareto privacy epsilon --mechanism dp-sgd --sampling fixed-size --dataset-size 30956 \
      --batch-size 128 --noise-multiplier 1 --epochs 10 --delta 1e-5
  dpareto privacy epsilon --mechanism gaussian --sensitivity 1 --standard-deviation 4 --delta 1e-6
  dpareto privacy epsilon --mechanism sparse-vector --cutoff 5 --noise-scale 10 --output json`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := flags.Mechanism()
			if err != nil {
				return command.Usage(err)
			}
			return epsilon(cmd.Context(), env, out, m, flags.Length)
		},
	}
	flags.Register(cmd.Flags())
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// epsilon prints the guarantee of a mechanism.
func epsilon(ctx context.Context, env *command.Env, out *command.Printer, m *mechanism.Mechanism, length func() (string, int64)) error {
	response, err := accounting.Service{}.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: m.Spec})
	if err != nil {
		return flagError(err)
	}
	g := Guarantee{Mechanism: m.Name, Message: response.GetGuarantees()[0], Derived: response.GetDerived()}
	g.LengthName, g.Length = length()
	return printGuarantee(env, out, g)
}

func printGuarantee(env *command.Env, out *command.Printer, g Guarantee) error {
	switch out.Format {
	case output.JSON:
		return writeGuarantee(out, g)
	case output.CSV:
		return printCSV(env, out, []Guarantee{g})
	default:
		return g.Table().WriteText(out)
	}
}

func curveCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	var every int64
	var epsilons []float64
	cmd := &cobra.Command{
		Use:   "curve --mechanism NAME",
		Short: "Compute ε after every epoch, or δ for every ε",
		Long: `Computes ε of DP-SGD after every epoch (or step, with --steps) up to the given one. With
--epsilons it computes the least δ of any mechanism for each of several values of ε. No δ below 1e-300 is computed:
for a larger ε, the row has the ε of that δ.` + mechanismHelp(),
		Example: `  dpareto privacy curve --mechanism dp-sgd --sampling fixed-size --dataset-size 40000 \
      --batch-size 128 --noise-multiplier 1 --epochs 64 --delta 1e-6 --output csv
  dpareto privacy curve --mechanism gaussian --sensitivity 1 --standard-deviation 2 --epsilons 0.5,1,2`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := flags.Mechanism()
			if err != nil {
				return command.Usage(err)
			}
			if len(epsilons) > 0 {
				return deltas(cmd.Context(), env, out, m, epsilons)
			}
			return trajectory(cmd.Context(), env, out, m, flags.Length, every)
		},
	}
	flags.Register(cmd.Flags())
	cmd.Flags().Int64Var(&every, "every", 0, fmt.Sprintf("epochs (or steps) from one row to the next; by default as few as give at most %d rows", mostRows))
	cmd.Flags().Float64SliceVar(&epsilons, "epsilons", nil, "values of ε for which δ is computed")
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// trajectory prints ε for every length up to the length of the mechanism.
func trajectory(ctx context.Context, env *command.Env, out *command.Printer, m *mechanism.Mechanism, length func() (string, int64), every int64) error {
	unit, last := length()
	if unit == "" {
		return command.Usagef("privacy curve: %s has no --epochs or --steps; give --epsilons for its δ", m.Name)
	}
	if every == 0 {
		every = max(1, (last-1)/mostRows+1)
	}
	if every < 1 || (last-1)/every >= accounting.MaxLengths {
		return command.Usagef("--every must be at least 1 and give at most %d rows, is %d", accounting.MaxLengths, every)
	}
	var lengths []int64
	for rest := last; rest > every; rest -= every { // adding could overflow
		lengths = append(lengths, every*int64(len(lengths)+1))
	}
	lengths = append(lengths, last)
	response, err := accounting.Service{}.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: m.Spec, Lengths: lengths})
	if err != nil {
		return flagError(err)
	}
	guarantees := make([]Guarantee, len(lengths))
	for i, g := range response.GetGuarantees() {
		guarantees[i] = Guarantee{Mechanism: m.Name, Length: lengths[i], LengthName: unit, Message: g}
	}
	return printGuarantees(env, out, guarantees)
}

// deltas prints the least δ for values of ε.
func deltas(ctx context.Context, env *command.Env, out *command.Printer, m *mechanism.Mechanism, epsilons []float64) error {
	response, err := accounting.Service{}.ComputeEpsilon(ctx, &dparetov1.ComputeEpsilonRequest{Privacy: m.Spec, Epsilons: epsilons})
	if err != nil {
		return flagError(err)
	}
	guarantees := make([]Guarantee, len(epsilons))
	for i, g := range response.GetGuarantees() {
		guarantees[i] = Guarantee{Mechanism: m.Name, Message: g}
	}
	return printGuarantees(env, out, guarantees)
}

// printGuarantees prints guarantees of one mechanism, and once what they have in common.
func printGuarantees(env *command.Env, out *command.Printer, guarantees []Guarantee) error {
	switch out.Format {
	case output.JSON:
		return writeGuarantees(out, guarantees)
	case output.CSV:
		return printCSV(env, out, guarantees)
	default:
	}
	if _, err := fmt.Fprintf(out, "%s\n\n", guaranteesHeading(guarantees)); err != nil {
		return err
	}
	if err := Guarantees(guarantees).WriteText(out); err != nil {
		return err
	}
	for i, line := range guaranteesAssumptions(guarantees) {
		if i == 0 {
			line = "\n" + line
		}
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	warn(env, guarantees)
	return nil
}

// printCSV prints guarantees as CSV, which has only the codes of warnings.
func printCSV(env *command.Env, out *command.Printer, guarantees []Guarantee) error {
	warn(env, guarantees)
	return guaranteesCSV(guarantees).WriteCSV(out)
}

// warn prints the warnings of guarantees, each kind once.
func warn(env *command.Env, guarantees []Guarantee) {
	for _, line := range guaranteesWarnings(guarantees) {
		env.Sayf("%s\n", line)
	}
}

func calibrateCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	var solveFor string
	var target, least, most float64
	cmd := &cobra.Command{
		Use:   "calibrate --mechanism NAME --epsilon TARGET",
		Short: "Find the noise, number of steps or batch size for an ε",
		Long: `Finds the value of one flag for which ε of a mechanism comes closest to a target without
exceeding it: the least noise, or the largest number of epochs. For the batch size it finds one
such value, and a larger one may exist. With --epochs ε does not always grow with it, because
the steps per epoch are rounded. If ε is below the target everywhere in the range, the answer
is the end of the range, with a warning; --min and --max set the range.` + mechanismHelp(),
		Example: `  dpareto privacy calibrate --mechanism dp-sgd --sampling fixed-size --dataset-size 30956 \
      --batch-size 128 --epochs 10 --delta 1e-5 --epsilon 1
  dpareto privacy calibrate --mechanism dp-sgd --sampling poisson --convention opacus \
      --dataset-size 60000 --batch-size 256 --noise-multiplier 1.1 --delta 1e-5 --epsilon 3 --solve-for epochs`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !cmd.Flags().Changed("epsilon") {
				return command.Usagef("--epsilon is required: the target")
			}
			m, err := flags.Unsolved(solveFor)
			if err != nil {
				return command.Usage(err)
			}
			lo, hi := flags.Range(m.SolveFor)
			if cmd.Flags().Changed("min") {
				lo = least
			}
			if cmd.Flags().Changed("max") {
				hi = most
			}
			return calibrate(cmd.Context(), env, out, m, flags.Length, target, lo, hi)
		},
	}
	cmd.Flags().Float64Var(&target, "epsilon", 0, "ε to reach, positive")
	cmd.Flags().StringVar(&solveFor, "solve-for", "", "flag to solve for (default the noise)")
	cmd.Flags().Float64Var(&least, "min", 0, "smallest value to consider (default depends on the flag)")
	cmd.Flags().Float64Var(&most, "max", 0, "largest value to consider (default depends on the flag)")
	flags.Register(cmd.Flags(), "epsilon")
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// calibrate prints the value of a flag for a target ε, with its guarantee.
func calibrate(ctx context.Context, env *command.Env, out *command.Printer, m *mechanism.Mechanism, length func() (string, int64), target, least, most float64) error {
	response, err := accounting.Service{}.CalibrateMechanism(ctx, &dparetov1.CalibrateMechanismRequest{
		Privacy: m.Spec, SolveFor: mechanism.Variable, Min: least, Max: most, TargetEpsilon: target,
	})
	if err != nil {
		return flagError(err)
	}
	if !response.GetReachable() {
		return fmt.Errorf("--epsilon %g cannot be reached: --%s between %s and %s gives at least %s", target, m.SolveFor,
			show.Plain(least), show.Plain(most), show.NumberDown(response.GetGuarantee().GetEpsilon()))
	}
	g := Guarantee{
		Mechanism: m.Name, Message: response.GetGuarantee(), Derived: response.GetDerived(),
		Solved: response.GetValue(), SolvedName: m.SolveFor,
	}
	if g.LengthName, g.Length = length(); g.LengthName == "" && m.SolveFor == "epochs" {
		g.LengthName, g.Length = m.SolveFor, g.Solved.GetIntValue()
	}
	return printGuarantee(env, out, g)
}

func composeCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	var parts []string
	cmd := &cobra.Command{
		Use:   "compose --part FLAGS --part FLAGS",
		Short: "Compute ε of several mechanisms together",
		Long: `Computes ε of several mechanisms of any kind on the same data. Each --part is one of them:
the flags of dpareto privacy epsilon without their dashes, separated by commas, and count, the
number of times that it is applied. Adjacency, δ and accountant hold for all.` + mechanismHelp(),
		Example: `  dpareto privacy compose --delta 1e-5 --adjacency replace-one \
      --part mechanism=dp-sgd,sampling=fixed-size,dataset-size=30956,batch-size=128,noise-multiplier=1,epochs=10,count=3 \
      --part mechanism=laplace,sensitivity=1,scale=100`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if len(parts) == 0 {
				return command.Usagef("--part is required at least once")
			}
			composed := make([]*dparetov1.CompositionMechanism_Part, len(parts))
			for i, text := range parts {
				part, err := mechanism.Part(text)
				if err != nil {
					return command.Usagef("--part %d: %w", i+1, err)
				}
				composed[i] = part
			}
			m, err := flags.Compose(composed)
			if err != nil {
				return command.Usage(err)
			}
			return epsilon(cmd.Context(), env, out, m, flags.Length)
		},
	}
	cmd.Flags().StringArrayVar(&parts, "part", nil, "a mechanism: name=value,... (see above)")
	flags.RegisterCommon(cmd.Flags())
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// flagError turns an error that names fields of a request into one that names flags.
func flagError(err error) error {
	s := status.Convert(err)
	if s.Code() != codes.InvalidArgument {
		return err
	}
	var messages []string
	for _, detail := range s.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok {
			for _, v := range bad.GetFieldViolations() {
				message := mechanism.Flag(v.GetField()) + ": " + mechanism.Words(v.GetDescription())
				if message == "--delta: must be in (0, 1), is 0" { // most often it was not given
					message = "give --delta, in (0, 1)"
				}
				messages = append(messages, message)
			}
		}
	}
	if len(messages) == 0 {
		return err
	}
	return command.Usage(errors.New(strings.Join(messages, "; ")))
}
