package publish

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/enumflag"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ledgerName returns the name of the ledger that an argument names, with or without
// "ledgers/".
func ledgerName(arg string) string { return "ledgers/" + strings.TrimPrefix(arg, "ledgers/") }

// LedgerCommand returns the command ledger.
func LedgerCommand(env *command.Env) *cobra.Command {
	return command.Group("ledger", "Manage the privacy budgets of publications",
		`Manages the privacy budgets of publications: one ledger for each dataset, with a budget
that never changes. Every release is charged before it is handed out. A release that exceeds the
budget is refused.

A release may depend on earlier ones: the declared (ε, δ) holds for all of them together. Half
of δ is reserved for that composition; the δ of the charges may add up to at most the other
half. Charges stay when a study is deleted, and ledgers cannot be deleted.

A ledger covers the releases of this server. It does not cover results published about the same
records in other ways, or by a server that was restored from a backup made before a release.`,
		createLedgerCommand(env), getLedgerCommand(env), listLedgersCommand(env), chargesCommand(env))
}

func createLedgerCommand(env *command.Env) *cobra.Command {
	ledger := &dparetov1.Ledger{Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	cmd := remote.Command(env, &cobra.Command{
		Use:   "create LEDGER",
		Short: "Open the ledger of a dataset",
		Long: `Opens the ledger of a dataset, with its budget. Neither the budget nor the number of records
can be changed later. Creating a ledger that exists with the same fields shows it.

The number of records is public: releases of averages over them are as noisy as it takes to
hide one of so many. Datasets that results are evaluated on take the adjacency replace-one.`,
		Example: "  dpareto ledger create adult-test --records 16281 --epsilon 2 --delta 1e-6",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		resp, err := call.Releases.CreateLedger(ctx, &dparetov1.CreateLedgerRequest{
			LedgerId: strings.TrimPrefix(call.Args[0], "ledgers/"), Ledger: ledger,
		})
		if err != nil {
			return &remote.CallError{Action: "create " + ledgerName(call.Args[0]), Err: err}
		}
		for _, w := range resp.GetLedger().GetSpent().GetWarnings() {
			env.Logger.Warn(w.GetMessage(), "ledger", resp.GetLedger().GetName())
		}
		return view.Print(call.Out, view.Ledgers([]*dparetov1.Ledger{resp.GetLedger()}), resp.GetLedger())
	})
	flags := cmd.Flags()
	flags.Int64Var(&ledger.Records, "records", 0, "number of records (required)")
	flags.Float64Var(&ledger.Epsilon, "epsilon", 0, "ε of everything that is ever charged (required)")
	flags.Float64Var(&ledger.Delta, "delta", 0, "δ of all charges together, half of it for the composition (required)")
	enumflag.Var(flags, &ledger.Adjacency, "adjacency", "adjacency of all guarantees")
	flags.StringVar(&ledger.Description, "description", "", "which records these are")
	return cmd
}

func getLedgerCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:   "get LEDGER",
		Short: "Show a ledger: its budget, spent and left",
		Long: `Shows a ledger. The remaining ε is the largest ε of one more release with δ = 0. After many
charges it is more than the difference of the declared and the spent ε.`,
		Example: "  dpareto ledger get adult-test",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		resp, err := call.Releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: ledgerName(call.Args[0])})
		if err != nil {
			return &remote.CallError{Action: "read " + ledgerName(call.Args[0]), Err: err}
		}
		return view.Print(call.Out, view.Ledgers([]*dparetov1.Ledger{resp.GetLedger()}), resp.GetLedger())
	})
}

func listLedgersCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:     "list",
		Short:   "List ledgers",
		Example: "  dpareto ledger list --output csv",
		Args:    command.NoArgs,
	}, func(ctx context.Context, call *remote.Call) error {
		all, err := ListLedgers(ctx, call.Client)
		if err != nil {
			return &remote.CallError{Action: "list ledgers", Err: err}
		}
		return view.PrintAll(call.Out, view.Ledgers(all), all)
	})
}

// ListLedgers returns all ledgers of a server.
func ListLedgers(ctx context.Context, client *dpareto.Client) ([]*dparetov1.Ledger, error) {
	return remote.Pages(func(token string) ([]*dparetov1.Ledger, string, error) {
		resp, err := client.Releases.ListLedgers(ctx, &dparetov1.ListLedgersRequest{PageToken: token})
		return resp.GetLedgers(), resp.GetNextPageToken(), err
	})
}

func chargesCommand(env *command.Env) *cobra.Command {
	return remote.Command(env, &cobra.Command{
		Use:   "charges LEDGER",
		Short: "List the charges of a ledger",
		Long: `Lists the charges of a ledger, in the order of time, with their releases and
studies. A study may have been deleted since.`,
		Example: "  dpareto ledger charges adult-test",
		Args:    cobra.ExactArgs(1),
	}, func(ctx context.Context, call *remote.Call) error {
		all, err := remote.Pages(func(token string) ([]*dparetov1.Charge, string, error) {
			resp, err := call.Releases.ListCharges(ctx, &dparetov1.ListChargesRequest{Parent: ledgerName(call.Args[0]), PageToken: token})
			return resp.GetCharges(), resp.GetNextPageToken(), err
		})
		if err != nil {
			return &remote.CallError{Action: "read the charges of " + ledgerName(call.Args[0]), Err: err}
		}
		return view.PrintAll(call.Out, view.Charges(all), all)
	})
}
