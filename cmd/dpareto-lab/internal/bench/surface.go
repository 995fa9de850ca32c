package bench

import (
	"context"
	"math"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/surface"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Variant says how a surface answers.
type Variant struct {
	// Noiseless leaves the noise of runs out.
	Noiseless bool `json:"noiseless"`
	// Smooth makes ε smooth in all parameters, see [surface.Surface.Problem].
	Smooth bool `json:"smooth"`
	// Reported gives ε as a measurement, which designers have to model, instead of a function.
	Reported bool `json:"reported_epsilon"`
}

// Words returns the variant in words.
func (v Variant) Words() string {
	words := "noise"
	if v.Noiseless {
		words = "no noise"
	}
	if v.Smooth {
		words += ", smooth ε"
	}
	if v.Reported {
		words += ", reported ε"
	}
	return words
}

// Surface is a tabulated surface in one variant, on which methods are compared.
type Surface struct {
	Variant

	model   *surface.Model
	digest  string
	problem *suggest.Problem
}

// OpenSurface makes a surface of its table. It returns the errors of [surface.Fit].
func OpenSurface(ctx context.Context, t *surface.Table, v Variant) (*Surface, error) {
	m, err := surface.Fit(ctx, t)
	if err != nil {
		return nil, err
	}
	p, err := t.Surface.Problem(v.Smooth)
	if err != nil {
		return nil, err
	}
	return &Surface{Variant: v, model: m, digest: t.Digest, problem: p}, nil
}

// Model returns the model behind the surface.
func (s *Surface) Model() *surface.Model { return s.model }

// Best returns the hypervolume of the best front known, see [surface.Model.Best].
func (s *Surface) Best(ctx context.Context) (float64, error) { return s.model.Best(ctx, s.problem) }

// seen returns the problem as a designer sees it: with checkpoints or without.
func (s *Surface) seen(checkpoints bool) *suggest.Problem {
	p := *s.problem
	if s.Reported {
		p.Objectives = slices.Clone(p.Objectives)
		p.Objectives[0].Known, p.Objectives[0].Search = nil, nil
	}
	if !checkpoints {
		p.Checkpoint = ""
	}
	return &p
}

// course is one study on a surface: what was tried, and all that the runs have shown.
type course struct {
	surface *Surface
	seed    uint64
	// history holds every epoch of every run.
	history suggest.History
	// ends and trained are the numbers of evaluations and of epochs after 0, 1, 2, ... runs.
	ends    []int
	trained []float64
	// epsilons are the values of ε at the evaluations, by their points.
	epsilons map[string]float64
}

func newCourse(s *Surface, seed uint64) *course {
	return &course{surface: s, seed: seed, ends: []int{0}, trained: []float64{0}, epsilons: make(map[string]float64)}
}

// runs returns the number of runs so far.
func (c *course) runs() int { return len(c.ends) - 1 }

// run trains a configuration and returns the evaluations of its epochs, the end last. Its noise depends
// on the seed of the study and on the number of the run.
func (c *course) run(q space.Point) []suggest.Evaluation {
	s, number := c.surface, c.runs()+1
	failed := s.model.Train(q, !s.Noiseless, derive(c.seed, streamRuns, number))
	spent := s.model.Surface.Epsilons(s.problem, s.Smooth, q)
	epoch := s.problem.CheckpointIndex()
	for i := range failed {
		state := slices.Clone(q)
		state[epoch] = float64(i + 1)
		c.epsilons[key(state)] = spent[i]
		c.history.Evaluations = append(c.history.Evaluations, suggest.Evaluation{
			Point: state, Values: []float64{spent[i], failed[i]}, StdErrors: []float64{0, math.NaN()}, Runs: 1, Run: int64(number),
		})
	}
	c.ends = append(c.ends, len(c.history.Evaluations))
	c.trained = append(c.trained, c.trained[number-1]+float64(len(failed)))
	return c.history.Evaluations[c.ends[number-1]:]
}

// key returns a point as the key of a map.
func key(q space.Point) string {
	out := make([]byte, 0, 8*len(q))
	for _, v := range q {
		bits := math.Float64bits(v)
		for shift := 0; shift < 64; shift += 8 {
			out = append(out, byte(bits>>shift))
		}
	}
	return string(out)
}
