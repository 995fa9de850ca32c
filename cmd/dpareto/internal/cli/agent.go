package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/slot"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// watchEvery is the time between two looks at a study whose progress is shown.
const watchEvery = 500 * time.Millisecond

// The setting of trainers that says where their noise comes from, and its values.
const (
	settingNoiseSource = "noise_source"
	noiseFromSeed      = "seed"
	noiseFromOS        = "os"
)

type agentFlags struct {
	study           string
	workers         int
	workerID        string
	dataDir         string
	trainer         string
	seed            uint64
	hasSeed         bool
	noiseSource     string
	supervised      bool
	traces          string // endpoint
	failWhenStopped bool
}

func (a *app) agentCommand() *cobra.Command {
	var f agentFlags
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Train the trials of a study",
		Long: `Asks for trials of a study, trains them, and tells what was measured, until the study
hands out no more.

The trainer and its settings are those of the study's spec. The built-in ones are:

` + trainerHelp() + `
While the server is away the agent goes on by itself. SIGTERM or Ctrl-C stops it: it
gives its trials back first, within moments, and ends with exit code 0 (but see
--fail-when-stopped). A second one ends it at once; other workers then get its trials when their leases run out.

On a terminal a bar for each worker shows its trial; elsewhere the log does, every few
seconds.

For models that will be released, --noise-source os takes the noise of the training from
the operating system's entropy. Then no seed is recorded anywhere, and nobody can repeat
a training. That is the default for a study with private_mode, random_stopping or a
test_ledger, unless --seed is given.

A worker's id should be the same after a restart, so that it gets back the trial that it
held. The default prefix is the name of the host and a number: the lowest that no other
agent of the same study and user on the host has.`,
		Example: `  dpareto agent --study svt
  dpareto agent --study adult --workers 4 --data-dir ~/data
  dpareto agent --study adult --noise-source os`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.hasSeed = cmd.Flags().Changed("seed")
			return a.agent(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.study, "study", "", "id of the study (required)")
	flags.IntVar(&f.workers, "workers", runtime.NumCPU(), "number of trials that are trained at the same time; default: number of processors")
	flags.StringVar(&f.workerID, "worker-id", "", "prefix of the workers' ids, unique among the agents of the study and the same after a restart")
	command.DataDirFlag(cmd, &f.dataDir)
	flags.StringVar(&f.trainer, "trainer", "", "trainer to use in place of that of the study's spec")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the training; default: drawn")
	flags.StringVar(&f.noiseSource, "noise-source", "", "where the noise of the training comes from: seed, or os (see above); default: as the study's spec sets it")
	flags.BoolVar(&f.failWhenStopped, "fail-when-stopped", false,
		"end with exit code 1 when stopped by a signal, so that a job controller starts the agent again")
	command.FromEnvironment(flags, "fail-when-stopped")
	addTraceFlag(flags, &f.traces)
	command.FromEnvironment(flags, "otlp-endpoint")
	command.SupervisedFlag(cmd, &f.supervised)
	a.addClientFlags(cmd)
	return cmd
}

// errStopped is how an agent ends that was stopped, where that is to be a failure.
var errStopped = errors.New("stopped before the study was complete")

// validate checks the flags.
func (f *agentFlags) validate() error {
	switch {
	case f.study == "":
		return errors.New("agent: name the study with --study")
	case f.workers < 1:
		return fmt.Errorf("agent: --workers is %d, want at least 1", f.workers)
	case !slices.Contains([]string{"", noiseFromSeed, noiseFromOS}, f.noiseSource):
		return fmt.Errorf("agent: --noise-source is %q, want %s or %s", f.noiseSource, noiseFromSeed, noiseFromOS)
	default:
		return nil
	}
}

// trainerHelp lists the built-in trainers with their settings.
func trainerHelp() string {
	var b strings.Builder
	for _, d := range builtin.Registry().Definitions() {
		fmt.Fprintf(&b, "  %s: %s\n", d.Name, d.Summary)
		for _, s := range d.Settings {
			fallback := ""
			if s.Default != "" {
				fallback = " (default " + s.Default + ")"
			}
			fmt.Fprintf(&b, "      %s%s: %s\n", s.Name, fallback, s.Usage)
		}
	}
	return b.String()
}

// agent runs an agent until the study is done or ctx is.
func (a *app) agent(ctx context.Context, f agentFlags) error {
	if f.supervised {
		ctx = child.Supervised(ctx, a.Stdin)
	}
	if err := f.validate(); err != nil {
		return command.Usage(err)
	}
	id := studyID(f.study)
	traces, stopTracing, err := a.startTracing(ctx, f.traces, "dpareto-agent")
	if err != nil {
		return err
	}
	defer stopTracing()
	options := []dpareto.Option{dpareto.WithRetryNotice(a.notice())}
	if traces != nil {
		options = append(options, dpareto.WithTracing(traces))
	}
	client, err := a.dial(options...)
	if err != nil {
		return err
	}
	defer closeClient(client)
	client.Studies = agent.GiveBack(client.Studies)
	handle := client.Study(id)
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	choice, err := f.choose(study.GetSpec())
	if err != nil {
		return err
	}
	trainer, err := a.trainer(ctx, choice, f.dataDir)
	if err != nil {
		return err
	}
	if err := choice.checkAverages(ctx, f.dataDir, study.GetSpec()); err != nil {
		return err
	}
	workerID := f.workerID
	if workerID == "" {
		var release func()
		workerID, release = a.defaultWorkerID(id)
		defer release()
	}
	attributes := []any{
		"study", handle.Name(), "trainer", trainer.Name(), "worker_id", workerID, "workers", f.workers,
	}
	if !f.hasSeed {
		f.seed = rand.Uint64()
	}
	if choice.secret() {
		attributes = append(attributes, settingNoiseSource, noiseFromOS)
	} else {
		attributes = append(attributes, "seed", f.seed)
	}
	a.Logger.Info("agent starts", attributes...)

	finish := a.showProgress(ctx, handle, study)
	workers := a.showWorkers(ctx, study.GetSpec(), workerID, f.workers)
	runner := &agent.Agent{
		Study: handle, Trainer: trainer, Workers: f.workers, WorkerID: workerID, Seed: f.seed,
		Events: workers.events(),
	}
	err = runner.Run(ctx)
	workers.finish()
	finish()
	switch {
	case err == nil:
		a.Logger.Info("the study hands out no more trials", "study", handle.Name())
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		a.Logger.Info("agent stopped; its trials were given back", "study", handle.Name())
		if f.failWhenStopped {
			return errStopped
		}
		return nil
	}
	return err
}

// choice is a trainer by name, and its settings.
type choice struct {
	name     string
	settings map[string]string
	shards   int // of the training examples
}

// secret reports whether nothing that could repeat the training may be recorded: lots
// that are known protect less, as noise that is known does.
func (c choice) secret() bool { return c.settings[settingNoiseSource] == noiseFromOS }

// choose returns the trainer that the flags or the study's spec name, with the settings
// of the spec and of the flags.
func (f *agentFlags) choose(spec *dparetov1.StudySpec) (choice, error) {
	c := choice{name: cmp.Or(f.trainer, spec.GetTrainer().GetName()), settings: maps.Clone(spec.GetTrainer().GetSettings()),
		shards: int(spec.GetPrivateMode().GetTrainingShards())}
	if c.name == "" {
		return c, errors.New("the study's spec names no trainer; name one with --trainer, or write a worker of your own")
	}
	noiseSource := f.noiseSource
	if noiseSource == "" && c.settings[settingNoiseSource] == "" && isForPublication(spec) && !f.hasSeed && understands(c.name, settingNoiseSource) {
		noiseSource = noiseFromOS // what is published must not be repeatable
	}
	if noiseSource != "" {
		if !understands(c.name, settingNoiseSource) {
			return c, fmt.Errorf("trainer %s has no setting %s: --noise-source cannot be used with it", c.name, settingNoiseSource)
		}
		if c.settings == nil {
			c.settings = make(map[string]string)
		}
		c.settings[settingNoiseSource] = noiseSource
	}
	if c.secret() && f.hasSeed {
		return c, command.Usage(errors.New("agent: --seed would make the training repeatable, which noise from os must not be; leave it out"))
	}
	return c, nil
}

// isForPublication reports whether results of a study are to be published.
func isForPublication(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil || spec.GetTestLedger() != ""
}

// checkAverages refuses metrics that a study which protects test records takes for averages
// over so many of them of numbers in [0, 1], and of which the trainer knows that they are
// not: one record can change a mean loss by any amount, and an error rate on fewer records
// by more than the noise hides.
func (c choice) checkAverages(ctx context.Context, dataDir string, spec *dparetov1.StudySpec) error {
	if !isForPublication(spec) {
		return nil
	}
	declaration, err := builtin.Registry().Declare(ctx, c.name, trainer.Options{DataDir: dataDir, Settings: c.settings})
	if err != nil {
		return err
	}
	for _, own := range declaration.Metrics {
		records := protectedRecords(spec, own.Name)
		switch {
		case records == 0 || own.Average && int64(own.SampleSize) >= records:
		case !own.Average:
			return fmt.Errorf("agent: the guarantee of the study takes metric %s for an average, over %d test records, of numbers in [0, 1]; that of trainer %s is none; make a study without this metric",
				own.Name, records, c.name)
		default:
			return fmt.Errorf("agent: the guarantee of the study takes metric %s for an average over %d test records, trainer %s measures it on %d; compare the study with the trainer's settings (see evaluation)",
				own.Name, records, c.name, own.SampleSize)
		}
	}
	return nil
}

// protectedRecords returns the number of test records over which a study that protects them
// takes a metric to be an average, 0 if the guarantee does not need it to be one.
func protectedRecords(spec *dparetov1.StudySpec, metric string) int64 {
	i := slices.IndexFunc(spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool { return m.GetId() == metric })
	if i < 0 || spec.GetMetrics()[i].GetReported() == nil {
		return 0
	}
	if mode := spec.GetPrivateMode(); mode != nil {
		return mode.GetTestSetSize()
	}
	if stopping := spec.GetRandomStopping(); stopping != nil {
		if stopping.GetMetric() != metric {
			return 0
		}
		return stopping.GetTestSetSize()
	}
	return int64(spec.GetMetrics()[i].GetReported().GetSampleSize())
}

// understands reports whether a built-in trainer has a setting. What is no trainer has
// them all: making it gives a better error.
func understands(trainerName, setting string) bool {
	for _, d := range builtin.Registry().Definitions() {
		if d.Name == trainerName {
			return slices.ContainsFunc(d.Settings, func(s trainer.Setting) bool { return s.Name == setting })
		}
	}
	return true
}

// trainer makes a trainer.
func (a *app) trainer(ctx context.Context, c choice, dataDir string) (trainer.Trainer, error) {
	download := a.Download("downloading data")
	defer download.Finish()
	return builtin.Registry().NewSharded(ctx, c.name, trainer.Options{
		DataDir: dataDir, Settings: c.settings, Progress: download.Set,
	}, c.shards)
}

// defaultWorkerID returns a prefix of worker ids that no other agent of the study has
// and that is likely the same after a restart (see the command's help).
func (a *app) defaultWorkerID(study string) (id string, release func()) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	folder, err := os.UserCacheDir()
	if err == nil {
		var number int
		number, release, err = slot.Take(filepath.Join(folder, "dpareto", "agents"), a.client.address+"/"+study)
		if err == nil {
			// Slots are those of one folder: other users and containers have others.
			sum := fnv.New32a()
			_, _ = sum.Write([]byte(folder))
			return fmt.Sprintf("%s-%08x-%d", host, sum.Sum32(), number), release
		}
	}
	a.Logger.Warn("no stable worker id: a restarted agent waits for the leases of its trials; give --worker-id", "error", err)
	return fmt.Sprintf("%s-process-%d", host, os.Getpid()), func() {}
}

// showProgress shows the progress of a study on a terminal until finish is called.
func (a *app) showProgress(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study) (finish func()) {
	if !a.showsBars(ctx) {
		return func() {}
	}
	progress := a.Console.Start(view.ID(study.GetName()), study.GetSpec().GetBudget().GetMaxTrials(), "trials")
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		watch(ctx, handle, study, progress)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// showsBars reports whether bars show what an agent does.
func (a *app) showsBars(ctx context.Context) bool {
	return a.Console.IsTerminal() && a.Logger.Enabled(ctx, slog.LevelInfo)
}

// watch shows the progress of a study until ctx is done.
func watch(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study, progress *console.Progress) {
	defer progress.Finish()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		counts := study.GetTrialCounts()
		progress.Set(view.Done(counts), fmt.Sprintf("%d running", counts.GetActive()+counts.GetStopping()))
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		// What cannot be read now is read the next time.
		if latest, err := handle.Get(ctx); err == nil {
			study = latest
		}
	}
}
