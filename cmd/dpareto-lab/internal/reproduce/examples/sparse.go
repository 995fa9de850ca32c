package examples

import (
	"context"
	"math"
	"math/rand/v2"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/sparsevector"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxCutoff is the largest bound C on the number of positive answers.
const maxCutoff = 30

// sparseVector computes the oracles of the sparse vector technique over a grid.
func (e *Experiment) sparseVector(ctx context.Context, p *progress) (*landscape, error) {
	l := &landscape{
		name: "sparse vector technique", subtitle: []string{"ε is pure (δ = 0), for the adjacency under which a query changes by at most 1"}, errorLabel: "1 − F1", runs: e.Runs, frontName: "exact front",
		published: "The paper's next point has a medium ε and a low 1 − F1, in a gap at the lower right of the front. The code of this figure is not published.",
		space: &space.Space{Parameters: []space.Parameter{
			{Name: "C", Kind: space.Integer, Min: 1, Max: maxCutoff},
			{Name: "b", Kind: space.Double, Min: 1e-2, Max: 1e2, Scale: space.Log},
		}},
		objectives: []suggest.Objective{
			{Name: columnEpsilon, Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10},
			{Name: columnError, Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: 10},
		},
		ys: geometric(1e-2, 1e2, e.Side),
		notes: []string{
			"100 queries, 10 of them positive, in random order; the mechanism stops after C positive answers, and b is the noise, shared by the threshold and the queries. ε = (1 + (2C)^(1/3))(1 + (2C)^(2/3))/b, with δ = 0 (the paper's appendix prints (1 + 2C)^(1/3) in one place).",
			"Errors over the grid and on the exact front are expectations, computed by integration.",
		},
	}
	for c := range maxCutoff {
		l.xs = append(l.xs, float64(c+1))
	}
	draws := int64(0)
	l.measure = func(ctx context.Context, x, y float64) (observation, error) {
		draws++
		return e.simulate(ctx, x, y, agent.TrialSeed(e.Seed, draws, 4))
	}
	l.initial = func(rng *rand.Rand) (x, y float64) {
		return float64(1 + rng.IntN(maxCutoff)), 1e-2 * math.Pow(1e4, rng.Float64())
	}
	l.grid = make([][]observation, len(l.ys))
	for j := range l.xs {
		for i, scale := range l.ys {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			cutoff := int64(j + 1)
			l.grid[i] = append(l.grid[i], observation{
				float64(cutoff), scale, sparsevector.Epsilon(cutoff, scale), sparsevector.ExpectedError(cutoff, scale), 0,
			})
		}
		p.step()
	}
	for _, o := range sparsevector.ExactFront(math.Inf(1)) {
		l.front = append(l.front, observation{float64(o.Cutoff), o.NoiseScale, o.Epsilon, o.Error, 0})
		if o.Error < 1e-9 {
			break // beyond the accuracy of the integrals
		}
	}
	var err error
	l.checks, err = e.sparseChecks(ctx)
	return l, err
}

// simulate runs the sparse vector technique.
func (e *Experiment) simulate(ctx context.Context, cutoff, scale float64, seed uint64) (observation, error) {
	m, err := sparsevector.Trainer{}.Train(ctx, trainer.Run{
		Parameters: trainer.Parameters{sparsevector.ParameterCutoff: int64(cutoff), sparsevector.ParameterNoiseScale: scale},
		Replicates: e.Runs, Seed: &seed,
	}, nil)
	if err != nil {
		return observation{}, err
	}
	mean, deviation := stat.MeanStdDev(m.Metrics[sparsevector.MetricError], nil)
	return observation{cutoff, scale, sparsevector.Epsilon(int64(cutoff), scale), mean, deviation / math.Sqrt(float64(e.Runs))}, nil
}

// sparseChecks compares ε and errors with published numbers.
func (e *Experiment) sparseChecks(ctx context.Context) ([]output.Section, error) {
	t := &output.Table{Columns: []string{"cutoff", "noise_scale", columnEpsilon, "published_epsilon", "expected_error", "published_code", "simulated_error", columnStandardError}}
	for k, c := range publishedSparse {
		o, err := e.simulate(ctx, float64(c.cutoff), c.scale, agent.TrialSeed(e.Seed, int64(k), 5))
		if err != nil {
			return nil, err
		}
		t.Rows = append(t.Rows, []any{
			c.cutoff, c.scale, output.Bound(o.epsilon), c.epsilon, sparsevector.ExpectedError(c.cutoff, c.scale), c.error, o.error, o.standardError,
		})
	}
	return []output.Section{{Name: "figure2_oracles", Title: "Figure 2: ε and error of some configurations", Table: t, Notes: []string{
		"published_epsilon and published_code are of the published notebook's formula and mechanism; the errors are means of 20,000 runs. The paper prints no numbers. simulated_error is what the search sees.",
	}}}, nil
}
