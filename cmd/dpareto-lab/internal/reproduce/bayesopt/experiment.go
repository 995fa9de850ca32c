package bayesopt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/machine"
	"github.com/dpareto/dpareto/privacy/bayesopt"
)

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	// TrainRows is the number of records that models are trained on, at least 100.
	TrainRows int
	// Side is the number of values of each of the two hyperparameters, at least 2.
	Side int
	// Sizes are the numbers of records of validation sets, each at least 10. The paper has
	// 1000, 2000, 3000, 5000 and 15000.
	Sizes []int
	// Pairs is the number of pairs of validation sets of every size, at least 2; the paper
	// has 100.
	Pairs int
	// Records is the size of the validation set of the comparison, at least 10.
	Records int
	// Generated asks for generated data in the shape of Adult.
	Generated bool
	// Seed of the division of the data and of the validation sets.
	Seed uint64
	// DataDir is dataset.Source.DataDir.
	DataDir string
}

var _ reproduce.Experiment = (*Experiment)(nil)

const (
	lengthScale = 0.2  // of k_2 on the unit square
	fineGrid    = 32   // values of k_1, up to 1 − 10⁻⁸
	tolerance   = 1e-6 // of the gradient of a training
)

// noises are the assumed standard deviations of the observation noise, in standard
// deviations of the prior.
var noises = []float64{0.001, 0.01, 0.1}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "dp-bayesian-optimization" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	var errs []error
	for _, c := range []struct {
		name        string
		value, most int
	}{{"train-rows", e.TrainRows, 100}, {"side", e.Side, 2}, {"pairs", e.Pairs, 2}, {"records", e.Records, 10}} {
		if c.value < c.most {
			errs = append(errs, fmt.Errorf("%s must be at least %d, is %d", c.name, c.most, c.value))
		}
	}
	if len(e.Sizes) == 0 {
		errs = append(errs, errors.New("sizes: at least one is needed"))
	}
	for _, size := range e.Sizes {
		if size < 10 {
			errs = append(errs, fmt.Errorf("sizes must be at least 10, one is %d", size))
		}
	}
	return errors.Join(errs...)
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, progress func(done, total int)) (*reproduce.Result, error) {
	parts, err := dataset.Load(ctx, dataset.NameAdult, dataset.Division{
		Split: dataset.SplitShuffled, TrainRows: e.TrainRows, Seed: e.Seed, Generated: e.Generated,
	}, dataset.Source{DataDir: e.DataDir})
	if err != nil {
		return nil, err
	}
	for _, size := range append([]int{e.Records}, e.Sizes...) {
		if size >= parts.Test.Rows {
			return nil, fmt.Errorf("dataset %s has too few records to train on %d and validate with %d", dataset.NameAdult, e.TrainRows, size)
		}
	}
	all := machine.Grid(e.Side)
	right, err := train(ctx, parts, all, progress)
	if err != nil {
		return nil, err
	}
	r := &results{experiment: e, candidates: all, kernel: kernel(all)}
	for i, size := range e.Sizes {
		if err := r.estimate(rand.New(rand.NewPCG(e.Seed, uint64(i))), right, size); err != nil {
			return nil, err
		}
	}
	r.utilities = accuracies(right, sample(rand.New(rand.NewPCG(e.Seed, 1000)), parts.Test.Rows, e.Records))
	return r.report(ctx)
}

// train returns, for every candidate, which of the held-out records its model classifies
// correctly.
func train(ctx context.Context, parts *dataset.Parts, all []machine.Candidate, progress func(done, total int)) ([][]bool, error) {
	training, err := machine.Examples(parts.Train)
	if err != nil {
		return nil, err
	}
	pool, err := machine.Examples(parts.Test)
	if err != nil {
		return nil, err
	}
	right := make([][]bool, len(all))
	finished := make(chan struct{}, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i, c := range all {
		group.Go(func() error {
			theta, err := c.Train(ctx, training, tolerance)
			if err != nil {
				return err
			}
			right[i] = make([]bool, pool.Rows())
			for row := range right[i] {
				right[i][row] = pool.Margin(row, theta) > 0
			}
			finished <- struct{}{}
			return nil
		})
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	for count := 0; ; {
		select {
		case <-finished:
			count++
			progress(count, len(all))
		case err := <-done:
			return right, err
		}
	}
}

// kernel is k_2, the Matérn kernel with ν = 5/2.
func kernel(all []machine.Candidate) *mat.SymDense {
	k := mat.NewSymDense(len(all), nil)
	for i, a := range all {
		for j := i; j < len(all); j++ {
			r := math.Sqrt(5) * math.Hypot(a.X-all[j].X, a.Y-all[j].Y) / lengthScale
			k.SetSym(i, j, (1+r+r*r/3)*math.Exp(-r))
		}
	}
	return k
}

// sample draws size of n records without replacement.
func sample(rng *rand.Rand, n, size int) []int { return rng.Perm(n)[:size] }

// accuracies returns the share of the records that each candidate classifies correctly.
func accuracies(right [][]bool, records []int) []float64 {
	a := make([]float64, len(right))
	for c, known := range right {
		count := 0
		for _, i := range records {
			if known[i] {
				count++
			}
		}
		a[c] = float64(count) / float64(len(records))
	}
	return a
}

// estimate draws pairs of validation sets of a size, and estimates k_1 from them.
func (r *results) estimate(rng *rand.Rand, right [][]bool, size int) error {
	n := r.experiment.Pairs
	first, second := mat.NewDense(n, len(right), nil), mat.NewDense(n, len(right), nil)
	for p := range n {
		drawn := sample(rng, len(right[0]), size+1)
		first.SetRow(p, accuracies(right, drawn[:size]))
		second.SetRow(p, accuracies(right, drawn[1:])) // the first record replaced by the last
	}
	_, deviation := bayesopt.Standardise(first, second)
	for _, noise := range noises {
		e := estimate{size: size, noise: noise, deviation: deviation}
		var err error
		if e.paper, err = bayesopt.EstimateCorrelation(first, second, r.kernel, noise, bayesopt.PaperCorrelationGrid()); err != nil {
			return err
		}
		if e.fine, err = bayesopt.EstimateCorrelation(first, second, r.kernel, noise, bayesopt.CorrelationGrid(fineGrid)); err != nil {
			return err
		}
		r.estimates = append(r.estimates, e)
	}
	return nil
}
