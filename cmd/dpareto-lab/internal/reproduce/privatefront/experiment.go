package privatefront

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/builtin"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
)

// name is the name of the experiment.
const name = "private-front"

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	Seeds         int       // studies of each way: seeds 1, 2, ..., of everything, noise included
	Trials        int64     // at most, of a study that shows a front
	Mean          float64   // number of runs of a study with random_stopping
	Listed        int32     // configurations that random_stopping draws from
	TestEpsilon   float64   // declared for the test records
	TrainEpsilons []float64 // declared for the training records with private_mode, each in turn
	Ways          []string  // names of the ways to run beside the one without a guarantee; empty: all
	Runs          int       // with which a published configuration is trained again
	Workers       int       // number of studies that run at the same time; 0 means one for each processor
	Store         string    // file that keeps the outcomes, made if it does not exist; empty: nothing is kept
	Quick         bool      // runs small studies; their numbers are of little use
	DataDir       string    // folder in which data files are looked for first

	generated bool // made-up examples in the shape of Adult, for tests

	registry *trainer.Registry // while it runs: all studies share the data
}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return name }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	switch {
	case e.Seeds < 1:
		return fmt.Errorf("--seeds must be at least 1, is %d", e.Seeds)
	case e.Trials < 1:
		return fmt.Errorf("--trials must be at least 1, is %d", e.Trials)
	case !(e.Mean > 4) || math.IsInf(e.Mean, 1): // a portfolio has 4 runs, and more than one is made on average
		return fmt.Errorf("--mean-runs must be above 4 and finite, is %g", e.Mean)
	case e.Listed < 1:
		return fmt.Errorf("--listed must be at least 1, is %d", e.Listed)
	case !(e.TestEpsilon > 0) || !(e.TestEpsilon < exactTestEpsilon):
		return fmt.Errorf("--test-epsilon must be positive and below %d, is %g", exactTestEpsilon, e.TestEpsilon)
	case len(e.TrainEpsilons) == 0:
		return errors.New("--train-epsilon must have a value")
	case e.Runs < 1:
		return fmt.Errorf("--runs must be at least 1, is %d", e.Runs)
	case e.Workers < 0:
		return fmt.Errorf("--workers must be at least 1, is %d", e.Workers)
	}
	for _, epsilon := range e.TrainEpsilons {
		if !(epsilon > 0) || math.IsInf(epsilon, 1) {
			return fmt.Errorf("--train-epsilon must be positive and finite, is %g", epsilon)
		}
	}
	all := names(e.all())
	for _, name := range e.Ways {
		if !slices.Contains(all, name) {
			return fmt.Errorf("--way must be one of %q, is %q", all, name)
		}
	}
	return nil
}

// prepared returns the experiment that is run: with data to share, and smaller with Quick.
func (e *Experiment) prepared() *Experiment {
	ready := *e
	ready.registry = builtin.Registry()
	if e.Quick {
		ready.Trials, ready.Mean, ready.Listed, ready.Runs = min(e.Trials, 16), min(e.Mean, 8), min(e.Listed, 50), min(e.Runs, 2)
		ready.TrainEpsilons = e.TrainEpsilons[:1]
	}
	return &ready
}

// key says what an outcome is the outcome of. Equal keys give equal outcomes.
type key struct {
	Way         string  `json:"way"`
	Seed        uint64  `json:"seed"`
	Trials      int64   `json:"trials"`
	Mean        float64 `json:"mean"`
	Listed      int32   `json:"listed"`
	TestEpsilon float64 `json:"test_epsilon"`
	Runs        int     `json:"runs"`
	Generated   bool    `json:"generated"`
}

func (e *Experiment) key(w *way, seed uint64) key {
	return key{w.name, seed, e.Trials, e.Mean, e.Listed, e.TestEpsilon, e.Runs, e.generated}
}

// outcome is what a study came to.
type outcome struct {
	Key key `json:"key"`
	// End is why the next trial was refused.
	End string `json:"end"`
	// TrainEpsilon and TestEpsilon hold for everything that the study ever shows; 0 means that there
	// is no guarantee.
	TrainEpsilon float64 `json:"train_epsilon"`
	TestEpsilon  float64 `json:"test_epsilon"`
	// Noise is the standard deviation of the noise in an error, 0 for none.
	Noise float64 `json:"noise"`
	// SpentTrain is the part of TrainEpsilon that the runs cost, with private_mode.
	SpentTrain float64 `json:"spent_train"`
	// Trainings is the number of training runs.
	Trainings int `json:"trainings"`
	// Points are the published configurations.
	Points []point `json:"points"`
	// Published is the hypervolume of the points with their true errors.
	Published float64 `json:"published"`
	// Made and Chosen are hypervolumes of single runs with the errors that the worker measured, before
	// any noise: of all runs, and of the runs of the published configurations. 0 where the study
	// shows no trials.
	Made   float64 `json:"made"`
	Chosen float64 `json:"chosen"`
}

// point is a published configuration.
type point struct {
	parameters trainer.Parameters
	// Epsilon is the ε of one run.
	Epsilon float64 `json:"epsilon"`
	// Reported and Actual are error rates: as published, and the mean of fresh runs.
	Reported float64 `json:"reported"`
	Actual   float64 `json:"actual"`
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (*reproduce.Result, error) {
	e = e.prepared()
	known, err := openRecords(e.Store)
	if err != nil {
		return nil, err
	}
	ways := e.ways()
	total := len(ways) * e.Seeds
	var mu sync.Mutex // guards what follows, and the order of the calls of watch
	done, isDrawn := 0, false
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(e.Workers)
	if e.Workers == 0 {
		group.SetLimit(runtime.GOMAXPROCS(0))
	}
	for seed := range uint64(e.Seeds) {
		for i := range ways {
			group.Go(func() error {
				if err := e.ensure(ctx, known, &ways[i], seed+1); err != nil {
					return fmt.Errorf("%s, seed %d: %w", ways[i].name, seed+1, err)
				}
				mu.Lock()
				defer mu.Unlock()
				done++
				watch.Report(done, total)
				if isDrawn || !e.isDrawable(ways, known) {
					return nil
				}
				isDrawn = true
				return watch.Show(reproduce.Figure{Name: name, Picture: picture(e.collect(ways, known))})
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	if err := watch.Show(reproduce.Figure{Name: "paid", Picture: e.paid(e.collect(ways, known))}); err != nil {
		return nil, err
	}
	return e.result(ways, known), nil
}

// isDrawable reports whether the outcomes of the first seed, which the picture shows, are known.
func (e *Experiment) isDrawable(ways []way, known *records) bool {
	return !slices.ContainsFunc(ways, func(w way) bool { return known.get(e.key(&w, 1)) == nil })
}

// ensure runs the study of a way and a seed unless its outcome is known.
func (e *Experiment) ensure(ctx context.Context, known *records, w *way, seed uint64) error {
	if known.get(e.key(w, seed)) != nil {
		return nil
	}
	o, err := e.study(ctx, w, seed)
	if err != nil {
		return err
	}
	return known.add(o)
}
