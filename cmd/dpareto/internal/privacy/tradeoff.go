package privacy

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/privacy/mechanism"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/accounting"
)

func tradeoffCommand(env *command.Env) *cobra.Command {
	out := command.NewPrinter(env)
	var flags mechanism.Flags
	var rates, priors []float64
	cmd := &cobra.Command{
		Use:   "tradeoff --mechanism NAME",
		Short: "Compute the limits of an attacker",
		Long: `Computes the meaning of a guarantee for an attacker who wants to know whether a person's record
was used. It is the largest true positive rate of any test, by its false positive rate. It is an
upper bound for one record and one run, whatever else the attacker knows.` + mechanismHelp(),
		Example: `  dpareto privacy tradeoff --mechanism dp-sgd --sampling poisson --convention opacus \
      --dataset-size 60000 --batch-size 256 --noise-multiplier 1.1 --epochs 60 --delta 1e-5
  dpareto privacy tradeoff --mechanism laplace --sensitivity 1 --scale 2 --rates 0.001,0.01,0.1`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			m, err := flags.Mechanism()
			if err != nil {
				return command.Usage(err)
			}
			return tradeoff(cmd.Context(), env, out, m, flags.Length, rates, priors)
		},
	}
	flags.Register(cmd.Flags())
	cmd.Flags().Float64SliceVar(&rates, "rates", []float64{0.0001, 0.001, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5}, "false positive rates, in [0, 1]")
	cmd.Flags().Float64SliceVar(&priors, "priors", nil, "also bound how often an attacker is wrong who supposes these probabilities beforehand, in (0, 1)")
	cmd.Flags().SortFlags = false
	out.AddFlag(cmd)
	return cmd
}

// tradeoff prints the trade-off curve of a mechanism.
func tradeoff(ctx context.Context, env *command.Env, out *command.Printer, m *mechanism.Mechanism, length func() (string, int64), rates, priors []float64) error {
	for _, rate := range rates {
		if !(rate >= 0 && rate <= 1) {
			return command.Usagef("--rates must be in [0, 1], holds %g", rate)
		}
	}
	for _, prior := range priors {
		if !(prior > 0 && prior < 1) {
			return command.Usagef("--priors must be in (0, 1), holds %g", prior)
		}
	}
	response, err := accounting.Service{MaxWork: tradeoffWork}.ComputeTradeoff(ctx, &dparetov1.ComputeTradeoffRequest{Privacy: m.Spec, FalsePositiveRates: rates, Priors: priors})
	if err != nil {
		return flagError(err)
	}
	g := Guarantee{Mechanism: m.Name, Message: response.GetGuarantee()}
	g.LengthName, g.Length = length()
	switch out.Format {
	case output.JSON:
		return output.WriteJSON(out, tradeoffJSON(g, response, priors))
	case output.CSV:
		warn(env, []Guarantee{g})
		return tradeoffTable(response, false).WriteCSV(out)
	default:
	}
	one := []Guarantee{g}
	if _, err := fmt.Fprintf(out, "%s: ε at most %s, δ = %s, for one run\n\n", guaranteesHeading(one),
		show.NumberUp(g.Message.GetEpsilon()), show.Plain(g.Message.GetDelta())); err != nil {
		return err
	}
	if err := tradeoffTable(response, true).WriteText(out); err != nil {
		return err
	}
	for _, line := range append(tradeoffNotes(response, priors), guaranteesAssumptions(one)...) {
		if _, err := fmt.Fprintln(out, line); err != nil {
			return err
		}
	}
	warn(env, one)
	return nil
}

// tradeoffWork bounds the operations of a curve, to some 20 seconds: a costly curve comes ever closer
// to the trade-off function.
const tradeoffWork = 10 * accounting.MaxWork

// tradeoffTable has a row for every false positive rate. For people the other rates are rounded up.
func tradeoffTable(response *dparetov1.ComputeTradeoffResponse, rounded bool) *output.Table {
	t := &output.Table{Columns: []string{"false_positive_rate", "true_positive_rate"}}
	for _, p := range response.GetPoints() {
		row := []any{p.GetFalsePositiveRate(), p.GetTruePositiveRate()}
		if rounded {
			row[1] = output.Bound(p.GetTruePositiveRate())
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// tradeoffNotes state in words the meaning of the curve.
func tradeoffNotes(response *dparetov1.ComputeTradeoffResponse, priors []float64) []string {
	var notes []string
	for _, p := range response.GetPoints() {
		if p.GetFalsePositiveRate() == 0.01 {
			notes = append(notes, "",
				show.Attacker(response.GetGuarantee()),
				"If they are wrong about at most 1 % of the records that were not in it, they are right",
				fmt.Sprintf("about at most %s %% of those that were. Without the run's output it would be 1 %%.", show.NumberUp(100*p.GetTruePositiveRate())))
		}
	}
	notes = append(notes, "", fmt.Sprintf("Advantage, the true minus the false positive rate: at most %s.", show.NumberUp(response.GetAdvantage())))
	for i, prior := range priors {
		notes = append(notes, fmt.Sprintf("Who supposes %s beforehand is wrong in at least %s of all cases.", show.Plain(prior), show.NumberDown(response.GetBayesErrors()[i])))
	}
	if response.GetMuRegret() < 0.01 {
		notes = append(notes, fmt.Sprintf("Like telling N(μ, 1) from N(0, 1) with μ = %s, for error rates of 1e-6 and more.", show.NumberUp(response.GetMu())))
	}
	if !response.GetExactProfile() {
		notes = append(notes, "", "The bound is not known to be attained: the best attack may be much weaker.")
	}
	return append(notes, "")
}

type jsonTradeoff struct {
	Guarantee    jsonGuarantee       `json:"guarantee"`
	ExactProfile bool                `json:"exact_profile"`
	Points       []jsonTradeoffPoint `json:"points"`
	Advantage    float64             `json:"advantage"`
	BayesErrors  []jsonBayesError    `json:"bayes_errors,omitempty"`
	Mu           jsonNumber          `json:"mu"`
	MuRegret     float64             `json:"mu_regret"`
}

type jsonBayesError struct {
	Prior float64 `json:"prior"`
	Error float64 `json:"error"`
}

type jsonTradeoffPoint struct {
	FalsePositiveRate float64 `json:"false_positive_rate"`
	TruePositiveRate  float64 `json:"true_positive_rate"`
}

func tradeoffJSON(g Guarantee, response *dparetov1.ComputeTradeoffResponse, priors []float64) jsonTradeoff {
	out := jsonTradeoff{
		Guarantee: g.json(), ExactProfile: response.GetExactProfile(),
		Advantage: response.GetAdvantage(), Mu: jsonNumber(response.GetMu()), MuRegret: response.GetMuRegret(),
	}
	for i, prior := range priors {
		out.BayesErrors = append(out.BayesErrors, jsonBayesError{prior, response.GetBayesErrors()[i]})
	}
	for _, p := range response.GetPoints() {
		out.Points = append(out.Points, jsonTradeoffPoint{p.GetFalsePositiveRate(), p.GetTruePositiveRate()})
	}
	return out
}
