package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// ledgerName returns the name of the ledger that an argument names, with or without
// "ledgers/".
func ledgerName(arg string) string { return "ledgers/" + strings.TrimPrefix(arg, "ledgers/") }

func (a *app) ledgerCommand() *cobra.Command {
	cmd := command.Group("ledger", "Keep accounts of what publications have cost",
		`Keeps accounts of what publications have cost: one ledger for each dataset, with a budget
that is declared once and for all. Everything that is released is charged before it is handed
out; what does not fit into the budget is refused.

Releases may be chosen in view of earlier ones: the declared (ε, δ) holds for all of them
together. Half of δ is kept for that composition; the δ of the charges have to add up to the
other half at most. Charges stay when a study is deleted, and ledgers cannot be deleted.

A ledger knows what this server released. What was published by other ways about the same
records, or by a server that was restored from a backup made before a release, it does not
know.`)
	cmd.AddCommand(a.ledgerCreateCommand(), a.ledgerGetCommand(), a.ledgerListCommand(), a.ledgerChargesCommand())
	return cmd
}

// dataCommandOf returns a command that calls a server and prints data.
func (a *app) dataCommandOf(use, short, long, example string, check cobra.PositionalArgs, run func(ctx context.Context, client *dpareto.Client, args []string) error) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Example: example,
		Args: command.Args(check),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.session(cmd.Context(), func(ctx context.Context, client *dpareto.Client) error { return run(ctx, client, args) })
		},
	}
	a.addClientFlags(cmd)
	command.OutputFlag(cmd, &a.output)
	return cmd
}

func (a *app) ledgerCreateCommand() *cobra.Command {
	ledger := new(dparetov1.Ledger)
	var adjacency string
	cmd := a.dataCommandOf("create LEDGER", "Open the ledger of a dataset",
		`Opens the ledger of a dataset, with its budget. Neither the budget nor the number of records
can be changed later. Creating a ledger that exists with the same fields shows it.

The number of records is public: releases of averages over them are as noisy as it takes to
hide one of so many. Datasets that results are evaluated on take the adjacency replace-one.`,
		"  dpareto ledger create adult-test --records 16281 --epsilon 2 --delta 1e-6", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			value, ok := dparetov1.Adjacency_value["ADJACENCY_"+strings.ToUpper(strings.ReplaceAll(adjacency, "-", "_"))]
			if !ok || value == 0 {
				return command.Usagef("--adjacency %s, want add-remove or replace-one", adjacency)
			}
			ledger.Adjacency = dparetov1.Adjacency(value)
			resp, err := client.Releases.CreateLedger(ctx, &dparetov1.CreateLedgerRequest{
				LedgerId: strings.TrimPrefix(args[0], "ledgers/"), Ledger: ledger,
			})
			if err != nil {
				return &callError{"create " + ledgerName(args[0]), err}
			}
			return a.print(view.Ledgers([]*dparetov1.Ledger{resp.GetLedger()}), resp.GetLedger())
		})
	flags := cmd.Flags()
	flags.Int64Var(&ledger.Records, "records", 0, "number of records (required)")
	flags.Float64Var(&ledger.Epsilon, "epsilon", 0, "ε of everything that is ever charged (required)")
	flags.Float64Var(&ledger.Delta, "delta", 0, "δ of everything that is ever charged, of which half is for the composition (required)")
	flags.StringVar(&adjacency, "adjacency", "replace-one", "adjacency of all guarantees: add-remove or replace-one")
	flags.StringVar(&ledger.Description, "description", "", "which records these are")
	return cmd
}

func (a *app) ledgerGetCommand() *cobra.Command {
	return a.dataCommandOf("get LEDGER", "Show a ledger: its budget, and what is spent and left of it",
		`Shows a ledger. What is left is the largest ε of one more release with δ = 0 that fits: after
many charges it is more than the difference of ε and what is spent.`,
		"  dpareto ledger get adult-test", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			resp, err := client.Releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: ledgerName(args[0])})
			if err != nil {
				return &callError{"read " + ledgerName(args[0]), err}
			}
			return a.print(view.Ledgers([]*dparetov1.Ledger{resp.GetLedger()}), resp.GetLedger())
		})
}

func (a *app) ledgerListCommand() *cobra.Command {
	return a.dataCommandOf("list", "List ledgers", "", "  dpareto ledger list --output csv", cobra.NoArgs,
		func(ctx context.Context, client *dpareto.Client, _ []string) error {
			var all []*dparetov1.Ledger
			err := pages(func(token string) (string, error) {
				resp, err := client.Releases.ListLedgers(ctx, &dparetov1.ListLedgersRequest{PageToken: token})
				all = append(all, resp.GetLedgers()...)
				return resp.GetNextPageToken(), err
			})
			if err != nil {
				return &callError{"list ledgers", err}
			}
			return printAll(a, view.Ledgers(all), all)
		})
}

func (a *app) ledgerChargesCommand() *cobra.Command {
	return a.dataCommandOf("charges LEDGER", "List what was charged to a ledger",
		"Lists what was charged to a ledger, in the order of time, with the releases and studies that it\nwas charged for. A study may have been deleted since.",
		"  dpareto ledger charges adult-test", cobra.ExactArgs(1),
		func(ctx context.Context, client *dpareto.Client, args []string) error {
			var all []*dparetov1.Charge
			err := pages(func(token string) (string, error) {
				resp, err := client.Releases.ListCharges(ctx, &dparetov1.ListChargesRequest{Parent: ledgerName(args[0]), PageToken: token})
				all = append(all, resp.GetCharges()...)
				return resp.GetNextPageToken(), err
			})
			if err != nil {
				return &callError{"read the charges of " + ledgerName(args[0]), err}
			}
			return printAll(a, view.Charges(all), all)
		})
}

// pages reads all pages of a list.
func pages(next func(token string) (string, error)) error {
	for token := ""; ; {
		var err error
		if token, err = next(token); err != nil || token == "" {
			return err
		}
	}
}
