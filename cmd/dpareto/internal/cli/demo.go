package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/dpareto/studies"
	"github.com/dpareto/dpareto/cmd/internal/child"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// demoAgents is the number of agent processes of a demo.
	demoAgents = 2
	// startPatience is how long the server of a demo may take to start.
	startPatience = 20 * time.Second
	// childGrace is how long a child may take to stop: an agent gives its trials back.
	childGrace = 10 * time.Second
	// lookEvery is the time between two looks at the study of a demo.
	lookEvery = 250 * time.Millisecond
)

type demoFlags struct {
	study   string
	trials  int64
	seed    uint64
	dataDir string
	workers int
	picture string
	keep    bool
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a real study: a server, two agents, and the front that they find",
		Long: `Starts a server with a fresh store on a free port of this machine, and two agents, as
processes of their own; runs a study; and shows the front that they find.

  adult           logistic regression with DP-SGD on Adult (UCI census income)
  adult-adam      the same with DP-Adam
  adult-private   a front that may be published, with noise and declared privacy budgets
  adult-svm       a linear SVM with DP-SGD on Adult
  adult-variance  logistic regression with the noise of the paper's Table 1 taken as a
                  variance, and without checkpoints, for comparisons
  mnist           a network with hidden layers of 128 and 64 with DP-SGD on MNIST, with
                  lots of 600 and a fixed noise multiplier
  mnist-mlp1      a network with one hidden layer of 1000 with DP-SGD on MNIST
  mnist-mlp2      that of mnist with lots and noise to be found
  svt             the sparse vector technique, compared with its exact front

Adult comes from --data-dir, or the cache, or is downloaded (3.5 MB, with a checksum).
Where that fails, generated data of the same shape take its place, and every output says
so.

With --output json the last line on standard output is one JSON object with study,
trials, hypervolume (of the posterior front; for svt the true one), observed_hypervolume,
exact_hypervolume (svt), front, and more.`,
		Example: `  dpareto demo
  dpareto demo --study svt --seed 3 --output json
  dpareto demo --data-dir ~/data --keep`,
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.study, "study", "adult", "study to run: "+strings.Join(demoStudies(), ", "))
	flags.Int64Var(&f.trials, "trials", 0, "number of trials; default: that of the study's file")
	flags.Uint64Var(&f.seed, "seed", 1, "seed of the study and of the training")
	command.DataDirFlag(cmd, &f.dataDir)
	flags.IntVar(&f.workers, "workers", 1, "number of trials that each of the two agents trains at the same time")
	flags.StringVar(&f.picture, "plot", "", "file for the picture ("+plot.Formats+"); default: dpareto-demo-STUDY.svg")
	flags.BoolVar(&f.keep, "keep", false, "keep the store, and say how to go on with it")
	command.OutputFlag(cmd, &a.output)
	return cmd
}

// demoStudies returns the names of the studies that have a front to show.
func demoStudies() []string {
	return slices.DeleteFunc(studies.Names(), func(name string) bool { return name == "adult-best" })
}

// validate checks the flags and fills in what depends on others.
func (f *demoFlags) validate(format output.Format) error {
	switch {
	case !slices.Contains(demoStudies(), f.study):
		return fmt.Errorf("demo: study %q is unknown, want one of %s", f.study, strings.Join(demoStudies(), ", "))
	case f.trials < 0:
		return fmt.Errorf("demo: --trials is %d, want at least 1", f.trials)
	case f.workers < 1:
		return fmt.Errorf("demo: --workers is %d, want at least 1", f.workers)
	case format == output.CSV:
		return errors.New("demo: --output must be table or json")
	}
	if f.picture == "" {
		f.picture = "dpareto-demo-" + f.study + ".svg"
	}
	return plot.CheckPath(f.picture)
}

// demo runs a demo from beginning to end.
func (a *app) demo(ctx context.Context, f demoFlags) (err error) {
	if err := f.validate(a.output); err != nil {
		return command.Usage(err)
	}
	file, err := a.demoStudy(ctx, f)
	if err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "dpareto-demo-")
	if err != nil {
		return err
	}
	if !f.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	storeFile := filepath.Join(folder, "demo.db")

	d := &demo{app: a, demoFlags: f}
	defer d.stop()
	if err := d.startServer(ctx, storeFile); err != nil {
		return err
	}
	result, err := d.run(ctx, file)
	if err != nil {
		return err
	}
	if err := result.figure().Save(f.picture); err != nil {
		return err
	}
	if a.output == output.JSON {
		err = result.writeJSON(a.Stdout, f)
	} else {
		err = result.writeText(a.Stdout, f)
	}
	if f.keep {
		a.Sayf("the store is kept; go on with\n    dpareto serve --store %s\n    dpareto front %s\n", storeFile, file.ID)
	}
	return err
}

// demoStudy returns the study of a demo.
func (a *app) demoStudy(ctx context.Context, f demoFlags) (*studyfile.File, error) {
	content, err := studies.File(f.study)
	if err != nil {
		return nil, err
	}
	file, err := studyfile.Parse(content)
	if err != nil {
		return nil, fmt.Errorf("study %s: %w", f.study, err)
	}
	spec := file.Study.GetSpec()
	spec.Seed = &f.seed
	if f.trials > 0 {
		spec.Budget.MaxTrials = f.trials
	}
	if spec.GetTrainer().GetName() != dpsgd.Name {
		return file, nil
	}
	generated, err := a.loadAdult(ctx, f.dataDir, spec.GetTrainer().GetSettings())
	if err != nil {
		return nil, err
	}
	if generated {
		spec.Trainer.Settings[dpsgd.SettingGenerated] = strconv.FormatBool(true)
		file.ID += "-generated"
		file.Study.DisplayName = view.Title(file.Study)
	}
	return file, nil
}

// loadAdult makes sure that the agents will find Adult, or reports that it cannot be had
// and generated data must take its place.
func (a *app) loadAdult(ctx context.Context, dataDir string, settings map[string]string) (generated bool, err error) {
	if err := command.CheckDataDir(dataDir); err != nil {
		return false, err // not a reason to make data up
	}
	progress := a.Download("downloading Adult")
	defer progress.Finish()
	_, err = builtin.Registry().New(ctx, dpsgd.Name, trainer.Options{DataDir: dataDir, Settings: settings, Progress: progress.Set})
	if _, ok := errors.AsType[*dataset.DownloadError](err); !ok {
		return false, err
	}
	progress.Finish()
	a.Sayf("Adult cannot be had (%s): this demo runs on %s of the same shape; --data-dir DIR takes files that are there\n",
		command.OneLine(err), output.GeneratedLabel)
	return true, nil
}

// demo is a running demo.
type demo struct {
	*app
	demoFlags
	client *dpareto.Client
	server *child.Process
	agents []*child.Process
}

// startServer starts the server and connects to it.
func (d *demo) startServer(ctx context.Context, storeFile string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d.server, err = child.Start("server", d.Console, childEnvironment(), program, //nolint:contextcheck // no command runs
		"serve", "--supervised", "--listen", "127.0.0.1:0", "--store", storeFile, "--log-level", "warn")
	if err != nil {
		return err
	}
	select {
	case line := <-d.server.Line():
		d.app.client.address = strings.TrimPrefix(line, listening)
	case <-d.server.Done():
		return fmt.Errorf("demo: the server ended at once: %w", d.server.Err())
	case <-time.After(startPatience):
		return fmt.Errorf("demo: the server does not listen after %v", startPatience)
	case <-ctx.Done():
		return ctx.Err()
	}
	d.client, err = dpareto.Dial(d.app.client.address, dpareto.WithRetryNotice(d.notice()))
	return err
}

// childEnvironment returns the environment of the processes of a demo: ours without the
// settings of real servers and agents, and without the token for one. They have no say in
// a demo, and a demo none in their files.
func childEnvironment() []string {
	settings := []string{tokenVariable}
	other := new(app) // making commands sets what their flags do
	for _, cmd := range []*cobra.Command{other.serveCommand(), other.agentCommand()} {
		settings = append(settings, command.Variables(cmd.Flags())...)
	}
	return slices.DeleteFunc(os.Environ(), func(pair string) bool {
		variable, _, _ := strings.Cut(pair, "=")
		return slices.Contains(settings, variable)
	})
}

// startAgents starts the agents.
func (d *demo) startAgents(study string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	for i := range demoAgents {
		name := "agent-" + strconv.Itoa(i+1)
		agent, err := child.Start(name, d.Console, childEnvironment(), program,
			"agent", "--supervised", "--server", d.app.client.address, "--study", study, "--worker-id", name,
			"--workers", strconv.Itoa(d.workers), "--seed", strconv.FormatUint(d.seed, 10), "--data-dir", d.dataDir,
			"--log-level", "warn")
		if err != nil {
			return err
		}
		d.agents = append(d.agents, agent)
	}
	return nil
}

// stop stops all processes: agents first, so that they can give their trials back.
func (d *demo) stop() {
	var stopping []*child.Process
	stopping = append(stopping, d.agents...)
	done := make(chan struct{})
	for _, agent := range stopping {
		go func() {
			_ = agent.Stop(childGrace) // what matters has been reported
			done <- struct{}{}
		}()
	}
	for range stopping {
		<-done
	}
	if d.client != nil {
		closeClient(d.client)
	}
	if d.server != nil {
		_ = d.server.Stop(childGrace)
	}
}

// run runs the study and reads what came of it.
func (d *demo) run(ctx context.Context, file *studyfile.File) (*demoResult, error) {
	start := time.Now()
	handle, err := d.client.CreateStudy(ctx, file.ID, file.Study)
	if err != nil {
		return nil, err
	}
	if err := d.startAgents(file.ID); err != nil { //nolint:contextcheck // see above
		return nil, err
	}
	if err := d.wait(ctx, handle, file); err != nil {
		return nil, err
	}
	return readResult(ctx, handle, time.Since(start))
}

// wait shows the progress of the study until all agents are done.
func (d *demo) wait(ctx context.Context, handle *dpareto.Study, file *studyfile.File) error {
	total := file.Study.GetSpec().GetBudget().GetMaxTrials()
	progress := d.Console.Start(view.Title(file.Study), total, "trials")
	defer progress.Finish()
	done := make(chan *child.Process, len(d.agents))
	for _, agent := range d.agents {
		go func() {
			<-agent.Done()
			done <- agent
		}()
	}
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for running := len(d.agents); running > 0; {
		select {
		case agent := <-done:
			if err := agent.Err(); err != nil {
				return fmt.Errorf("demo: %w", err)
			}
			running--
		case <-d.server.Done():
			return fmt.Errorf("demo: the server ended: %w", errors.Join(errors.New("unexpectedly"), d.server.Err()))
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
			// What cannot be read now is read the next time.
			if study, err := handle.Get(ctx); err == nil {
				progress.Set(view.Done(study.GetTrialCounts()), "")
			}
		}
	}
	progress.Set(total, "")
	return nil
}

// readResult reads everything of a study that a demo shows.
func readResult(ctx context.Context, handle *dpareto.Study, elapsed time.Duration) (*demoResult, error) {
	r := &demoResult{elapsed: elapsed}
	var err error
	if r.study, err = handle.Get(ctx); err != nil {
		return nil, err
	}
	if r.trials, err = collect(handle.Trials(ctx)); err != nil {
		return nil, err
	}
	if r.front, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); err != nil {
		return nil, err
	}
	if r.observed, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_OBSERVED); err != nil {
		return nil, err
	}
	if r.hypervolumes, err = handle.Hypervolumes(ctx); err != nil {
		return nil, err
	}
	r.compareExact()
	return r, nil
}
