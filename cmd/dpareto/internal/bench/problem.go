package bench

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// Problem is what designers are compared on.
type Problem struct {
	*suggest.Problem

	// Name identifies the problem.
	Name string

	// Initial suggests the points that all designers share, InitialPoints of them unless
	// somebody asks for another number.
	Initial       suggest.Designer
	InitialPoints int

	// Exact tells that measurements have no noise.
	Exact bool

	// Truth returns the exact objectives at a point. nil if they are not known.
	Truth func(space.Point) []float64

	// MaxHypervolume is the hypervolume of the true front, NaN if unknown.
	MaxHypervolume float64

	// Epochs returns the length of a run. nil where runs have none.
	Epochs func(space.Point) float64

	// Start returns the evaluator of one study.
	Start func() Evaluator
}

// Evaluator runs configurations. The seed determines all noise of a run. It returns one
// evaluation, or one of each checkpoint, the end of the run last; or none if the
// configuration is infeasible.
type Evaluator func(ctx context.Context, q space.Point, seed uint64) ([]suggest.Evaluation, error)

// ProblemOptions are what problems other than the synthetic ones are made from.
type ProblemOptions struct {
	// DataDir is a folder in which data files are looked for first.
	DataDir string
	// FinalOnly leaves checkpoints out, where there are any.
	FinalOnly bool
	// Study is the file of the study whose trials are replayed.
	Study string
	// Progress, when not nil, is called while data files are downloaded.
	Progress func(done, total int64)
}

// replayPrefix precedes the file of recorded trials in the name of a problem.
const replayPrefix = "replay:"

// Names returns the names of all problems but replays.
func Names() []string {
	names := problems.Names()
	for _, s := range trainedStudies {
		names = append(names, s.name)
	}
	return names
}

// Open returns the problem of a name: one of [Names], or replay:FILE for trials recorded
// in a CSV file.
func Open(ctx context.Context, name string, o ProblemOptions) (*Problem, error) {
	file, replayed := strings.CutPrefix(name, replayPrefix)
	if o.Study != "" && !replayed {
		return nil, errors.New("a study file is for replays only")
	}
	if replayed {
		return replay(file, o)
	}
	i := slices.IndexFunc(trainedStudies, func(s trainedStudy) bool { return s.name == strings.ToLower(name) })
	if i >= 0 {
		return trainedStudies[i].open(ctx, o)
	}
	p, ok := problems.ByName(name)
	if !ok {
		return nil, fmt.Errorf("problem %q is unknown, want one of %s, or %sFILE.csv", name, strings.Join(Names(), ", "), replayPrefix)
	}
	if o.FinalOnly {
		return nil, noCheckpoints(p.Name)
	}
	return synthetic(p), nil
}

func noCheckpoints(name string) error {
	return fmt.Errorf("problem %s has no checkpoints to leave out", name)
}

// synthetic returns a test problem. Its initial points are spread evenly, 2(d + 1) of
// them, as comparisons of Bayesian optimisers have them (Daulton, Balandat, Bakshy,
// "Differentiable Expected Hypervolume Improvement", NeurIPS 2020).
func synthetic(p *problems.Problem) *Problem {
	return &Problem{
		Problem:        &p.Problem,
		Name:           p.Name,
		Initial:        suggest.NewQuasiRandom(),
		InitialPoints:  2 * (len(p.Space.Parameters) + 1),
		Exact:          p.Noise == nil,
		Truth:          p.Evaluate,
		MaxHypervolume: p.MaxHypervolume,
		Start: func() Evaluator {
			return func(_ context.Context, q space.Point, seed uint64) ([]suggest.Evaluation, error) {
				return []suggest.Evaluation{p.Observe(q, rand.New(rand.NewPCG(seed, 0)))}, nil
			}
		},
	}
}

// reference returns the anti-ideal point in costs.
func (p *Problem) reference() []float64 {
	reference := make([]float64, len(p.Objectives))
	for j := range reference {
		reference[j] = p.Objectives[j].Reference
	}
	return p.costs(reference)
}

// costs returns values of the objectives turned so that smaller is better.
func (p *Problem) costs(values []float64) []float64 {
	costs := slices.Clone(values[:len(p.Objectives)])
	for j := range costs {
		if p.Objectives[j].Goal == suggest.Maximize {
			costs[j] = -costs[j]
		}
	}
	return costs
}
