package bench

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// Problem is what designers are compared on.
type Problem struct {
	*suggest.Problem

	// Name identifies the problem.
	Name string

	// Initial suggests the points that all designers share: InitialPoints of them, or as
	// many as the options say.
	Initial       suggest.Designer
	InitialPoints int

	// Exact says that measurements have no noise.
	Exact bool

	// Truth returns the exact objectives, then the constraints, at a point. It is nil if they are
	// unknown.
	Truth func(space.Point) []float64

	// MaxHypervolume is the hypervolume of the true front, NaN if unknown.
	MaxHypervolume float64

	// Epochs returns the length of a run. It is nil if runs have none.
	Epochs func(space.Point) float64

	// Start returns the evaluator of one study.
	Start func() Evaluator
}

// Evaluator runs configurations. The seed determines all noise of a run. It returns one
// evaluation, or one for each checkpoint with the end of the run last; or none if the
// configuration is infeasible.
type Evaluator func(ctx context.Context, q space.Point, seed uint64) ([]suggest.Evaluation, error)

// ProblemOptions configure all problems but the synthetic ones.
type ProblemOptions struct {
	// DataDir is a folder in which data files are looked for first.
	DataDir string
	// FinalOnly leaves checkpoints out, where there are any.
	FinalOnly bool
	// EpochCost measures the cost of a run by its length, not by its number.
	EpochCost bool
	// Noise adds Gaussian noise to a synthetic problem, see [problems.Problem.WithNoise]. 0 means
	// the problem as it is.
	Noise float64
	// Settings replace settings of the trainer, for example the division of the rows.
	Settings map[string]string
	// Progress, when not nil, is called while data files are downloaded.
	Progress func(done, total int64)
}

// Names returns the names of all problems.
func Names() []string {
	names := problems.Names()
	for _, s := range trainedStudies {
		names = append(names, s.name)
	}
	return names
}

// Check returns an error if no problem has the name, or it does not take these options.
func Check(name string, o ProblemOptions) error {
	switch trained, synthetic := trainedByName(name), isSynthetic(name); {
	case !synthetic && trained == nil:
		return fmt.Errorf("--problem must be one of %s, is %q", strings.Join(Names(), ", "), name)
	case o.FinalOnly && (trained == nil || trained.checkpoint == ""):
		return fmt.Errorf("problem %s has no checkpoints to leave out", name)
	case o.EpochCost && (trained == nil || trained.checkpoint == "" || o.FinalOnly):
		return fmt.Errorf("problem %s has no checkpoints to measure costs by", name)
	case o.Noise < 0 || math.IsInf(o.Noise, 1) || math.IsNaN(o.Noise):
		return fmt.Errorf("--noise must be a finite number, at least 0, is %v", o.Noise)
	case o.Noise > 0 && !synthetic:
		return fmt.Errorf("problem %s has noise of its own: --noise is for test problems", name)
	case len(o.Settings) > 0 && trained == nil:
		return fmt.Errorf("problem %s has no trainer whose settings could be replaced", name)
	}
	return nil
}

// Open returns the problem of a name, one of [Names]. It returns the errors of [Check], of files
// and of trainers.
func Open(ctx context.Context, name string, o ProblemOptions) (*Problem, error) {
	if err := Check(name, o); err != nil {
		return nil, err
	}
	if trained := trainedByName(name); trained != nil {
		return trained.open(ctx, o)
	}
	p, _ := problems.ByName(name)
	if o.Noise > 0 {
		p = p.WithNoise(o.Noise)
	}
	return synthetic(p), nil
}

func isSynthetic(name string) bool {
	_, ok := problems.ByName(name)
	return ok
}

// trainedByName returns the problem with a trainer of a name, or nil.
func trainedByName(name string) *trainedStudy {
	i := slices.IndexFunc(trainedStudies, func(s trainedStudy) bool { return s.name == strings.ToLower(name) })
	if i < 0 {
		return nil
	}
	return &trainedStudies[i]
}

// synthetic returns a test problem. Its initial points are spread evenly, 2(d + 1) of
// them, as comparisons of Bayesian optimisers have them (Daulton, Balandat, Bakshy,
// "Differentiable Expected Hypervolume Improvement", NeurIPS 2020).
func synthetic(p *problems.Problem) *Problem {
	return &Problem{
		Problem:        &p.Problem,
		Name:           p.Name,
		Initial:        quasirandom.New(),
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

// feasible returns the costs of the values of all metrics, or NaNs, which no front counts, if
// they do not meet the constraints.
func (p *Problem) feasible(values []float64) []float64 {
	costs := p.costs(values)
	for i := range p.Constraints {
		if v := values[len(p.Objectives)+i]; !p.Constraints[i].Holds(v) {
			costs[0] = math.NaN()
		}
	}
	return costs
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
