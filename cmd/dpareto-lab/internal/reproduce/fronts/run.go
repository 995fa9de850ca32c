package fronts

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/local"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// outcome is what one trial measured: ε of one run, the error on the examples that the search sees, as the mean, the
// best and the worst of its runs, and the mean error on examples that it never sees, NaN where there are none.
type outcome struct{ epsilon, mean, best, worst, untouched float64 }

// anti is the anti-ideal point (ε, error) of the paper's experiments.
var anti = []float64{10, 1}

// costs returns ε and one of the errors of every outcome.
func costs(outcomes []outcome, of func(outcome) float64) [][]float64 {
	all := make([][]float64, len(outcomes))
	for i, o := range outcomes {
		all[i] = []float64{o.epsilon, of(o)}
	}
	return all
}

func mean(o outcome) float64  { return o.mean }
func best(o outcome) float64  { return o.best }
func worst(o outcome) float64 { return o.worst }

// hypervolume returns the hypervolume of mean errors, without logarithms, as pf_utils of the published
// code has it.
func hypervolume(outcomes []outcome) float64 { return pareto.Hypervolume(costs(outcomes, mean), anti) }

// newRunner returns a runner that can make trainers.
func newRunner(dataDir, version string) *runner {
	return &runner{
		version: version, registry: builtin.Registry(), dataDir: dataDir, trainers: make(map[string]trainer.Trainer), versions: make(map[string]bool), levels: make(map[string][]plot.Level),
	}
}

// runner runs studies in a store.
type runner struct {
	client   *dpareto.Client
	version  string // of the program
	registry *trainer.Registry
	dataDir  string
	records  string                  // see Experiment.Records
	workers  int                     // studies at a time
	levels   map[string][]plot.Level // see Experiment.levels; filled by available

	// finished is called with the outcomes of every study that has run, from one goroutine at a time; may be nil.
	finished func(s *series, outcomes []outcome) error

	mu       sync.Mutex // guards what follows, and calls of finished
	trainers map[string]trainer.Trainer
	versions map[string]bool // of the programs that made the studies
	done     int
	total    int
	progress func(done, total int)
}

// run runs what is missing of the series, and returns the outcomes of all of them in the order of the
// trials. Each study has one worker: its trials follow each other as in the paper, and do not depend on how many
// studies are run at a time.
func (r *runner) run(ctx context.Context, all []series) ([][]outcome, error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(r.workers)
	outcomes := make([][]outcome, len(all))
	order := make([]int, len(all)) // the longest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(all[b].trials() - all[a].trials()) })
	for _, i := range order {
		group.Go(func() error {
			var err error
			if outcomes[i], err = r.study(ctx, &all[i]); err != nil {
				return fmt.Errorf("study %s: %w", all[i].studyID(), err)
			}
			if r.finished == nil {
				return nil
			}
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.finished(&all[i], outcomes[i])
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// study returns the outcomes of one study: of its record if there is one, or else by running it to its end.
func (r *runner) study(ctx context.Context, s *series) ([]outcome, error) {
	if r.records == "" {
		outcomes, _, err := r.train(ctx, s)
		return outcomes, err
	}
	outcomes, version, err := readRecord(r.records, s)
	if err != nil {
		return nil, err
	}
	if outcomes != nil {
		r.mu.Lock()
		r.versions[version] = true
		r.mu.Unlock()
		r.add(len(outcomes))
		return outcomes, nil
	}
	if outcomes, version, err = r.train(ctx, s); err != nil {
		return nil, err
	}
	return outcomes, writeRecord(r.records, s, version, outcomes)
}

// train runs one study to its end, and returns the version of the program that began it.
func (r *runner) train(ctx context.Context, s *series) (outcomes []outcome, made string, err error) {
	file, err := s.file()
	if err != nil {
		return nil, "", err
	}
	made, err = r.begin(ctx, file)
	if err != nil {
		return nil, "", err
	}
	handle := r.client.Study(file.ID)
	outcomes, err = read(ctx, handle)
	if err != nil {
		return nil, "", err
	}
	needed := int(s.trials())
	r.add(min(len(outcomes), needed))
	if missing := needed - len(outcomes); missing > 0 {
		if made != r.version {
			return nil, "", fmt.Errorf("it was begun by version %s, and this is %s: go on with that one, or in another --store", made, r.version)
		}
		t, err := r.trainer(ctx, file.Study.GetSpec().GetTrainer())
		if err != nil {
			return nil, "", err
		}
		enough, stop := context.WithCancel(ctx)
		defer stop()
		worker := &agent.Agent{Study: handle, Trainer: t, WorkerID: "reproduce", Seed: &s.seed, Events: agent.Events{
			TrialDone: func(_ string, _ *dpareto.Trial, o agent.Outcome, _ trainer.Measurement, _ error) {
				if o == agent.Succeeded {
					r.add(1)
					if missing--; missing == 0 {
						stop()
					}
				}
			},
		}}
		if err := worker.Run(enough); err != nil && (missing > 0 || ctx.Err() != nil) {
			return nil, "", err
		}
		if outcomes, err = read(ctx, handle); err != nil {
			return nil, "", err
		}
	}
	if len(outcomes) < needed {
		return nil, "", fmt.Errorf("%d trials of %d succeeded", len(outcomes), needed)
	}
	return outcomes[:needed], made, nil
}

// begin creates a study unless it exists, and returns the version of the program that created it, which its
// description names.
func (r *runner) begin(ctx context.Context, file *studyfile.File) (version string, err error) {
	const by = "Made by dpareto-lab "
	existing, err := r.client.Study(file.ID).Get(ctx)
	if status.Code(err) == codes.NotFound {
		existing, err = file.Study, nil
		existing.Description = by + r.version
	}
	if err != nil {
		return "", err
	}
	file.Study.Description = existing.GetDescription() // Create compares it with an existing study
	if _, err := file.Create(ctx, r.client, slog.New(slog.DiscardHandler)); err != nil {
		return "", err
	}
	version = strings.TrimPrefix(existing.GetDescription(), by)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.versions[version] = true
	return version, nil
}

// add counts trials.
func (r *runner) add(n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.done += n
	r.progress(min(r.done, r.total), r.total)
}

// trainer returns the trainer of a study. Studies with the same settings share it, and all share the data.
func (r *runner) trainer(ctx context.Context, spec *dparetov1.TrainerSpec) (trainer.Trainer, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := fmt.Sprint(spec.GetName(), spec.GetSettings()) // maps are printed in the order of their keys
	if t, ok := r.trainers[key]; ok {
		return t, nil
	}
	t, err := r.registry.New(ctx, spec.GetName(), trainer.Options{DataDir: r.dataDir, Settings: spec.GetSettings()})
	if err != nil {
		return nil, err
	}
	r.trainers[key] = t
	return t, nil
}

// constants returns the errors of what a trainer declares to need no run, such as always predicting the
// majority class.
func (r *runner) constants(ctx context.Context, spec *dparetov1.TrainerSpec) ([]plot.Level, error) {
	declared, err := r.registry.Declare(ctx, spec.GetName(), trainer.Options{DataDir: r.dataDir, Settings: spec.GetSettings()})
	var levels []plot.Level
	for _, c := range declared.Constants {
		levels = append(levels, plot.Level{Name: c.Name + ", ε = 0", Y: c.Values[experiment.MetricError]})
	}
	return levels, err
}

// read returns the measurements of the trials of a study.
func read(ctx context.Context, study *dpareto.Study) ([]outcome, error) {
	var outcomes []outcome
	for t, err := range study.Trials(ctx) {
		if err != nil {
			return nil, err
		}
		if t.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			continue
		}
		metrics := t.GetFinalMeasurement().GetMetrics()
		e := metrics["error"]
		o := outcome{epsilon: metrics["epsilon"].GetValue(), mean: e.GetValue(), best: e.GetValue(), worst: e.GetValue(), untouched: math.NaN()}
		if e.Min != nil {
			o.best, o.worst = e.GetMin(), e.GetMax()
		}
		if held := metrics["test_error"]; held != nil {
			o.untouched = held.GetValue()
		}
		outcomes = append(outcomes, o)
	}
	return outcomes, nil
}

// serve starts the server of the experiment; see local.Serve.
func (e *Experiment) serve(ctx context.Context) (*dpareto.Client, func() error, error) {
	return local.Serve(ctx, e.Store, nil)
}
