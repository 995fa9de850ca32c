package examples

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// observation is the result of the oracles for a configuration.
type observation struct {
	x, y           float64 // the parameters
	epsilon, error float64
	standardError  float64 // of the error
}

// Columns of tables; the first two are names of the objectives.
const (
	columnEpsilon       = "epsilon"
	columnError         = "error"
	columnStandardError = "standard_error"
)

// landscape are the oracles of an example over its two parameters.
type landscape struct {
	name       string
	errorLabel string
	frontName  string
	subtitle   []string     // of figures
	published  string       // the paper's statement about the search
	space      *space.Space // of x and y
	objectives []suggest.Objective
	runs       int

	xs, ys []float64       // the grid
	grid   [][]observation // grid[i][j] is at ys[i] and xs[j]
	front  []observation   // the exact front, or the grid's

	initial func(rng *rand.Rand) (x, y float64)                          // draws an initial point
	measure func(ctx context.Context, x, y float64) (observation, error) // runs the oracles
	checks  []output.Section                                             // beside published numbers
	notes   []string                                                     // on the oracles
	levels  []plot.Level                                                 // errors of what costs ε = 0, to be drawn
}

// values returns a value of each point of the grid.
func (l *landscape) values(value func(observation) float64) [][]float64 {
	values := make([][]float64, len(l.ys))
	for i, row := range l.grid {
		for _, o := range row {
			values[i] = append(values[i], value(o))
		}
	}
	return values
}

// nonDominated returns the front of some observations by increasing ε.
func nonDominated(all []observation) []observation {
	costs := make([][]float64, len(all))
	for i, o := range all {
		costs[i] = []float64{o.epsilon, o.error}
	}
	var front []observation
	for _, i := range pareto.NonDominated(costs) {
		front = append(front, all[i])
	}
	slices.SortFunc(front, func(a, b observation) int { return cmp.Compare(a.epsilon, b.epsilon) })
	return front
}

// hypervolume returns the hypervolume of observations within ε = 10 and an error of 1, as in the paper.
func hypervolume(all []observation) float64 {
	costs := make([][]float64, len(all))
	for i, o := range all {
		costs[i] = []float64{o.epsilon, o.error}
	}
	return pareto.Hypervolume(costs, []float64{10, 1})
}

// initialPoints is the number k0 of configurations before the model.
const initialPoints = 250

// search is the state of the method after the initial points, and its next step.
type search struct {
	points     []observation // distinct ones
	suggestion suggest.Suggestion
	next       observation       // the result of the suggestion
	surface    [][]dpareto.Value // over the grid
}

// search evaluates initial points, fits the model and maximises the acquisition.
func (l *landscape) search(ctx context.Context, seed uint64) (*search, error) {
	rng := rand.New(rand.NewPCG(seed, 0x6578616d706c6573))
	s := new(search)
	h := new(suggest.History)
	tried := make(space.Set)
	for range initialPoints {
		x, y := l.initial(rng)
		q := l.space.Canonical(space.Point{x, y})
		if tried.Contains(q) {
			continue
		}
		tried.Add(q)
		o, err := l.measure(ctx, q[0], q[1])
		if err != nil {
			return nil, err
		}
		s.points = append(s.points, o)
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: q, Values: []float64{o.epsilon, o.error}, StdErrors: []float64{0, o.standardError}, Runs: l.runs,
		})
	}
	p := &suggest.Problem{Space: l.space, Objectives: l.objectives}
	options := dpareto.Options{InitialPoints: 1, Published: true, Cache: new(model.Cache)}
	suggestions, err := dpareto.New(options).Suggest(ctx, p, h, suggest.Request{Count: 1, Seed: seed, Number: initialPoints})
	if err != nil {
		return nil, err
	}
	s.suggestion = suggestions[0]
	if s.next, err = l.measure(ctx, s.suggestion.Point[0], s.suggestion.Point[1]); err != nil {
		return nil, err
	}
	var points []space.Point
	for _, y := range l.ys {
		for _, x := range l.xs {
			points = append(points, space.Point{x, y})
		}
	}
	values, err := dpareto.Acquisition(ctx, p, h, seed, options, points)
	if err != nil {
		return nil, err
	}
	for i := range l.ys {
		s.surface = append(s.surface, values[i*len(l.xs):(i+1)*len(l.xs)])
	}
	return s, nil
}

// predicted returns the posterior medians of an objective over the grid.
func (s *search) predicted(objective int) [][]float64 {
	out := make([][]float64, len(s.surface))
	for i, row := range s.surface {
		for _, v := range row {
			out[i] = append(out[i], v.Predictions[objective].Median)
		}
	}
	return out
}

// difference returns the root mean square of the differences of two maps, of the logarithms of their values if log.
func difference(a, b [][]float64, log bool) float64 {
	sum, n := 0.0, 0
	for i, row := range a {
		for j, v := range row {
			d := v - b[i][j]
			if log {
				d = math.Log(v / b[i][j])
			}
			sum += d * d
			n++
		}
	}
	return math.Sqrt(sum / float64(n))
}

// geometric returns n values from least to most in equal ratios.
func geometric(least, most float64, n int) []float64 {
	values := make([]float64, n)
	for i := range values {
		values[i] = least * math.Pow(most/least, float64(i)/float64(n-1))
	}
	values[n-1] = most
	return values
}
