package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/load"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/server/accounting"
)

// hostName names the hidden command that bench server runs its server with.
const hostName = "server-host"

// Names of the measurements beside other work.
const (
	besideFit        = "beside a fit"
	besideAccounting = "beside accounting"
)

// serverFlags are the flags of dpareto-lab bench server.
type serverFlags struct {
	load.Options

	preload   int
	slowFit   bool
	fitTrials int
	accounts  int
	lengths   int
	repeat    int
	folder    string
	profile   string
	format    output.Format
}

func serverCommand(env *command.Env) *cobra.Command {
	var f serverFlags
	cmd := &cobra.Command{
		Use:   "server",
		Short: "Measure the server under load",
		Long: `Puts a server under load: workers ask for trials of studies with the random designer and
complete them at once. The server is a separate process with a new store, or the one at
--address, whose commits and processor time are unknown.

A pair is one suggestion and one completion. Both are writes that the server acknowledges
when they are on disk. fsyncs_per_write is the number of fsyncs per such write;
each commit takes two. server_cpu_us_per_pair and client_cpu_us_per_pair are processor
time, which other programs on the machine change less than pairs_per_second.

With --preload TRIALS the store is first filled with that many trials, divided equally among
all --studies. With --slow-fit the load is measured alone and beside another study that
constantly fits a model, in turns with --repeat; give a --rate that leaves the machine time
for both. With --accounting CALLS it is measured beside that many concurrent calls of
ComputeEpsilon, each for --lengths lengths of a run.`,
		Example: `  dpareto-lab bench server
  dpareto-lab bench server --studies 1000 --preload 1000000
  dpareto-lab bench server --slow-fit --studies 8 --workers 16 --rate 200
  dpareto-lab bench server --accounting 16 --workers 4 --rate 100`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return benchServer(cmd.Context(), env, f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.IntVar(&f.Workers, "workers", 64, "number of workers")
	flags.IntVar(&f.Connections, "connections", 1, "number of connections that the workers share")
	flags.IntVar(&f.Studies, "studies", 1, "number of studies that every worker takes turns with")
	flags.DurationVar(&f.Duration, "duration", 10*time.Second, "time of the measurement")
	flags.DurationVar(&f.Warmup, "warmup", 2*time.Second, "time before the measurement")
	flags.IntVar(&f.repeat, "repeat", 1, "number of measurements, one after the other")
	flags.Float64Var(&f.Rate, "rate", 0, "pairs per second that are attempted; default: as many as possible")
	flags.IntVar(&f.preload, "preload", 0, "number of trials that the store has at first")
	flags.BoolVar(&f.slowFit, "slow-fit", false, "measure the load alone, and beside a study that fits a model")
	flags.IntVar(&f.fitTrials, "fit-trials", 1000, "number of trials that the model is fitted to")
	flags.IntVar(&f.accounts, "accounting", 0, "measure the load alone, and beside this many concurrent calls of ComputeEpsilon")
	flags.IntVar(&f.lengths, "lengths", accounting.MaxLengths, "number of lengths in each of these calls")
	flags.StringVar(&f.Address, "address", "", "address of a running server to measure instead of a new one; it gets studies named load-...; of servers that share a store, separated by commas: connections go to them in turn")
	flags.StringVar(&f.folder, "store-dir", "", "folder for the new store; default: one for temporary files")
	flags.StringVar(&f.profile, "profile", "", "file for a profile of the server's processor time (see go tool pprof)")
	command.OutputFlag(cmd, &f.format)
	return cmd
}

// hostCommand is the server under test.
func hostCommand(env *command.Env) *cobra.Command {
	var storeFile string
	cmd := &cobra.Command{
		Use:    hostName,
		Short:  "Run the server that bench server measures",
		Hidden: true,
		Args:   command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return load.Serve(child.Supervised(cmd.Context(), env.Stdin), env.Stdout, storeFile, command.Version())
		},
	}
	cmd.Flags().StringVar(&storeFile, "store", "", "file of the store")
	return cmd
}

// benchServer measures and prints the table.
func benchServer(ctx context.Context, env *command.Env, f serverFlags) (err error) {
	if err := f.validate(); err != nil {
		return command.Usage(err)
	}
	m := &serverBench{Env: env, serverFlags: f}
	if f.Address == "" {
		folder, err := os.MkdirTemp(f.folder, "dpareto-bench-")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
		if err := m.startServer(ctx, filepath.Join(folder, "bench.db")); err != nil {
			return interrupted(ctx, env, err, kept{})
		}
		defer func() { err = errors.Join(err, m.host.Stop()) }()
	}
	if err := m.measureAll(ctx); err != nil {
		return interrupted(ctx, env, err, kept{})
	}
	table := load.Table(m.done)
	if f.format == output.Text {
		table = load.Upright(table)
	}
	return table.Write(env.Stdout, f.format)
}

func (f *serverFlags) validate() error {
	switch {
	case f.preload < 0:
		return fmt.Errorf("--preload must be at least 0, is %d", f.preload)
	case f.fitTrials < 1 || f.repeat < 1:
		return fmt.Errorf("--fit-trials and --repeat must be at least 1, are %d and %d", f.fitTrials, f.repeat)
	case f.accounts < 0 || f.lengths < 1 || f.lengths > accounting.MaxLengths:
		return fmt.Errorf("--accounting must be at least 0 and --lengths 1 to %d, are %d and %d", accounting.MaxLengths, f.accounts, f.lengths)
	case f.accounts > 0 && f.slowFit:
		return errors.New("--slow-fit and --accounting cannot be used together")
	case f.Address != "" && (f.preload > 0 || f.profile != ""):
		return errors.New("--preload and --profile cannot be used with --address")
	default:
		return f.Validate()
	}
}

// serverBench is a running dpareto-lab bench server.
type serverBench struct {
	*command.Env
	serverFlags

	host *load.Host // nil for a server with an address
	done []*load.Measurement
}

// startServer fills a store and starts a server on it.
func (b *serverBench) startServer(ctx context.Context, storeFile string) error {
	if b.preload > 0 {
		progress := b.Console.Start("filling the store", int64(b.preload), "trials")
		err := load.Fill(ctx, storeFile, b.Studies, b.preload, func(trials int) { progress.Set(int64(trials), "") })
		progress.Finish()
		if err != nil {
			return err
		}
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	b.host, err = load.StartHost(ctx, b.Console, program, "bench", hostName, "--store", storeFile, "--log-level", "warn")
	if err != nil {
		return err
	}
	b.Address = b.host.Address
	return nil
}

// measure measures the load once.
func (b *serverBench) measure(ctx context.Context, name string) error {
	m := &load.Measurement{Options: b.Options, Name: name}
	usage := func(into **load.Usage) func(context.Context) error {
		return func(ctx context.Context) (err error) {
			if b.host != nil {
				*into, err = b.host.Usage(ctx)
			}
			return err
		}
	}
	begin := usage(&m.Began)
	profiled := make(chan error, 1)
	if b.profile != "" && name == b.profiled() {
		begin = func(ctx context.Context) error {
			go func() { profiled <- b.writeProfile(ctx) }()
			return usage(&m.Began)(ctx)
		}
	} else {
		profiled <- nil
	}
	if b.host != nil {
		m.Start = b.host.Start
	}
	var err error
	if m.Load, err = load.Run(ctx, b.Options, begin, func(ctx context.Context) error {
		return errors.Join(usage(&m.Ended)(ctx), <-profiled)
	}); err != nil {
		return err
	}
	b.done = append(b.done, m)
	return nil
}

// writeProfile writes a profile of the server over the measurement.
func (b *serverBench) writeProfile(ctx context.Context) error {
	file, err := os.Create(b.profile)
	if err != nil {
		return err
	}
	return errors.Join(b.host.Profile(ctx, file, b.Duration), file.Close())
}

// otherWork is work of the server besides the load.
type otherWork interface {
	Start(ctx context.Context) (stop func() error)
	Close() error
}

// other returns the work that the flags ask for, with its name and what to print in the end, or nil.
func (b *serverBench) other(ctx context.Context) (other otherWork, name string, say func(), err error) {
	switch {
	case b.slowFit:
		f, err := load.NewFitting(ctx, b.Address, b.fitTrials)
		return f, besideFit, func() { b.compareFit(f.Suggestions.Load()) }, err
	case b.accounts > 0:
		a, err := load.NewAccounting(b.Address, b.accounts, b.lengths)
		return a, besideAccounting, func() {
			b.Sayf("%d calls for %d lengths were answered and %d refused\n", a.Answered.Load(), b.lengths, a.Refused.Load())
		}, err
	default:
		return nil, "", nil, nil
	}
}

// measureAll measures the load as often as the flags say and, with other work, in turns alone and
// beside it, so that other programs on the machine disturb both.
func (b *serverBench) measureAll(ctx context.Context) (err error) {
	other, name, say, err := b.other(ctx)
	if err != nil {
		return err
	}
	if other != nil {
		defer func() { err = errors.Join(err, other.Close()) }()
	}
	for i := range b.repeat {
		if err := b.measure(ctx, b.nameOf("alone", i)); err != nil {
			return err
		}
		if other == nil {
			continue
		}
		stop := other.Start(ctx)
		err := b.measure(ctx, b.nameOf(name, i))
		if err := errors.Join(err, stop()); err != nil {
			return err
		}
	}
	if other != nil {
		say()
	}
	return nil
}

// nameOf returns the name of a repetition of a measurement.
func (b *serverBench) nameOf(what string, repetition int) string {
	if b.repeat == 1 {
		return what
	}
	return fmt.Sprintf("%s %d", what, repetition+1)
}

// compareFit prints how much slower the slow calls are beside a fit, as the median over the
// repetitions.
func (b *serverBench) compareFit(suggestions int64) {
	if slices.ContainsFunc(b.done, func(m *load.Measurement) bool { return m.Load.Pairs() == 0 }) {
		b.Sayf("a measurement has no pair: there is nothing to compare; give a longer --duration\n")
		return
	}
	ratio := func(of func(*load.Load) load.Latencies) float64 {
		var ratios []float64
		for pair := range slices.Chunk(b.done, 2) {
			ratios = append(ratios, of(pair[1].Load).Quantile(0.99).Seconds()/of(pair[0].Load).Quantile(0.99).Seconds())
		}
		slices.Sort(ratios)
		return (ratios[(len(ratios)-1)/2] + ratios[len(ratios)/2]) / 2
	}
	b.Sayf("beside a fit to %d trials (%d suggestions meanwhile) the p99 of SuggestTrials is %.2f times and of CompleteTrial %.2f times the p99 alone\n",
		b.fitTrials, suggestions,
		ratio(func(l *load.Load) load.Latencies { return l.Suggest }), ratio(func(l *load.Load) load.Latencies { return l.Complete }))
}

// profiled returns the name of the measurement that a profile is made of.
func (b *serverBench) profiled() string {
	switch {
	case b.slowFit:
		return b.nameOf(besideFit, 0)
	case b.accounts > 0:
		return b.nameOf(besideAccounting, 0)
	}
	return b.nameOf("alone", 0)
}
