package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"time"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/agent/slot"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/tracing"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/console"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// watchEvery is the time between two looks at a study whose progress is shown.
const watchEvery = 500 * time.Millisecond

// flags are the flags of dpareto agent.
type flags struct {
	study           string
	workers         int
	workerID        string
	dataDir         string
	trainer         string
	seed            *uint64 // nil for the operating system's entropy
	supervised      bool
	traces          string // endpoint
	failWhenStopped bool
}

// Command returns the command agent.
func Command(env *command.Env) *cobra.Command {
	server := remote.New(env)
	var f flags
	var seed uint64
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Train the trials of a study",
		Long: `Asks for trials of a study, trains them, and reports the measurements, until no trial is left.

The study's spec names the trainer and its settings. The built-in trainers are
` + view.TrainerNames() + `.
"dpareto study init --help" lists their settings.

The agent waits while the server is away, and then continues. SIGTERM or Ctrl-C stops it: it
releases its trials within moments, and exits with code 0, or 1 with --fail-when-stopped. A second
signal ends it at once; other workers get its trials when their leases expire.

On a terminal each worker has a bar that shows its trial; elsewhere the log reports progress
every few seconds.

All randomness of the training comes from the operating system's entropy, and no training can be
repeated. The flag --seed makes trainings repeatable, for experiments: anyone with the seed can
remove the noise, so epsilon does not hold. Such trials are marked SEEDED, and a study with
private_mode or random_stopping rejects them.

A worker keeps its id across a restart, and gets its trial back. The default prefix is the host
name and the lowest number that no other agent of the same study and user has on this host.`,
		Example: `  dpareto agent --study svt
  dpareto agent --study adult --workers 4 --data-dir ~/data
  dpareto agent --study adult --seed 1`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("seed") {
				f.seed = &seed
			}
			return run(cmd.Context(), env, server, f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.study, "study", "", "id of the study (required)")
	set.IntVar(&f.workers, "workers", runtime.NumCPU(), "number of trials that are trained at the same time; default: number of processors")
	set.StringVar(&f.workerID, "worker-id", "", "prefix of the workers' ids, unique among the agents of the study and the same after a restart")
	command.DataDirFlag(cmd, &f.dataDir)
	set.StringVar(&f.trainer, "trainer", "", "trainer to use in place of the study's")
	set.Uint64Var(&seed, "seed", 0, "seed of the training, which then is not private (see above); default: the operating system's entropy")
	set.BoolVar(&f.failWhenStopped, "fail-when-stopped", false,
		"end with exit code 1 when stopped by a signal, so that a job controller starts the agent again")
	tracing.AddFlag(set, &f.traces)
	command.FromEnvironment(set, "fail-when-stopped", "otlp-endpoint")
	command.SupervisedFlag(cmd, &f.supervised)
	server.AddFlags(cmd)
	return cmd
}

// errStopped ends an agent that was stopped, with --fail-when-stopped.
var errStopped = errors.New("stopped before the study was complete")

// validate checks the flags.
func (f *flags) validate() error {
	switch {
	case f.study == "":
		return errors.New("--study is required: the id of the study")
	case f.workers < 1:
		return fmt.Errorf("--workers must be at least 1, is %d", f.workers)
	default:
		return nil
	}
}

// run runs an agent until the study is done or ctx is.
func run(ctx context.Context, env *command.Env, server *remote.Server, f flags) error {
	if f.supervised {
		ctx = child.Supervised(ctx, env.Stdin)
	}
	if err := f.validate(); err != nil {
		return command.Usage(err)
	}
	traces, stopTracing, err := tracing.Start(ctx, env.Logger, f.traces, "dpareto-agent")
	if err != nil {
		return err
	}
	defer stopTracing()
	var options []dpareto.Option
	if traces != nil {
		options = append(options, dpareto.WithTracing(traces))
	}
	client, err := server.DialPatiently(options...)
	if err != nil {
		return err
	}
	defer remote.Close(client)
	client.Studies = agent.GiveBack(client.Studies)
	handle := client.Study(remote.StudyID(f.study))
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	chosen, err := f.choose(study.GetSpec())
	if err != nil {
		return err
	}
	if err := chosen.checkAverages(ctx, f.dataDir, study.GetSpec()); err != nil {
		return err
	}
	runner, finishWorkers, err := f.prepare(ctx, env, server.Address(), handle, study, chosen)
	if err != nil {
		return err
	}
	attributes := []any{
		"study", handle.Name(), "trainer", runner.Trainer.Name(), "worker_id", runner.WorkerID, "workers", runner.Workers,
	}
	env.Logger.Info("agent starts", attributes...)
	if f.seed != nil {
		env.Logger.Warn("the trainings are seeded and not for release: anyone with the seed can remove their noise", "code", "SEEDED", "seed", *f.seed)
	}
	finish := showProgress(ctx, env, handle, study)
	err = runner.Run(ctx)
	finishWorkers()
	finish()
	switch {
	case err == nil:
		env.Logger.Info("the study hands out no more trials", "study", handle.Name())
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		env.Logger.Info("agent stopped; its trials were given back", "study", handle.Name())
		if f.failWhenStopped {
			return errStopped
		}
		return nil
	}
	return err
}

// prepare returns an agent that trains trials of a study, and a function that removes the
// display of its workers after the run.
func (f *flags) prepare(ctx context.Context, env *command.Env, address string, handle *dpareto.Study, study *dparetov1.Study, chosen choice) (*agent.Agent, func(), error) {
	download := env.Download("downloading data")
	defer download.Finish()
	trainer, err := chosen.open(ctx, trainer.Options{DataDir: f.dataDir, Settings: chosen.settings, Progress: download.Set})
	if err != nil {
		return nil, nil, err
	}
	runner := &agent.Agent{Study: handle, Trainer: trainer, Workers: f.workers, WorkerID: f.workerID, Seed: f.seed}
	release := func() {}
	if runner.WorkerID == "" {
		runner.WorkerID, release = defaultWorkerID(env.Logger, address, view.ID(handle.Name()))
	}
	runner.Attributes = identity(chosen.settings, study.GetSpec())
	shown := showWorkers(ctx, env, study.GetSpec(), runner.WorkerID, f.workers)
	runner.Events = shown.events()
	return runner, func() {
		shown.finish()
		release()
	}, nil
}

// Local are workers in this process, for a command that needs trials trained.
type Local struct {
	Workers int
	DataDir string
	Seed    *uint64 // nil for the operating system's entropy
}

// Train trains trials of a study on the server at an address until the study hands out no
// more or ctx is done. The latter is not an error.
func (l *Local) Train(ctx context.Context, env *command.Env, address string, handle *dpareto.Study, study *dparetov1.Study) error {
	f := flags{workers: l.Workers, dataDir: l.DataDir, seed: l.Seed}
	chosen, err := f.choose(study.GetSpec())
	if err != nil {
		return err
	}
	runner, finish, err := f.prepare(ctx, env, address, handle, study, chosen)
	if err != nil {
		return err
	}
	defer finish()
	if err := runner.Run(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	return nil
}

// choice is a trainer by name, and its settings.
type choice struct {
	name     string
	settings map[string]string
	shards   int  // of the training examples
	subsets  bool // whether some trials are for a subset of the training examples
}

// open makes the trainer.
func (c choice) open(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
	if c.subsets || c.shards > 1 {
		return builtin.Registry().NewDivisible(ctx, c.name, options, c.shards)
	}
	return builtin.Registry().New(ctx, c.name, options)
}

// choose returns the trainer that the flags or the study's spec name, with the settings of the
// spec.
func (f *flags) choose(spec *dparetov1.StudySpec) (choice, error) {
	c := choice{name: cmp.Or(f.trainer, spec.GetTrainer().GetName()), settings: spec.GetTrainer().GetSettings(),
		shards:  int(spec.GetPrivateMode().GetTrainingShards()),
		subsets: spec.GetRandomStopping().GetSubsetShare() > 0}
	if c.name == "" {
		return c, errors.New("the study's spec names no trainer; name one with --trainer, or write your own worker")
	}
	if f.seed != nil && (spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil) {
		return c, command.Usage(errors.New("--seed cannot be used with a study that has private_mode or random_stopping: anyone with the seed can remove the noise"))
	}
	return c, nil
}

// identity returns the attributes of trials on a user's own data. Studies that publish under a guarantee have
// no attributes: their settings name the data.
func identity(settings map[string]string, spec *dparetov1.StudySpec) map[string]string {
	if spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil {
		return nil
	}
	return experiment.Identity(settings)
}

// isForPublication reports whether results of a study are to be published.
func isForPublication(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil || spec.GetTestLedger() != ""
}

// checkAverages refuses a metric that the study, to protect test records, takes for an
// average of numbers in [0, 1] over all of them, if the trainer declares otherwise: one
// record can change a mean loss by any amount, and an error rate on fewer records by more
// than the noise hides.
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
			return fmt.Errorf("metric %s: must be an average of numbers in [0, 1] over %d test records for the study's guarantee, is not in trainer %s; create a study without it",
				own.Name, records, c.name)
		default:
			return fmt.Errorf("metric %s: must be an average over %d test records for the study's guarantee, but trainer %s measures it on %d; compare the study with the trainer's setting evaluation",
				own.Name, records, c.name, own.SampleSize)
		}
	}
	return nil
}

// protectedRecords returns the number of test records that a metric must average over for
// the study's guarantee, or 0 if the guarantee does not depend on the metric.
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

// defaultWorkerID returns a prefix of worker ids that no other agent of the study has
// and that is likely the same after a restart (see the command's help).
func defaultWorkerID(logger *slog.Logger, address, study string) (id string, release func()) {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "host"
	}
	folder, err := os.UserCacheDir()
	if err == nil {
		var number int
		number, release, err = slot.Take(filepath.Join(folder, "dpareto", "agents"), address+"/"+study)
		if err == nil {
			// Other users and containers have other folders, whose slots have the same numbers.
			sum := fnv.New32a()
			_, _ = sum.Write([]byte(folder))
			return fmt.Sprintf("%s-%08x-%d", host, sum.Sum32(), number), release
		}
	}
	logger.Warn("no stable worker id: a restarted agent waits for the leases of its trials; give --worker-id", "error", err)
	return fmt.Sprintf("%s-process-%d", host, os.Getpid()), func() {}
}

// showProgress shows the progress of a study on a terminal until finish is called.
func showProgress(ctx context.Context, env *command.Env, handle *dpareto.Study, study *dparetov1.Study) (finish func()) {
	if !showsBars(ctx, env) {
		return func() {}
	}
	progress := env.Console.Start(view.ID(study.GetName()), study.GetSpec().GetBudget().GetMaxTrials(), "trials")
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

// showsBars reports whether bars show the progress of an agent.
func showsBars(ctx context.Context, env *command.Env) bool {
	return env.Console.IsTerminal() && env.Logger.Enabled(ctx, slog.LevelInfo)
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
