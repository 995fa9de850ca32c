package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func (a *app) privacyLedgerCommand() *cobra.Command {
	var id, metric string
	var delta float64
	cmd := &cobra.Command{
		Use:   "ledger STUDY",
		Short: "Show what all runs of a study cost together",
		Long: `Shows what all runs of a study cost together, whatever became of them: every attempt at a
trial, trials that failed or were deleted, those that workers hold. The guarantee is that
of everything that the study released.

Where results may have decided what was run, as with all algorithms that learn, the
guarantee is by an odometer, which allows for that; beside it stands what the same runs
would cost had they been fixed in advance.`,
		Example: "  dpareto privacy ledger svt\n  dpareto privacy ledger svt --delta 1e-6 --output json",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error {
				name := client.Study(studyID(id)).Name()
				resp, err := client.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: name, Delta: delta, Metric: metric})
				if err != nil {
					return &callError{"read the privacy ledger of " + name, err}
				}
				if a.output == output.Text {
					if err := a.printHeading(view.LedgerHeading(resp)); err != nil {
						return err
					}
				}
				return a.print(view.Ledger(resp), resp)
			})
		},
	}
	flags := cmd.Flags()
	takeStudy(cmd, &id)
	flags.Float64Var(&delta, "delta", 0, "δ of the guarantee; default: that of the metric")
	flags.StringVar(&metric, "metric", "", "the privacy metric; default: the study's first")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// reaccountFlags say how a study is accounted again.
type reaccountFlags struct {
	metric                            string
	delta                             float64
	accountant, conversion, adjacency string
	validateOnly                      bool
}

func (a *app) studyReaccountCommand() *cobra.Command {
	var f reaccountFlags
	cmd := &cobra.Command{
		Use:   "reaccount STUDY",
		Short: "Compute ε of all trials again, for another δ, accountant or adjacency",
		Long: `Computes ε of all trials again, for another δ, accountant or adjacency, without training
again. What is not given stays. All trials and the study's spec change in one step.

The values before are those of the spec before, which is shown: accounting again with it
restores them. --validate-only shows what would come out and changes nothing.`,
		Example: `  dpareto study reaccount adult --delta 1e-6 --validate-only
  dpareto study reaccount adult --accountant tightest`,
		Args: command.Args(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.reaccount(cmd.Context(), studyID(args[0]), f, cmd.Flags().Changed)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.metric, "metric", "", "the privacy metric; default: the study's first")
	flags.Float64Var(&f.delta, "delta", 0, "δ; 0 for a pure guarantee")
	flags.StringVar(&f.accountant, "accountant", "", "accountant: tightest, exact, pld, rdp, gdp, pure, pure-advanced or pure-optimal")
	flags.StringVar(&f.conversion, "conversion", "", "with the accountant rdp: improved or classic; default: as before, or improved")
	flags.StringVar(&f.adjacency, "adjacency", "", "adjacency: add-remove or replace-one")
	flags.BoolVar(&f.validateOnly, "validate-only", false, "show the result without storing it")
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) reaccount(ctx context.Context, id string, f reaccountFlags, changed func(string) bool) error {
	return a.session(ctx, func(ctx context.Context, client *dpareto.Client) error {
		handle := client.Study(id)
		study, err := handle.Get(ctx)
		if err != nil {
			return err
		}
		metric := view.PrivacyMetric(study.GetSpec())
		if f.metric != "" {
			i := slices.IndexFunc(study.GetSpec().GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == f.metric })
			if metric = nil; i >= 0 {
				metric = study.GetSpec().GetMetrics()[i]
			}
		}
		if metric.GetComputed().GetPrivacy() == nil {
			return command.Usagef("study reaccount: %s has no metric %q that is computed from a mechanism", handle.Name(), f.metric)
		}
		spec := proto.CloneOf(metric.GetComputed().GetPrivacy())
		if err := f.apply(spec, changed); err != nil {
			return command.Usage(err)
		}
		resp, err := client.Privacy.ReaccountStudy(ctx, &dparetov1.ReaccountStudyRequest{
			Name: handle.Name(), Metric: metric.GetId(), Privacy: spec, ValidateOnly: f.validateOnly, Etag: study.GetEtag(),
		})
		if err != nil {
			return &callError{"account " + handle.Name() + " again", err}
		}
		return a.print(view.Reaccounting(resp), resp)
	})
}

// apply changes a spec as the flags say.
func (f *reaccountFlags) apply(spec *dparetov1.PrivacySpec, changed func(string) bool) error {
	if changed("delta") {
		spec.Delta = f.delta
	}
	before := spec.GetAdjacency()
	for _, e := range []struct {
		flag, value, prefix string
		numbers             map[string]int32
		set                 func(int32)
	}{
		{"accountant", f.accountant, "ACCOUNTANT_", dparetov1.Accountant_value, func(n int32) { spec.Accountant = dparetov1.Accountant(n) }},
		{"conversion", f.conversion, "CONVERSION_", dparetov1.Conversion_value, func(n int32) { spec.Conversion = dparetov1.Conversion(n) }},
		{"adjacency", f.adjacency, "ADJACENCY_", dparetov1.Adjacency_value, func(n int32) { spec.Adjacency = dparetov1.Adjacency(n) }},
	} {
		if e.value == "" {
			continue
		}
		n, ok := e.numbers[e.prefix+strings.ToUpper(strings.ReplaceAll(e.value, "-", "_"))]
		if !ok || n == 0 {
			return fmt.Errorf("study reaccount: --%s %q is unknown", e.flag, e.value)
		}
		e.set(n)
	}
	if m := spec.GetDpSgd(); m != nil && spec.GetAdjacency() != before {
		m.NoiseMultiplier = sameNoise(m.GetNoiseMultiplier(), spec.GetAdjacency())
	}
	isRDP := spec.GetAccountant() == dparetov1.Accountant_ACCOUNTANT_RDP
	switch {
	case isRDP && spec.GetConversion() == dparetov1.Conversion_CONVERSION_UNSPECIFIED:
		spec.Conversion = dparetov1.Conversion_CONVERSION_IMPROVED
	case !isRDP && f.conversion == "":
		spec.Conversion = dparetov1.Conversion_CONVERSION_UNSPECIFIED
	}
	return nil
}

// sameNoise returns the noise multiplier, under another adjacency, of noise with a given
// multiplier under the present one: the sensitivity of a mean of clipped gradients is
// twice as large where a record is replaced.
func sameNoise(multiplier string, adjacency dparetov1.Adjacency) string {
	there, back := " / 2.0", " * 2.0"
	if adjacency == dparetov1.Adjacency_ADJACENCY_ADD_REMOVE {
		there, back = back, there
	}
	if inner, ok := strings.CutSuffix(multiplier, ")"+back); ok && strings.HasPrefix(inner, "double(") {
		return strings.TrimPrefix(inner, "double(")
	}
	return "double(" + multiplier + ")" + there
}
