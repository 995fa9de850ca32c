package privacy

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func ledgerCommand(env *command.Env) *cobra.Command {
	var id, metric string
	var delta float64
	cmd := remote.Command(env, &cobra.Command{
		Use:   "ledger STUDY",
		Short: "Show what all runs of a study cost together",
		Long: `Shows what all runs of a study cost together, whatever their outcome: every attempt at a trial,
including trials that failed or were deleted, and those that workers hold. The guarantee is for
everything that the study released.

If results may have influenced later runs, as in all algorithms that learn, an odometer gives
the guarantee, which allows for that. The output also has the cost of the same runs had they
been fixed in advance.`,
		Example: "  dpareto privacy ledger svt\n  dpareto privacy ledger svt --delta 1e-6 --output json",
	}, func(ctx context.Context, call *remote.Call) error {
		if err := call.NotZero("delta", delta); err != nil {
			return err
		}
		name := call.Handle(id).Name()
		resp, err := call.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: name, Delta: delta, Metric: metric})
		if err != nil {
			return &remote.CallError{Action: "read the privacy ledger of " + name, Err: err}
		}
		if err := call.Out.Heading(view.LedgerHeading(resp)); err != nil {
			return err
		}
		return view.Print(call.Out, view.Ledger(resp), resp)
	})
	flags := cmd.Flags()
	remote.TakeStudy(cmd, &id)
	flags.Float64Var(&delta, "delta", 0, "δ of the guarantee; default: the δ of the metric")
	flags.StringVar(&metric, "metric", "", "the privacy metric; default: the study's first")
	return cmd
}
