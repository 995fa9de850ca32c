package proposetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/privacy/proposetest"
	"github.com/dpareto/dpareto/privacy/selection"
)

// Experiment is the experiment. It implements reproduce.Experiment.
type Experiment struct {
	// Runs is how often every search is repeated, at least 2; the paper has 1000.
	Runs int
	// Adult asks for the comparison on Adult as well.
	Adult bool
	// Parts is the number of parts of Adult's training set, at least 2, and Side the number of
	// values of each of two hyperparameters, at least 2.
	Parts, Side int
	// Generated asks for generated data in the shape of Adult.
	Generated bool
	// Seed of the utilities and of the noise.
	Seed uint64
	// DataDir is dataset.Source.DataDir.
	DataDir string
}

var _ reproduce.Experiment = (*Experiment)(nil)

// Values that the paper fixes.
const (
	candidates   = 100
	roundEpsilon = 0.1
	delta        = 1e-6 // δ′ of the composition, of which the paper says nothing
	granularity  = 0.01 // of Figure 1
)

// ratios are values of (u* − u_0)/g of Figure 2.
var ratios = []float64{1, 10, 100, 200, 500, 1000}

// noises are the noises of the searches. The paper has the first.
var noises = []struct {
	name  string
	parts int  // 0 for no noise
	drawn bool // in the figures, where one of two that fall together is enough
}{{"kε0 = 1", 10, true}, {"kε0 = 10", 100, false}, {"kε0 = 100", 1000, true}, {"kε0 = 1000", 10000, true}, {"no noise", 0, true}}

// noNoise makes a search deterministic.
type noNoise struct{}

func (noNoise) Laplace(value, _ float64) float64 { return value }

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "propose-test" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	if e.Runs < 2 {
		return fmt.Errorf("runs must be at least 2, is %d", e.Runs)
	}
	if e.Adult && (e.Parts < 2 || e.Side < 2) {
		return fmt.Errorf("parts and side must be at least 2, are %d and %d", e.Parts, e.Side)
	}
	return nil
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (*reproduce.Result, error) {
	total := len(ratios)*len(noises) + len(noises) + len(comparisons)
	if e.Adult {
		total += e.trainings()
	}
	done := 0
	step := func() error {
		done++
		watch.Report(done, total)
		return ctx.Err()
	}
	var r results
	for i, ratio := range ratios {
		for j := range noises {
			s, err := e.searches(uint64(i*len(noises)+j), j, func(best float64) float64 { return min(best/ratio, 0.999) })
			if err != nil {
				return nil, err
			}
			r.figure2 = append(r.figure2, cell{ratio: ratio, noise: j, searches: s})
			if err := step(); err != nil {
				return nil, err
			}
		}
	}
	for j := range noises {
		s, err := e.searches(uint64(1000+j), j, func(float64) float64 { return granularity })
		if err != nil {
			return nil, err
		}
		r.figure1 = append(r.figure1, cell{noise: j, searches: s})
		if err := step(); err != nil {
			return nil, err
		}
	}
	if err := watch.Show(r.figures()...); err != nil {
		return nil, err
	}
	for i, c := range comparisons {
		row, err := e.compare(uint64(2000+i), c)
		if err != nil {
			return nil, err
		}
		r.compared = append(r.compared, row)
		if err := step(); err != nil {
			return nil, err
		}
	}
	result, err := r.report(e)
	if err != nil || !e.Adult {
		return result, err
	}
	adult, err := e.adultSection(ctx, step)
	if line, ok := reproduce.Missing("The comparison on Adult", err); ok {
		result.Missing = append(result.Missing, line)
		return result, nil
	}
	if err != nil {
		return nil, err
	}
	result.Report.Sections = append(result.Report.Sections, adult)
	return result, nil
}

// searches are repeated searches, run by run.
type searches struct {
	rounds, best []float64
	// selected are the utilities of candidates that passed a round, and defaults the number
	// of searches where none did.
	selected []float64
	defaults int
	// levels are a·g after every round, the last one being kept to the end.
	levels [][]float64
	// steps are the steps after every round, beside levels.
	steps [][]float64
}

// cell is one setting of the simulation.
type cell struct {
	ratio float64
	noise int
	searches
}

// stream returns sources of utilities and of noise for a part of the experiment.
func (e *Experiment) stream(part uint64) (*rand.Rand, *noise.Source) {
	return rand.New(rand.NewPCG(e.Seed, part)), noise.Seeded(e.Seed<<16 + part)
}

// draw fills utilities, and returns the best.
func draw(rng *rand.Rand, utilities []float64) (best float64) {
	for i := range utilities {
		utilities[i] = rng.Float64()
		best = max(best, utilities[i])
	}
	return best
}

// searches repeats a search, with a granularity that may depend on the best utility.
func (e *Experiment) searches(part uint64, kind int, step func(best float64) float64) (searches, error) {
	rng, source := e.stream(part)
	var s searches
	utilities := make([]float64, candidates)
	for range e.Runs {
		best := draw(rng, utilities)
		tuning := proposetest.Tuning{Parts: noises[kind].parts, Epsilon: roundEpsilon, Granularity: step(best), Neighbours: privacy.ReplaceOne}
		var draws proposetest.Noise = source
		if tuning.Parts == 0 {
			draws, tuning.Parts = noNoise{}, 2 // of which nothing depends
		}
		result, err := tuning.Run(draws, utilities)
		if err != nil {
			return searches{}, err
		}
		s.rounds = append(s.rounds, float64(len(result.Rounds)))
		s.best = append(s.best, best)
		passed, level := false, int64(0)
		levels, steps := []float64{0}, []float64{1}
		for _, r := range result.Rounds {
			step := r.Step / 2
			if r.Passed >= 0 {
				passed, level, step = true, r.Level+r.Step, 2*r.Step
			}
			levels, steps = append(levels, float64(level)*tuning.Granularity), append(steps, float64(step))
		}
		s.levels, s.steps = append(s.levels, levels), append(s.steps, steps)
		if passed {
			s.selected = append(s.selected, utilities[result.Selected])
		} else {
			s.defaults++
		}
	}
	return s, nil
}

// comparison is a capped search, against one private maximum with the same ε.
type comparison struct {
	parts int
	cap   int64
}

// comparisons: the paper's noise and less, for the granularity of Figure 1.
var comparisons = []comparison{{10, 7}, {100, 7}, {1000, 7}, {1000, 13}, {10000, 13}}

// compared is the outcome of a comparison: mean utilities.
type compared struct {
	comparison
	guarantee                           privacy.Guarantee
	proposeTest, noisyMax, permute, top float64
	// finals are mean accuracies after the private training, of the selections of propose-test and report-noisy-max.
	finals [2]float64
}

func (e *Experiment) compare(part uint64, c comparison) (compared, error) {
	rng, source := e.stream(part)
	utilities := make([]float64, candidates)
	result, err := e.repeat(proposetest.Tuning{
		Parts: c.parts, Epsilon: roundEpsilon, Delta: delta, Granularity: granularity, Cap: c.cap, Neighbours: privacy.ReplaceOne,
	}, source, func() []float64 {
		draw(rng, utilities)
		return utilities
	}, nil)
	result.comparison = c
	return result, err
}

// repeat selects e.Runs times, by a search and by one maximum with the same ε, among
// utilities that next returns. finals, unless it is nil, has the accuracy of each after its private training.
func (e *Experiment) repeat(tuning proposetest.Tuning, source *noise.Source, next func() []float64, finals []float64) (compared, error) {
	guarantee, err := tuning.Guarantee()
	if err != nil {
		return compared{}, err
	}
	var chosen [3][]float64
	var tops []float64
	var indices [3][]int
	for range e.Runs {
		utilities := next()
		tops = append(tops, slices.Max(utilities))
		result, err := tuning.Run(source, utilities)
		if err != nil {
			return compared{}, err
		}
		chosen[0], indices[0] = append(chosen[0], utilities[result.Selected]), append(indices[0], result.Selected)
		for i, method := range []privacy.SelectionMethod{privacy.ReportNoisyMax, privacy.PermuteAndFlip} {
			index, err := selection.Select(method, source, utilities, tuning.Sensitivity(), guarantee.Epsilon)
			if err != nil {
				return compared{}, err
			}
			chosen[1+i], indices[1+i] = append(chosen[1+i], utilities[index]), append(indices[1+i], index)
		}
	}
	mean := func(x []float64) float64 { return stat.Mean(x, nil) }
	c := compared{guarantee: guarantee, proposeTest: mean(chosen[0]), noisyMax: mean(chosen[1]), permute: mean(chosen[2]), top: mean(tops)}
	if finals == nil {
		return c, nil
	}
	for i := range c.finals {
		for _, index := range indices[i] {
			c.finals[i] += finals[index] / float64(len(indices[i]))
		}
	}
	return c, nil
}
