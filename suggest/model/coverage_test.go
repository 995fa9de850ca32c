package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/problems"
)

// coverage is the share of intervals that hold the exact values.
type coverage struct{ inside, all float64 }

func (c *coverage) count(values []float64, predictions []suggest.Prediction) {
	for j, p := range predictions {
		c.all++
		if v := values[j]; p.Lower <= v && v <= p.Upper {
			c.inside++
		}
	}
}

func (c *coverage) share() float64 { return c.inside / c.all }

// covered fits models for reading to n random configurations of a problem, under several seeds,
// and returns the coverage on the front of the medians and at configurations that were not tried.
func covered(t *testing.T, p *problems.Problem, n int, told bool) (front, fresh coverage) {
	t.Helper()
	for seed := range uint64(5) {
		rng := rand.New(rand.NewPCG(seed, 9))
		h := new(suggest.History)
		for range n {
			e := p.Observe(p.Space.Sample(rng), rng)
			if !told {
				e.StdErrors = nil
			}
			h.Evaluations = append(h.Evaluations, e)
		}
		m, err := model.Fit(t.Context(), &p.Problem, h, model.Options{ForReading: true, Seed: seed})
		require.NoError(t, err)
		for _, e := range m.Estimates() {
			if e.OnFront {
				front.count(p.Evaluate(e.Point), e.Predictions)
			}
		}
		for range 40 {
			q := p.Space.Sample(rng)
			fresh.count(p.Evaluate(q), m.Predict(q))
		}
	}
	return front, fresh
}

// On average over problems, 90 % intervals hold the exact values about as often as they say,
// neither less nor more: at configurations that were not tried, and with noise also on the
// front, which is chosen for its values. (Without noise, what was measured is known.) 0.82 and
// 0.97 leave room for problems that are smoother or rougher than the model believes.
func TestIntervalsCover(t *testing.T) {
	const lower, upper = 0.82, 0.97
	names := []string{"branin_currin", "zdt1", "zdt3", "dtlz2", "vehicle_safety", "dtlz7", "poloni"}
	for _, tc := range []struct {
		name  string
		noise float64
		told  bool
	}{{"no noise, told", 0, true}, {"no noise, not told", 0, false}, {"noise, told", 0.2, true}, {"noise, not told", 0.2, false}} {
		for _, n := range []int{15, 40} {
			var front, fresh float64
			for _, name := range names {
				p, ok := problems.ByName(name)
				if !ok {
					t.Fatal(name)
				}
				if tc.noise > 0 {
					p = p.WithNoise(tc.noise)
				}
				onFront, untried := covered(t, p, n, tc.told)
				t.Logf("%s, %d of %s: %.2f on the front, %.2f untried", tc.name, n, name, onFront.share(), untried.share())
				front += onFront.share() / float64(len(names))
				fresh += untried.share() / float64(len(names))
			}
			t.Logf("%s, %d: %.3f on the front, %.3f untried", tc.name, n, front, fresh)
			if !(lower <= fresh && fresh <= upper) {
				t.Errorf("%s, %d configurations: %.3f of the intervals cover where nothing was tried", tc.name, n, fresh)
			}
			if tc.noise > 0 && !(lower <= front && front <= upper) {
				t.Errorf("%s, %d configurations: %.3f of the intervals cover on the front", tc.name, n, front)
			}
		}
	}
}

// The variance is on average over the hyperparameters, about the mean of the most likely ones, and
// points together have what they have one by one. A model for searching has the surrogate's.
func TestPosterior(t *testing.T) {
	p, _ := problems.ByName("branin_currin")
	p = p.WithNoise(0.2)
	rng := rand.New(rand.NewPCG(3, 9))
	h := new(suggest.History)
	for range 12 {
		h.Evaluations = append(h.Evaluations, p.Observe(p.Space.Sample(rng), rng))
	}
	var x [][]float64
	for range 5 {
		x = append(x, []float64{rng.Float64(), rng.Float64()})
	}
	means, variances := make([]float64, len(x)), make([]float64, len(x))
	for _, reading := range []bool{false, true} {
		m, err := model.Fit(t.Context(), &p.Problem, h, model.Options{ForReading: reading})
		require.NoError(t, err)
		for j := range p.Objectives {
			m.PosteriorBatch(j, means, variances, x)
			larger := 0
			for i := range x {
				mean, variance := m.Posterior(j, x[i])
				if math.Abs(mean-means[i]) > 1e-9*math.Abs(mean) || math.Abs(variance-variances[i]) > 1e-9*variance {
					t.Errorf("%v, %v one by one, %v, %v together", mean, variance, means[i], variances[i])
				}
				surrogateMean, least := m.Surrogate(j).Predict(x[i])
				if mean != surrogateMean || !reading && variance != least {
					t.Errorf("reading %t: %v, %v with the surrogate's %v, %v", reading, mean, variance, surrogateMean, least)
				}
				if variance > least {
					larger++
				}
			}
			if reading && larger < len(x)-1 {
				t.Errorf("the variance of metric %d is larger at %d of %d points", j, larger, len(x))
			}
		}
	}
}

// With checkpoints a report averages two explanations, of which the surrogate is one. A batch of points gives the same as
// single points.
func TestPosteriorOfCurves(t *testing.T) {
	p := simulated.EpochTraining()
	rng, h := rand.New(rand.NewPCG(5, 2)), new(suggest.History)
	for run := range int64(6) {
		simulated.TrainEpochs(h, p.Space.Sample(rng), run+1, rng)
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true})
	require.NoError(t, err)
	j := len(p.Objectives) - 1
	var x [][]float64
	for range 20 {
		x = append(x, p.Inputs(nil, p.Space.Sample(rng)))
	}
	means, variances := make([]float64, len(x)), make([]float64, len(x))
	m.PosteriorBatch(j, means, variances, x)
	for i := range x {
		mean, variance := m.Posterior(j, x[i])
		if mean != means[i] || mean != m.Mean(j, x[i]) || math.Abs(variance-variances[i]) > 1e-9*variance {
			t.Errorf("%v, %v one by one, %v, %v together", mean, variance, means[i], variances[i])
		}
		// The variance holds how far the explanations are apart.
		if of, _ := m.Surrogate(j).Predict(x[i]); mean == of || (mean-of)*(mean-of) > variance {
			t.Errorf("a mean of %v with a variance of %v, and %v by the surrogate", mean, variance, of)
		}
	}
}
