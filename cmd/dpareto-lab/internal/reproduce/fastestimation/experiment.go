package fastestimation

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/privacy"
)

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	// Datasets are some of DatasetNames.
	Datasets []string
	// Losses are some of LossNames.
	Losses []string
	// Rows is the number of training records of Table 1, at least 100; the paper has
	// 10,000. Figure 2 goes from a tenth to twice as many.
	Rows int
	// Draws is the number of times that everything is trained, at least 1; the paper
	// has 10.
	Draws int
	// Seed of the division of the data, of the noise and of the order of examples.
	Seed uint64
	// DataDir is dataset.Source.DataDir.
	DataDir string
}

var _ reproduce.Experiment = (*Experiment)(nil)

// lossKind is a loss of the paper.
type lossKind struct {
	name, title string
	loss        linear.Loss
}

var losses = []*lossKind{
	{"lr", "LR", linear.Logistic{}},
	{"svm", "SVM", linear.Huber{Width: 2}},
}

// DatasetNames returns the names of the datasets.
func DatasetNames() []string { return names(sources, func(s *source) string { return s.name }) }

// LossNames returns the names of the losses.
func LossNames() []string { return names(losses, func(l *lossKind) string { return l.name }) }

func names[T any](all []T, name func(T) string) []string {
	list := make([]string, len(all))
	for i, x := range all {
		list[i] = name(x)
	}
	return list
}

// targets are the ε at which losses are estimated.
var targets = func() []float64 {
	all := make([]float64, 20)
	for i := range all {
		all[i] = float64(i+1) / 20
	}
	return all
}()

// Measuring points, as indices of targets.
var (
	// measuring are the values of Table 1: ε = 0.10, 0.25, 0.30, 0.35, 0.45, 0.75, 0.85.
	measuring = []int{1, 4, 5, 6, 8, 14, 16}
	// drawn are the values of the paper's figures of curves: 0.10, 0.25, 0.75.
	drawn = []int{1, 4, 14}
	// grouped are the means of four groups of five targets: 0.15, 0.40, 0.65, 0.90. Section
	// 4.3 of the paper proposes to measure there where targets are small.
	grouped = []int{2, 7, 12, 17}
)

// repetitions is how often the ten draws of an unconverged training are repeated, to see
// how far its errors are due to chance.
const repetitions = 10

// sizes returns the numbers of records of Figure 2.
func (e *Experiment) sizes() []int {
	return []int{e.Rows / 10, e.Rows / 5, e.Rows / 2, e.Rows, e.Rows * 3 / 2, e.Rows * 2}
}

// inFigure2 reports whether Figure 2 has a training.
func (t *training) inFigure2() bool { return t.solver != passes }

// repetitions returns how often all draws are made.
func (t *training) repetitions() int {
	if t.solver == steps {
		return repetitions
	}
	return 1
}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "fast-estimation" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	if err := checkNames("dataset", e.Datasets, DatasetNames()); err != nil {
		return err
	}
	if err := checkNames("loss", e.Losses, LossNames()); err != nil {
		return err
	}
	if e.Rows < 100 {
		return fmt.Errorf("--rows must be at least 100, is %d", e.Rows)
	}
	if e.Draws < 1 {
		return fmt.Errorf("--draws must be at least 1, is %d", e.Draws)
	}
	largest := slices.Max(e.sizes())
	pole, _ := estimate.Boundary(privacy.ObjectivePerturbation{
		DatasetSize: int64(largest), Regularization: regularization, Curvature: linear.Logistic{}.Curvature(), Calibration: privacy.Chaudhuri,
	})
	if last := targets[len(targets)-1]; !(pole > last) {
		return fmt.Errorf("--rows: with %d records the paper's calibration has its pole at ε = %.3g, among the points up to %v; use fewer", largest, pole, last)
	}
	return nil
}

// checkNames returns an error unless some of the known names are given, each once.
func checkNames(kind string, given, known []string) error {
	if len(given) == 0 {
		return fmt.Errorf("--%s is required: some of %s", kind, strings.Join(known, ", "))
	}
	for i, name := range given {
		if !slices.Contains(known, name) {
			return fmt.Errorf("--%s must be some of %s, is %q", kind, strings.Join(known, ", "), name)
		}
		if slices.Contains(given[:i], name) {
			return fmt.Errorf("%s %q is given twice", kind, name)
		}
	}
	return nil
}

// curve is a point for each target: of one draw, or means over draws.
type curve []point

// mean returns the means over draws, in their order. There is at least one, and all are whole.
func mean(draws []curve) curve {
	sum := make(curve, len(targets))
	n := float64(len(draws))
	for _, c := range draws {
		for i, p := range c {
			s := &sum[i]
			s.loss += p.loss / n
			s.slope += p.slope / n
			s.heldOut.Loss += p.heldOut.Loss / n
			s.heldOut.Error += p.heldOut.Error / n
		}
	}
	losses := make([]float64, len(draws))
	for i := range sum {
		for k, c := range draws {
			losses[k] = c[i].loss
		}
		sum[i].spread = stat.StdDev(losses, nil)
	}
	return sum
}

// line returns the losses that the line through a point gives for the targets.
func (c curve) line(through int) []float64 {
	values := make([]float64, len(c))
	for i := range c {
		values[i] = c[through].loss + c[through].slope*(targets[i]-targets[through])
	}
	return values
}

func (c curve) losses() []float64 { return values(c, func(p point) float64 { return p.loss }) }

func values(c curve, value func(point) float64) []float64 {
	list := make([]float64, len(c))
	for i, p := range c {
		list[i] = value(p)
	}
	return list
}

// distance returns the mean of |a − b|.
func distance(a, b []float64) float64 {
	var sum float64
	for i := range a {
		sum += math.Abs(a[i] - b[i])
	}
	return sum / float64(len(a))
}

// lineError returns the mean error of the line through a point.
func (c curve) lineError(through int) float64 { return distance(c.line(through), c.losses()) }

// groupedError returns the mean distance of the losses from lines through the means of four
// groups of targets.
func (c curve) groupedError() float64 {
	estimated := make([]float64, len(c))
	size := len(c) / len(grouped)
	for i, through := range grouped {
		copy(estimated[i*size:(i+1)*size], c.line(through)[i*size:])
	}
	return distance(estimated, c.losses())
}

// leastLineError returns the least mean error that any straight line has: one through two
// of the points is best, as in all linear problems of least absolute deviations.
func (c curve) leastLineError() float64 {
	losses := c.losses()
	least := math.Inf(1)
	for i := range c {
		for k := range i {
			chord := slices.Clone(c)
			chord[i].slope = (losses[i] - losses[k]) / (targets[i] - targets[k])
			least = min(least, distance(chord.line(i), losses))
		}
	}
	return least
}

// outcome is the outcome for a dataset and a loss.
type outcome struct {
	source *source
	loss   *lossKind
	// zero and free are the training loss and the test error of the model 0 and of the
	// model without privacy.
	zero, free point
	trained    []*trainedOutcome
	// bounds are, by training, bounds of the errors of Table 1 by Theorem 3, corrected. They need no
	// data; there are none for a loss that the theorem does not cover.
	bounds map[*training][]float64
	// missing says which file is not here; only bounds are then known.
	missing error
}

// trainedOutcome is the outcome for one way to train.
type trainedOutcome struct {
	*training
	// truth has a curve of means for each repetition.
	truth []curve
	// estimated are the curves of means by estimators; nil where the model is no minimiser.
	estimated []curve
	// bySize are the line's errors for the numbers of records of Figure 2; nil where it
	// has none.
	bySize []float64
}

// estimator is an estimate from more than one model.
type estimator struct {
	name string
	path func(ctx context.Context, p estimate.Problem, u []float64) (estimate.Path, error)
}

var estimators = []estimator{hermite(3), hermite(4), {"newton", func(_ context.Context, p estimate.Problem, u []float64) (estimate.Path, error) {
	return p.Newton(u), nil
}}}

func hermite(k int) estimator {
	return estimator{fmt.Sprintf("hermite_%d", k), func(ctx context.Context, p estimate.Problem, u []float64) (estimate.Path, error) {
		return p.Hermite(ctx, u, estimate.Anchors(targets[0], targets[len(targets)-1], k))
	}}
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (*reproduce.Result, error) {
	r := &run{Experiment: e, watch: watch}
	var opened []*records
	missing := make(map[*source]error)
	var lines []string
	for _, s := range sources {
		if !slices.Contains(e.Datasets, s.name) {
			continue
		}
		sizes, main := s.rows(e)
		records, err := s.open(ctx, dataset.Source{DataDir: e.DataDir}, e.Seed, slices.Max(sizes), (sizes[main]+3)/4)
		line, lacks := reproduce.Missing(s.title, err)
		switch {
		case lacks:
			missing[s] = err
			lines = append(lines, line)
		case err != nil:
			return nil, err
		default:
			opened = append(opened, records)
			r.total += e.work(s)
		}
	}
	if r.total == 0 {
		r.total = 1
		watch.Report(1, 1)
	}
	measured := make(map[*source][]*outcome)
	var all []*outcome // that are measured
	for _, records := range opened {
		for _, l := range e.losses() {
			o, err := r.measure(ctx, records, l)
			if err != nil {
				return nil, fmt.Errorf("%s, %s: %w", records.name, l.name, err)
			}
			measured[records.source], all = append(measured[records.source], o), append(all, o)
		}
	}
	if err := watch.Show(figures(e, all)...); err != nil {
		return nil, err
	}
	var outcomes []*outcome
	for _, s := range sources {
		outcomes = append(outcomes, measured[s]...)
		if err := missing[s]; err != nil {
			for _, l := range e.losses() {
				outcomes = append(outcomes, &outcome{source: s, loss: l, missing: err})
			}
		}
	}
	for _, o := range outcomes {
		if err := e.bound(ctx, o); err != nil {
			return nil, fmt.Errorf("%s, %s: %w", o.source.name, o.loss.name, err)
		}
	}
	result := e.result(outcomes)
	result.Missing = lines
	return result, nil
}

// losses returns the losses that were asked for.
func (e *Experiment) losses() []*lossKind {
	return slices.DeleteFunc(slices.Clone(losses), func(l *lossKind) bool { return !slices.Contains(e.Losses, l.name) })
}

// work returns the number of runs for a source.
func (e *Experiment) work(s *source) int {
	total := 0
	sizes, _ := s.rows(e)
	for _, t := range trainings {
		total += e.Draws * t.repetitions()
		if t.solver == exact {
			total += e.Draws * len(estimators)
		}
		if t.inFigure2() {
			total += e.Draws * (len(sizes) - 1)
		}
	}
	return total * len(e.losses())
}

// run is an experiment on its way.
type run struct {
	*Experiment
	watch       reproduce.Watch
	lock        sync.Mutex
	done, total int
}

// each calls do with the numbers below n, some at the same time, and counts them.
func (r *run) each(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0))
	for i := range n {
		group.Go(func() error {
			if err := do(ctx, i); err != nil {
				return err
			}
			r.lock.Lock()
			defer r.lock.Unlock()
			r.done++
			r.watch.Report(r.done, r.total)
			return nil
		})
	}
	return group.Wait()
}

// measure computes everything for a dataset and a loss.
func (r *run) measure(ctx context.Context, records *records, loss *lossKind) (*outcome, error) {
	o := &outcome{source: records.source, loss: loss}
	sizes, index := records.rows(r.Experiment)
	problems := make([]*problem, len(sizes))
	for i, rows := range sizes {
		var err error
		if problems[i], err = records.problem(loss.loss, rows); err != nil {
			return nil, err
		}
	}
	main := problems[index]
	free, err := linear.Objective{Risk: main.train, Ridge: regularization}.Minimize(ctx, nil, 0)
	if err != nil {
		return nil, err
	}
	o.zero, o.free = main.evaluate(make([]float64, main.dim())), main.evaluate(free.Theta)
	for _, t := range trainings {
		trained, err := r.measureTraining(ctx, main, t)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		o.trained = append(o.trained, trained)
		if !t.inFigure2() || len(sizes) == 1 {
			continue
		}
		through := o.through()
		for i, p := range problems {
			truth := trained.truth[0]
			if p != main {
				if truth, err = r.truth(ctx, p, t, 0, func(k int) bool { return k == through }); err != nil {
					return nil, fmt.Errorf("%s, %d records: %w", t.name, sizes[i], err)
				}
			}
			trained.bySize = append(trained.bySize, truth.lineError(through))
		}
	}
	return o, nil
}

// measureTraining computes curves for the number of records of Table 1.
func (r *run) measureTraining(ctx context.Context, p *problem, t *training) (*trainedOutcome, error) {
	trained := &trainedOutcome{training: t}
	for repetition := range t.repetitions() {
		truth, err := r.truth(ctx, p, t, repetition*r.Draws, func(k int) bool {
			return slices.Contains(measuring, k) || slices.Contains(grouped, k)
		})
		if err != nil {
			return nil, err
		}
		trained.truth = append(trained.truth, truth)
	}
	if t.solver != exact {
		return trained, nil
	}
	for _, by := range estimators {
		draws := make([]curve, r.Draws)
		if err := r.each(ctx, r.Draws, func(ctx context.Context, i int) (err error) {
			draws[i], err = t.estimate(ctx, p, r.Seed, i, by)
			return err
		}); err != nil {
			return nil, err
		}
		trained.estimated = append(trained.estimated, mean(draws))
	}
	return trained, nil
}

// bound computes the bounds of an outcome, from the numbers of records and features alone.
func (e *Experiment) bound(ctx context.Context, o *outcome) error {
	sizes, main := o.source.rows(e)
	p, err := o.source.outline(o.loss.loss, sizes[main])
	if err != nil {
		return err
	}
	o.bounds = make(map[*training][]float64)
	for _, t := range trainings {
		if t.solver != exact {
			continue
		}
		bounds, err := e.bounds(ctx, p, t)
		if errors.Is(err, estimate.ErrNotSmooth) {
			return nil
		}
		if err != nil {
			return err
		}
		o.bounds[t] = bounds
	}
	return nil
}

// bounds returns, for each measuring point, the mean over the targets and the draws of
// what is proved of the line's error. The error is estimate.ErrNotSmooth for a loss of which nothing is.
func (e *Experiment) bounds(ctx context.Context, p *problem, t *training) ([]float64, error) {
	bounds := make([]float64, len(measuring))
	for draw := range e.Draws {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		u := t.unit(p, e.Seed, draw, -1)
		for i, m := range measuring {
			for _, to := range targets {
				bound, err := t.estimation(p).LineErrorBound(u, targets[m], to, estimate.LineAssumptions{})
				if err != nil {
					return nil, err
				}
				bounds[i] += bound / float64(e.Draws*len(targets))
			}
		}
	}
	return bounds, nil
}

// truth returns the means over draws from the first one on.
func (r *run) truth(ctx context.Context, p *problem, t *training, first int, sloped func(k int) bool) (curve, error) {
	draws := make([]curve, r.Draws)
	err := r.each(ctx, r.Draws, func(ctx context.Context, i int) (err error) {
		draws[i], err = t.path(ctx, p, r.Seed, first+i, sloped)
		return err
	})
	if err != nil { // some draws are missing
		return nil, err
	}
	return mean(draws), nil
}
