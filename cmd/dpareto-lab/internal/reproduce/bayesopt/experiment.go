package bayesopt

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/machine"
	"github.com/dpareto/dpareto/privacy/bayesopt"
)

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	// Dataset has labels −1 and 1: dataset.NameAdult by default. The paper has Forest.
	Dataset string
	// TrainRows is the number of records that models are trained on, at least 100; the paper has
	// 36,603.
	TrainRows int
	// Machines is the number of support vector machines with an RBF kernel, at least 2; the paper
	// has 100.
	Machines int
	// Linear asks for a grid of linear machines in their place, with Side values of each of two
	// hyperparameters, at least 2. Neighbours then differ in one replaced record, as in the
	// theorems, and Algorithm 3 can be shown.
	Linear bool
	Side   int
	// Sizes are the numbers of records of validation sets, each at least 10. The paper has
	// 1000, 2000, 3000, 5000 and 15000.
	Sizes []int
	// Pairs is the number of pairs of validation sets of every size, at least 2; the paper
	// has 100.
	Pairs int
	// Records is the size of the validation set of the comparison, at least 10.
	Records int
	// Runs is the number of runs of Algorithm 1 in the comparison, at least 1.
	Runs int
	// Generated asks for generated data in the shape of Adult.
	Generated bool
	// Seed of the division of the data, of the validation sets and of the runs.
	Seed uint64
	// DataDir is dataset.Source.DataDir.
	DataDir string
}

var _ reproduce.Experiment = (*Experiment)(nil)

const (
	lengthScale = 0.2  // of k_2 on the unit square
	fineGrid    = 32   // values of k_1, up to 1 − 10⁻⁸
	tolerance   = 1e-6 // of the gradient of a linear training
)

// The hyperparameters of the kernel machines, C and the width γ², both on a logarithmic scale. The
// paper does not say its ranges.
const (
	leastCost, mostCost   = 1e-2, 1e3
	leastWidth, mostWidth = 1e-1, 1e3
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
	}{{"train-rows", e.TrainRows, 100}, {"machines", e.Machines, 2}, {"side", e.Side, 2}, {"runs", e.Runs, 1}, {"pairs", e.Pairs, 2}, {"records", e.Records, 10}} {
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

// begin returns the results with what depends on no record.
func (e *Experiment) begin(ctx context.Context) (*results, error) {
	r := &results{experiment: e, places: e.places()}
	r.kernel = kernel(r.places)
	gain, err := bayesopt.BoundInformationGain(ctx, r.kernel, noiseOfChoice, evaluations, 0.01)
	r.gain = gain.Upper
	return r, err
}

// Run implements reproduce.Experiment. Without data it reports what depends on no record.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (*reproduce.Result, error) {
	if e.Dataset == "" {
		e.Dataset = dataset.NameAdult
	}
	r, err := e.begin(ctx)
	if err != nil {
		return nil, err
	}
	parts, err := dataset.Load(ctx, e.Dataset, dataset.Division{
		Split: dataset.SplitShuffled, TrainRows: e.TrainRows, Seed: e.Seed, Generated: e.Generated,
	}, dataset.Source{DataDir: e.DataDir})
	if line, ok := reproduce.Missing("all that is trained on "+e.Dataset, err); ok {
		watch.Report(1, 1)
		return r.reportWithoutData(line)
	}
	if err != nil {
		return nil, err
	}
	return r.run(ctx, parts, watch)
}

// run trains on the data, and reports on all of the experiment.
func (r *results) run(ctx context.Context, parts *dataset.Parts, watch reproduce.Watch) (*reproduce.Result, error) {
	e := r.experiment
	if parts.Train.Classes != 2 {
		return nil, fmt.Errorf("dataset %s has %d classes, and the machines tell two apart", e.Dataset, parts.Train.Classes)
	}
	for _, size := range append([]int{e.Records}, e.Sizes...) {
		if size >= parts.Test.Rows {
			return nil, fmt.Errorf("dataset %s has too few records to train on %d and validate with %d", e.Dataset, e.TrainRows, size)
		}
	}
	if most := max(e.Records, slices.Max(e.Sizes)); !e.Linear && parts.Test.Rows > most+most/4 {
		rows := make([]int, most+most/4) // every record costs a kernel machine a sum over the training records
		for i := range rows {
			rows[i] = i
		}
		parts.Test = parts.Test.Select(parts.Test.Name, rows)
	}
	var err error
	if r.machines, err = e.train(ctx, parts, r.places, watch.Report); err != nil {
		return nil, err
	}
	for i, size := range e.Sizes {
		if err := r.estimate(rand.New(rand.NewPCG(e.Seed, uint64(i))), size); err != nil {
			return nil, err
		}
	}
	if err := watch.Show(reproduce.Figure{Name: "figure1", Picture: r.draw()}); err != nil {
		return nil, err
	}
	r.utilities = accuracies(r.machines.right, sample(rand.New(rand.NewPCG(e.Seed, 1000)), parts.Test.Rows, e.Records))
	return r.report(ctx)
}

// machines are trained candidates.
type machines struct {
	description string
	right       [][]bool // whether candidate i classifies held-out record j correctly
}

// places returns the places of the candidates in the unit square.
func (e *Experiment) places() [][2]float64 {
	if !e.Linear {
		return sobol(e.Machines)
	}
	var places [][2]float64
	for _, c := range machine.Grid(e.Side) {
		places = append(places, [2]float64{c.X, c.Y})
	}
	return places
}

// train trains the candidates at the places.
func (e *Experiment) train(ctx context.Context, parts *dataset.Parts, places [][2]float64, progress func(done, total int)) (*machines, error) {
	var m *machines
	var one func(ctx context.Context, i int) ([]bool, error)
	var err error
	if e.Linear {
		m, one, err = linearMachines(parts, e.Side)
	} else {
		m, one, err = kernelMachines(ctx, parts, places)
	}
	if err != nil {
		return nil, err
	}
	m.right = make([][]bool, len(places))
	finished := make(chan struct{}, len(places))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range places {
		group.Go(func() (err error) {
			m.right[i], err = one(ctx, i)
			finished <- struct{}{}
			return err
		})
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	for count := 0; ; {
		select {
		case <-finished:
			count++
			progress(count, len(places))
		case err := <-done:
			return m, err
		}
	}
}

// linearMachines returns the grid of linear machines, and what trains and tests one of them.
func linearMachines(parts *dataset.Parts, side int) (*machines, func(context.Context, int) ([]bool, error), error) {
	training, err := machine.Examples(parts.Train)
	if err != nil {
		return nil, nil, err
	}
	pool, err := machine.Examples(parts.Test)
	if err != nil {
		return nil, nil, err
	}
	all := machine.Grid(side)
	m := &machines{description: fmt.Sprintf("%d linear machines with the Huber loss, of widths from %g to %g and ridge penalties from %g to %g",
		len(all), machine.LeastWidth, machine.MostWidth, machine.LeastPenalty, machine.MostPenalty)}
	return m, func(ctx context.Context, i int) ([]bool, error) {
		theta, err := all[i].Train(ctx, training, tolerance)
		right := make([]bool, pool.Rows())
		for row := range right {
			right[row] = err == nil && pool.Margin(row, theta) > 0
		}
		return right, err
	}, nil
}

// kernelMachines returns kernel machines at points of a Sobol sequence, and what trains and
// tests one of them. All share the squared distances of the records.
func kernelMachines(ctx context.Context, parts *dataset.Parts, places [][2]float64) (*machines, func(context.Context, int) ([]bool, error), error) {
	m := &machines{
		description: fmt.Sprintf("%d support vector machines with the kernel exp(−‖x − x′‖²/γ²), (C, γ²) from a Sobol sequence, C from %g to %g and γ² from %g to %g on logarithmic scales (the paper does not say its ranges)",
			len(places), leastCost, mostCost, leastWidth, mostWidth),
	}
	rows := parts.Train.Rows
	among, labels := make([]float64, rows*rows), make([]float64, rows)
	toTest := make([]float32, parts.Test.Rows*rows)
	group, ctx := errgroup.WithContext(ctx)
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		group.Go(func() error {
			d, row := newDistances(parts.Train), make([]float64, rows)
			for i := w; i < rows && ctx.Err() == nil; i += workers {
				d.from(among[i*rows:(i+1)*rows], parts.Train, i)
				labels[i] = float64(parts.Train.Labels[i])
			}
			for i := w; i < parts.Test.Rows && ctx.Err() == nil; i += workers {
				d.from(row, parts.Test, i)
				for j, square := range row {
					toTest[i*rows+j] = float32(square)
				}
			}
			return ctx.Err()
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, err
	}
	return m, func(ctx context.Context, i int) ([]bool, error) {
		cost, width := scaled(leastCost, mostCost, places[i][0]), scaled(leastWidth, mostWidth, places[i][1])
		trained, err := trainSVM(ctx, among, labels, cost, width, stoppingTolerance)
		if err != nil {
			return nil, err
		}
		right, squares := make([]bool, parts.Test.Rows), make([]float64, rows)
		for row := range right {
			for j := range squares {
				squares[j] = float64(toTest[row*rows+j])
			}
			right[row] = trained.decide(squares)*float64(parts.Test.Labels[row]) > 0
		}
		return right, ctx.Err()
	}, nil
}

// scaled returns a value on a logarithmic scale.
func scaled(least, most, share float64) float64 { return least * math.Pow(most/least, share) }

// kernel is k_2, the Matérn kernel with ν = 5/2.
func kernel(places [][2]float64) *mat.SymDense {
	k := mat.NewSymDense(len(places), nil)
	for i, a := range places {
		for j := i; j < len(places); j++ {
			r := math.Sqrt(5) * math.Hypot(a[0]-places[j][0], a[1]-places[j][1]) / lengthScale
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

// estimate draws pairs of validation sets of a size, and estimates k_1 from them. The second set of a
// pair has a record more or less, as in the paper's experiment, or for linear machines another one.
func (r *results) estimate(rng *rand.Rand, size int) error {
	n, right := r.experiment.Pairs, r.machines.right
	first, second := mat.NewDense(n, len(right), nil), mat.NewDense(n, len(right), nil)
	for p := range n {
		drawn := sample(rng, len(right[0]), size+1)
		neighbour := drawn[1:] // the first record replaced by the last
		switch {
		case r.experiment.Linear:
		case rng.IntN(2) == 0:
			neighbour = drawn // with the last
		default:
			neighbour = drawn[1:size] // without the first
		}
		first.SetRow(p, accuracies(right, drawn[:size]))
		second.SetRow(p, accuracies(right, neighbour))
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
