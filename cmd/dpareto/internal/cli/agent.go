package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/child"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/console"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/output"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/slot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// watchEvery is the time between two looks at a study whose progress is shown.
const watchEvery = 500 * time.Millisecond

type agentFlags struct {
	study      string
	workers    int
	workerID   string
	dataDir    string
	trainer    string
	seed       uint64
	hasSeed    bool
	supervised bool
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
gives its trials back first.

A worker's id should be the same after a restart, so that it gets back the trial that it
held. The default prefix is the name of the host and a number: the lowest that no other
agent of the same study and user on the host has.`,
		Example: `  dpareto agent --study svt
  dpareto agent --study adult --workers 4 --data-dir ~/data`,
		Args: args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.hasSeed = cmd.Flags().Changed("seed")
			return a.agent(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.study, "study", "", "id of the study (required)")
	flags.IntVar(&f.workers, "workers", runtime.NumCPU(), "number of trials that are trained at the same time; default: number of processors")
	flags.StringVar(&f.workerID, "worker-id", "", "prefix of the workers' ids, unique among the agents of the study and the same after a restart")
	addDataDirFlag(cmd, &f.dataDir)
	flags.StringVar(&f.trainer, "trainer", "", "trainer to use in place of that of the study's spec")
	flags.Uint64Var(&f.seed, "seed", 0, "seed of the training; default: drawn")
	addSupervisedFlag(cmd, &f.supervised)
	a.addClientFlags(cmd)
	return cmd
}

// addDataDirFlag adds the flag of commands that load data.
func addDataDirFlag(cmd *cobra.Command, dataDir *string) {
	const name = "data-dir"
	cmd.Flags().StringVar(dataDir, name, "", "folder with data files, looked into before the cache and the network")
	fromEnvironment(cmd.Flags(), name)
}

// trainerHelp lists the built-in trainers with their settings.
func trainerHelp() string {
	var b strings.Builder
	for _, d := range builtin.Registry().Definitions() {
		fmt.Fprintf(&b, "  %s: %s\n", d.Name, d.Summary)
		for _, s := range d.Settings {
			fmt.Fprintf(&b, "      %s (default %s): %s\n", s.Name, s.Default, s.Usage)
		}
	}
	return b.String()
}

// agent runs an agent until the study is done or ctx is.
func (a *app) agent(ctx context.Context, f agentFlags) error {
	if f.supervised {
		ctx = child.Supervised(ctx, a.stdin)
	}
	if f.study == "" {
		return &usageError{errors.New("agent: name the study with --study")}
	}
	if f.workers < 1 {
		return &usageError{fmt.Errorf("agent: --workers is %d, want at least 1", f.workers)}
	}
	id := output.ID(f.study)
	client, err := a.dial(dpareto.WithRetryNotice(a.notice()))
	if err != nil {
		return err
	}
	defer closeClient(client)
	handle := client.Study(id)
	study, err := handle.Get(ctx)
	if err != nil {
		return err
	}
	trainer, err := a.trainer(ctx, f, study.GetSpec())
	if err != nil {
		return err
	}
	workerID := f.workerID
	if workerID == "" {
		var release func()
		workerID, release = a.defaultWorkerID(id)
		defer release()
	}
	if !f.hasSeed {
		f.seed = rand.Uint64()
	}
	a.logger.Info("agent starts", "study", handle.Name(), "trainer", trainer.Name(),
		"worker_id", workerID, "workers", f.workers, "seed", f.seed)

	runner := &agent.Agent{
		Study: handle, Trainer: trainer, Workers: f.workers, WorkerID: workerID, Seed: f.seed,
		Events: agent.Events{TrialStarted: a.logStart, TrialDone: a.logTrial},
	}
	finish := a.showProgress(ctx, handle, study)
	err = runner.Run(ctx)
	finish()
	switch {
	case err == nil:
		a.logger.Info("the study hands out no more trials", "study", handle.Name())
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		a.logger.Info("agent stopped; its trials were given back", "study", handle.Name())
		return nil
	}
	return err
}

// trainer makes the trainer of a study.
func (a *app) trainer(ctx context.Context, f agentFlags, spec *dparetov1.StudySpec) (trainer.Trainer, error) {
	name := cmp.Or(f.trainer, spec.GetTrainer().GetName())
	if name == "" {
		return nil, errors.New("the study's spec names no trainer; name one with --trainer, or write a worker of your own")
	}
	download := a.downloadProgress("downloading data")
	defer download.finish()
	return builtin.Registry().New(ctx, name, trainer.Options{
		DataDir: f.dataDir, Settings: spec.GetTrainer().GetSettings(), Progress: download.set,
	})
}

// download shows the progress of a download, once there is one.
type download struct {
	console  *console.Console
	label    string
	progress *console.Progress
}

func (a *app) downloadProgress(label string) *download {
	return &download{console: a.console, label: label}
}

// set shows the number of bytes done, of a total that is negative if it is not known.
func (d *download) set(done, total int64) {
	const kilobyte = 1000
	if d.progress == nil {
		d.progress = d.console.Start(d.label, max(0, total/kilobyte), "kB")
	}
	d.progress.Set(done/kilobyte, "")
}

func (d *download) finish() { d.progress.Finish() }

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
			return fmt.Sprintf("%s-%d", host, number), release
		}
	}
	a.logger.Warn("no stable worker id: a restarted agent waits for the leases of its trials; give --worker-id", "error", err)
	return fmt.Sprintf("%s-process-%d", host, os.Getpid()), func() {}
}

// logStart logs that a worker begins with a trial.
func (a *app) logStart(worker string, trial *dpareto.Trial) {
	a.logger.Debug("trial started", "trial", trial.Number(), "worker", worker)
}

// logTrial logs what became of a trial: what failed as a warning, the rest only where no
// bar shows that the agent is alive.
func (a *app) logTrial(worker string, trial *dpareto.Trial, outcome agent.Outcome, m trainer.Measurement, err error) {
	attributes := []any{"trial", trial.Number(), "outcome", outcome.String(), "worker", worker}
	level := slog.LevelInfo
	if a.console.IsTerminal() {
		level = slog.LevelDebug
	}
	switch outcome {
	case agent.Succeeded:
		attributes = append(attributes, "seconds", output.Number(m.Elapsed.Seconds()))
	case agent.Failed, agent.Abandoned:
		level = slog.LevelWarn
		attributes = append(attributes, "error", err)
	case agent.Infeasible, agent.Released:
		attributes = append(attributes, "reason", err)
	}
	a.logger.Log(context.Background(), level, "trial done", attributes...)
}

// showProgress shows the progress of a study on a terminal until finish is called.
func (a *app) showProgress(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study) (finish func()) {
	if !a.console.IsTerminal() || !a.logger.Enabled(ctx, slog.LevelInfo) {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		a.watch(ctx, handle, study)
	}()
	return func() {
		cancel()
		<-ended
	}
}

// watch shows the progress of a study until ctx is done.
func (a *app) watch(ctx context.Context, handle *dpareto.Study, study *dparetov1.Study) {
	progress := a.console.Start(output.ID(study.GetName()), study.GetSpec().GetBudget().GetMaxTrials(), "trials")
	defer progress.Finish()
	ticker := time.NewTicker(watchEvery)
	defer ticker.Stop()
	for {
		counts := study.GetTrialCounts()
		progress.Set(output.Done(counts), fmt.Sprintf("%d running", counts.GetActive()+counts.GetStopping()))
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
