package examples

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/agent"
	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/outputperturbation"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Of the private logistic regression.
const (
	epochs = 10
	delta  = 1e-6
)

// regression is the private logistic regression on Adult.
type regression struct {
	trainer   *outputperturbation.Trainer // with the sensitivity 2/(γn), which is proven and attained
	published *outputperturbation.Trainer // with the published one, 4/(γn)
	runs      int
	seed      uint64
}

// newRegression returns the regression on data. The two trainers give the same models: the published
// projection never moves an iterate.
func newRegression(parts *dataset.Parts, runs int, seed uint64) (*regression, error) {
	r := &regression{runs: runs, seed: seed}
	var err error
	if r.trainer, err = outputperturbation.New(parts, outputperturbation.Options{}); err != nil {
		return nil, err
	}
	r.published, err = outputperturbation.New(parts, outputperturbation.Options{Projection: outputperturbation.PublishedProjection})
	return r, err
}

// epsilon returns the ε of a run with regularisation γ and noise σ, by the sensitivity of a trainer.
func epsilon(t *outputperturbation.Trainer, gamma, sigma float64) (float64, error) {
	m, err := t.Mechanism(trainer.Parameters{
		outputperturbation.ParameterEpochs:            int64(epochs),
		outputperturbation.ParameterRegularization:    gamma,
		outputperturbation.ParameterStandardDeviation: sigma,
	})
	if err != nil {
		return 0, err
	}
	g, err := privacy.Epsilon(privacy.Exact{}, m, 1, delta)
	return g.Epsilon, err
}

// sweep returns observations of one regularisation with several noises. A noise of 0 has ε = ∞.
func (r *regression) sweep(ctx context.Context, gamma float64, sigmas []float64, seed uint64) ([]observation, error) {
	errs, err := r.trainer.Sweep(ctx, epochs, gamma, sigmas, r.runs, seed)
	if err != nil {
		return nil, err
	}
	out := make([]observation, len(sigmas))
	for i, sigma := range sigmas {
		mean, deviation := stat.MeanStdDev(errs[i], nil)
		out[i] = observation{gamma, sigma, math.Inf(1), mean, deviation / math.Sqrt(float64(r.runs))}
		if sigma == 0 {
			continue
		}
		if out[i].epsilon, err = epsilon(r.trainer, gamma, sigma); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// logistic measures the private logistic regression over a grid.
func (e *Experiment) logistic(ctx context.Context, p *progress) (*landscape, error) {
	parts, err := dataset.Load(ctx, dataset.NameAdult, dataset.Division{Split: dataset.SplitPublished, Generated: e.Generated}, dataset.Source{DataDir: e.DataDir})
	if err != nil {
		return nil, err
	}
	r, err := newRegression(parts, e.Runs, e.Seed)
	if err != nil {
		return nil, err
	}
	l := &landscape{
		name: "private logistic regression on Adult", subtitle: []string{"ε by the sensitivity 2/(γn), half of the published one; δ = 1e-6, replace-one adjacency"}, errorLabel: "classification error", runs: e.Runs, frontName: "front of the grid",
		published: "The paper's next point has a low ε and a low error, at the upper left of the front. The published code of this figure took ε, the error, γ and σ as they are; the paper finds its processes still learning where γ and σ are small, so where ε is large.",
		space: &space.Space{Parameters: []space.Parameter{
			{Name: "γ", Kind: space.Double, Min: 1e-4, Max: 1, Scale: space.Log},
			{Name: "σ", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
		}},
		objectives: []suggest.Objective{
			{Name: columnEpsilon, Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Floor: 1e-6},
			{Name: columnError, Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: float64(parts.Test.Rows)},
		},
		xs: geometric(1e-4, 1, e.Side), ys: geometric(0.1, 10, e.Side),
		notes: []string{
			fmt.Sprintf("Logistic regression with regularisation γ by projected SGD in batches of one record, %d epochs, and noise of standard deviation σ on the model (Wu et al. 2017, Algorithm 2). ε by the analytic Gaussian mechanism from the sensitivity 2/(γn), n = %d: δ = %g, replace-one adjacency. The paper takes 4/(γn), twice too much: its ε is in columns of its own.",
				epochs, parts.Train.Rows, delta),
			"γ alone decides the training, so that each of its models is measured with every σ, with noise drawn anew: errors in one column share their trainings.",
			"The published code stops trainings early, after 6 to 9 epochs. The proof of the sensitivity does not cover a stop that depends on the data, so trainings here have all ten epochs. The published heat maps are transposed and flipped: ε is largest at σ = 0.1, not at 10. Here the axes are right.",
		},
	}
	for _, c := range experiment.Constants(parts, trainer.Options{}) {
		l.levels = append(l.levels, plot.Level{Name: c.Name + ", ε = 0", Y: c.Values[experiment.MetricError]})
	}
	l.grid = make([][]observation, e.Side)
	var all []observation
	for j, gamma := range l.xs {
		column, err := r.sweep(ctx, gamma, l.ys, agent.TrialSeed(e.Seed, int64(j), 1))
		if err != nil {
			return nil, err
		}
		for i, o := range column {
			l.grid[i] = append(l.grid[i], o)
		}
		all = append(all, column...)
		p.step()
	}
	l.front = nonDominated(all)
	l.initial = func(rng *rand.Rand) (x, y float64) { return l.xs[rng.IntN(len(l.xs))], l.ys[rng.IntN(len(l.ys))] }
	l.measure = func(ctx context.Context, gamma, sigma float64) (observation, error) {
		i, j := slices.Index(l.ys, sigma), slices.Index(l.xs, gamma)
		if i >= 0 && j >= 0 {
			return l.grid[i][j], nil
		}
		o, err := r.sweep(ctx, gamma, []float64{sigma}, agent.TrialSeed(e.Seed, 0, 2))
		if err != nil {
			return observation{}, err
		}
		return o[0], nil
	}
	if l.checks, err = r.checks(ctx, p); err != nil {
		return nil, err
	}
	section, err := r.publishedFront(l.front)
	l.checks = append(l.checks, section)
	return l, err
}

// checks compares ε and errors with published numbers.
func (r *regression) checks(ctx context.Context, p *progress) ([]output.Section, error) {
	bounds := &output.Table{Columns: []string{"gamma", "sigma", columnEpsilon, "epsilon_by_published_sensitivity", "published_epsilon"}}
	for _, c := range publishedEpsilons {
		ours, err := epsilon(r.trainer, c.gamma, c.sigma)
		if err != nil {
			return nil, err
		}
		theirs, err := epsilon(r.published, c.gamma, c.sigma)
		if err != nil {
			return nil, err
		}
		bounds.Rows = append(bounds.Rows, []any{c.gamma, c.sigma, output.Bound(ours), output.Bound(theirs), c.epsilon})
	}
	errs := &output.Table{Columns: []string{"gamma", "sigma", columnError, columnStandardError, "published_code"}}
	for k, row := range publishedErrors {
		measured, err := r.sweep(ctx, row.gamma, publishedSigmas[:], agent.TrialSeed(r.seed, int64(k), 3))
		if err != nil {
			return nil, err
		}
		for i, o := range measured {
			errs.Rows = append(errs.Rows, []any{o.x, o.y, o.error, o.standardError, row.errors[i]})
		}
		p.step()
	}
	return []output.Section{
		{Name: "figure1_epsilon", Title: "Figure 1: ε of some configurations", Table: bounds, Notes: []string{
			"epsilon is by the sensitivity 2/(γn), which is proven and attained; epsilon_by_published_sensitivity by 4/(γn), and published_epsilon is computed by the published code from it; 144.05 is the maximum of the paper's scale of colours.",
		}},
		{Name: "figure1_error", Title: "Figure 1: errors of some configurations", Table: errs, Notes: []string{
			"published_code: means of 50 runs of the published code without its early stopping, whose standard errors are about as large. The paper prints no errors.",
		}},
	}, nil
}
