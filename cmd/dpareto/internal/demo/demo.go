// Package demo holds the command dpareto demo: it runs a study with a server and agents in
// their own processes, and shows the front that they find.
package demo

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
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dpsgd"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/remote"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
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

// flags are the flags of dpareto demo.
type flags struct {
	study    string
	trials   int64
	seed     uint64
	isSeeded bool // the user gave the seed
	dataDir  string
	workers  int
	picture  string
	keep     bool
	serve    bool
	format   output.Format
}

// Command returns the command demo.
func Command(env *command.Env) *cobra.Command {
	var f flags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run a real study: a server, two agents, and the front that they find",
		Long: `Starts a server with a fresh store on a free port of this machine, and two agents, in
separate processes. Then it runs a study, and shows the front that they find. The
server's page shows the study live in a browser; with --serve it stays after the result
until Ctrl-C.

  adult           logistic regression with DP-SGD on Adult (UCI census income)
  adult-adam      the same with DP-Adam
  adult-correlated
                  DP-SGD, or DP-MF with correlated noise: which is best at which ε?
  adult-fairness  three objectives: the third is a gap between women and men
  adult-models    a logistic regression, a linear SVM or a small network, by DP-SGD or DP-Adam:
                  which is best at which ε?
  adult-private   a front that may be published, with noise and declared privacy budgets
  adult-svm       a linear SVM with DP-SGD on Adult
  adult-variance  logistic regression with the noise of the paper's Table 1 read as a
                  variance, and without checkpoints, for comparisons
  mnist           a network with hidden layers of 128 and 64 with DP-SGD on MNIST, with
                  lots of 600 and a fixed noise multiplier
  mnist-features  softmax regression on pixels, or on histograms of gradients
  mnist-mlp1      a network with one hidden layer of 1000 with DP-SGD on MNIST
  mnist-mlp2      the network of mnist, with lots and noise to be found
  paper-*         the five experiments of Avent et al. (2020) in the paper's protocol: 272
                  trials, each the mean of ten runs; those on MNIST take days
  svt             the sparse vector technique, compared with its exact front

Adult comes from --data-dir, or the cache, or is downloaded (3.5 MB, with a checksum). If
that fails, generated data of the same shape replace it, and every output says so.

With --output json the last line on standard output is one JSON object. It has study,
trials, hypervolume (of the posterior front; for svt the true one), observed_hypervolume,
exact_hypervolume (svt), front, page_url (with --serve), and more.`,
		Example: `  dpareto demo
  dpareto demo --study svt --seed 3 --output json
  dpareto demo --serve
  dpareto demo --data-dir ~/data --keep`,
		Args: command.Args(command.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			f.isSeeded = cmd.Flags().Changed("seed")
			return run(cmd.Context(), env, f)
		},
	}
	set := cmd.Flags()
	set.StringVar(&f.study, "study", "adult", "study to run: "+strings.Join(studyNames(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("study", cobra.FixedCompletions(studyNames(), cobra.ShellCompDirectiveNoFileComp)) // it exists
	set.Int64Var(&f.trials, "trials", 0, "number of trials; default: as in the study's file")
	set.Uint64Var(&f.seed, "seed", 1, "seed of the study and, where it is given, of the training, unless the front may be published")
	command.DataDirFlag(cmd, &f.dataDir)
	set.IntVar(&f.workers, "workers", 1, "number of trials that each of the two agents trains at the same time")
	set.StringVar(&f.picture, "plot", "", "file for the picture ("+plot.Formats+"); default: dpareto-demo-STUDY.svg")
	set.BoolVar(&f.serve, "serve", false, "keep the server and its page after the result, until Ctrl-C")
	set.BoolVar(&f.keep, "keep", false, "keep the store, and print how to use it")
	command.OutputFlag(cmd, &f.format)
	cmd.Flags().Lookup("output").Usage = "format of the result on standard output: " + output.Names(output.Text, output.JSON)
	return cmd
}

// studyNames returns the names of the studies that have a front to show.
func studyNames() []string {
	return slices.DeleteFunc(studies.Names(), func(name string) bool {
		return slices.Contains([]string{"adult-best", "adult-curve", "adult-subset"}, name)
	})
}

// validate checks the flags and fills in what depends on others.
func (f *flags) validate() error {
	switch {
	case !slices.Contains(studyNames(), f.study):
		return fmt.Errorf("--study must be one of %s, is %q", strings.Join(studyNames(), ", "), f.study)
	case f.trials < 0:
		return fmt.Errorf("--trials must be at least 1, is %d", f.trials)
	case f.workers < 1:
		return fmt.Errorf("--workers must be at least 1, is %d", f.workers)
	case f.format == output.CSV:
		return errors.New("--output must be table or json, is csv")
	}
	if f.picture == "" {
		f.picture = "dpareto-demo-" + f.study + ".svg"
	}
	return plot.CheckPath(f.picture)
}

// run runs a demo from beginning to end.
func run(ctx context.Context, env *command.Env, f flags) (err error) {
	if err := f.validate(); err != nil {
		return command.Usage(err)
	}
	file, err := loadStudy(ctx, env, f)
	if err != nil {
		return err
	}
	if spec := file.Study.GetSpec(); spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil {
		f.isSeeded = false // the study refuses seeded runs
	}
	folder, err := os.MkdirTemp("", "dpareto-demo-")
	if err != nil {
		return err
	}
	if !f.keep {
		defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	}
	storeFile := filepath.Join(folder, "demo.db")

	d := &demo{flags: f, env: env}
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
	if f.serve {
		result.pageURL = d.pageURL
	}
	if f.format == output.JSON {
		err = result.writeJSON(env.Stdout, f)
	} else {
		err = result.writeText(env.Stdout, f)
	}
	if f.serve && err == nil {
		err = d.serveOn(ctx)
	}
	if f.keep {
		env.Sayf("the store is kept; continue with\n    dpareto serve --store %s\n    dpareto front %s\n", storeFile, file.ID)
	}
	return err
}

// loadStudy returns the study of a demo.
func loadStudy(ctx context.Context, env *command.Env, f flags) (*studyfile.File, error) {
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
	generated, err := loadAdult(ctx, env, f.dataDir, spec.GetTrainer().GetSettings())
	if err != nil {
		return nil, err
	}
	if generated {
		spec.Trainer.Settings[dpsgd.SettingGenerated] = strconv.FormatBool(true)
		spec.ConstantPoints = nil // their values are of the real data
		file.ID += "-generated"
		file.Study.DisplayName = view.Title(file.Study)
	}
	return file, nil
}

// loadAdult makes sure that the agents will find Adult, or reports that it is not available
// and the demo must use generated data.
func loadAdult(ctx context.Context, env *command.Env, dataDir string, settings map[string]string) (generated bool, err error) {
	if err := command.CheckDataDir(dataDir); err != nil {
		return false, err // a mistake, for which generated data are no remedy
	}
	progress := env.Download("downloading Adult")
	defer progress.Finish()
	_, err = builtin.Registry().New(ctx, dpsgd.Name, trainer.Options{DataDir: dataDir, Settings: settings, Progress: progress.Set})
	if _, ok := errors.AsType[*dataset.DownloadError](err); !ok {
		return false, err
	}
	progress.Finish()
	env.Sayf("Adult is not available (%s): this demo runs on %s of the same shape; --data-dir DIR uses local files\n",
		command.OneLine(err), output.GeneratedLabel)
	return true, nil
}

// demo is a running demo.
type demo struct {
	flags

	env     *command.Env
	address string // of the server
	pageURL string // of the study
	client  *dpareto.Client
	server  *child.Process
	agents  []*child.Process
}

// startServer starts the server and connects to it.
func (d *demo) startServer(ctx context.Context, storeFile string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	d.server, err = child.Start("server", d.env.Console, childEnvironment(), program,
		"serve", "--supervised", "--listen", "127.0.0.1:0", "--store", storeFile, "--create", "--log-level", "warn")
	if err != nil {
		return err
	}
	select {
	case line := <-d.server.Line():
		d.address = strings.TrimPrefix(line, serve.Listening)
	case <-d.server.Done():
		return fmt.Errorf("demo: the server ended at once: %w", d.server.Err())
	case <-time.After(startPatience):
		return fmt.Errorf("demo: the server does not listen after %v", startPatience)
	case <-ctx.Done():
		return ctx.Err()
	}
	d.client, err = dpareto.Dial(d.address, dpareto.WithRetryNotice(remote.Notice(d.env.Logger, d.address)))
	return err
}

// childEnvironment returns the environment of the processes of a demo: ours without the
// settings of real servers and agents, and without their token.
func childEnvironment() []string {
	return slices.DeleteFunc(os.Environ(), func(variable string) bool {
		return strings.HasPrefix(variable, "DPARETO_") && !strings.HasPrefix(variable, "DPARETO_LOG_")
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
		args := []string{
			"agent", "--supervised", "--server", d.address, "--study", study, "--worker-id", name,
			"--workers", strconv.Itoa(d.workers), "--data-dir", d.dataDir, "--log-level", "warn",
		}
		if d.isSeeded {
			args = append(args, "--seed", strconv.FormatUint(d.seed, 10))
		}
		agent, err := child.Start(name, d.env.Console, childEnvironment(), program, args...)
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
		remote.Close(d.client)
	}
	if d.server != nil {
		_ = d.server.Stop(childGrace)
	}
}

// run runs the study and reads what came of it.
func (d *demo) run(ctx context.Context, file *studyfile.File) (*result, error) {
	start := time.Now()
	handle, err := file.Create(ctx, d.client, d.env.Logger)
	if err != nil {
		return nil, &remote.CallError{Action: "create studies/" + file.ID, Err: err}
	}
	if d.pageURL, err = remote.PageURL(ctx, d.client, handle); err != nil {
		return nil, err
	}
	d.env.Sayf("see it live: %s\n", d.pageURL)
	if err := d.startAgents(file.ID); err != nil {
		return nil, err
	}
	if err := d.wait(ctx, handle, file); err != nil {
		return nil, err
	}
	return readResult(ctx, handle, time.Since(start))
}

// serveOn waits until the user interrupts the demo, which then has ended well.
func (d *demo) serveOn(ctx context.Context) error {
	d.env.Sayf("the server and its page run until Ctrl-C: %s\n", d.pageURL)
	select {
	case <-d.server.Done():
		return fmt.Errorf("demo: the server ended: %w", errors.Join(errors.New("unexpectedly"), d.server.Err()))
	case <-ctx.Done():
		return nil
	}
}

// wait shows the progress of the study until all agents are done.
func (d *demo) wait(ctx context.Context, handle *dpareto.Study, file *studyfile.File) error {
	total := file.Study.GetSpec().GetBudget().GetMaxTrials()
	progress := d.env.Console.Start(view.Title(file.Study), total, "trials")
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
func readResult(ctx context.Context, handle *dpareto.Study, elapsed time.Duration) (*result, error) {
	r := &result{elapsed: elapsed}
	var err error
	if r.study, err = handle.Get(ctx); err != nil {
		return nil, err
	}
	if r.trials, err = remote.Collect(handle.Trials(ctx)); err != nil {
		return nil, err
	}
	if r.front, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_POSTERIOR); err != nil {
		return nil, err
	}
	if r.observed, err = handle.Front(ctx, dparetov1.FrontKind_FRONT_KIND_OBSERVED); err != nil {
		return nil, err
	}
	resp, err := handle.Hypervolumes(ctx, dparetov1.FrontKind_FRONT_KIND_OBSERVED)
	if err != nil {
		return nil, err
	}
	r.hypervolumes = resp.GetPoints()
	r.compareExact()
	return r, nil
}
