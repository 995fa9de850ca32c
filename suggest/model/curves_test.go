package model_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// curveEpochs are the checkpoints of the runs in these tests.
var curveEpochs = []float64{1, 2, 3, 4, 6, 8, 12, 16, 24}

// curveStudy is a study of DP-SGD with checkpoints. Its ε is an approximation by zero-concentrated
// differential privacy, which is all that these tests need.
func curveStudy(o suggest.Objective, records float64, features bool) *suggest.Problem {
	epsilon := func(q space.Point) float64 {
		rate := q[3] / records
		rho := q[4] / rate * 2 * rate * rate / (q[2] * q[2])
		return rho + 2*math.Sqrt(rho*math.Log(1e5))
	}
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "lr", Kind: space.Double, Min: 0.005, Max: 1, Scale: space.Log},
			{Name: "clip", Kind: space.Double, Min: 0.1, Max: 4, Scale: space.Log},
			{Name: "noise", Kind: space.Double, Min: 0.1, Max: 16, Scale: space.Log},
			{Name: "lot", Kind: space.Integer, Min: 16, Max: 256, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 24, Scale: space.Log},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: epsilon},
			o,
		},
		Checkpoint: "epochs",
	}
	if features {
		all := []int{0, 1, 2, 3, 4}
		p.Features = dpsgd.Features(func(q space.Point) dpsgd.Run {
			return dpsgd.Run{LearningRate: q[0], ClippingNorm: q[1], Noise: 2 * q[2], LotSize: q[3], Steps: q[4] * records / q[3]}
		}, false, all, all)
	}
	return p
}

// addRun adds a run with the given values at curveEpochs to h.
func addRun(h *suggest.History, p *suggest.Problem, q space.Point, values []float64) {
	run := int64(h.Trials() + 1)
	for i, v := range values {
		at := q.Clone()
		at[4] = curveEpochs[i]
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: at, Values: []float64{p.Objectives[0].Known(at), v}, Run: run})
	}
}

// hypervolumes returns the hypervolume of what was observed, and of the front of a model.
func hypervolumes(p *suggest.Problem, h *suggest.History, m *model.Model) (observed, claimed float64) {
	var costs [][]float64
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		costs = append(costs, []float64{e.Values[0], p.Objectives[1].Cost(e.Values[1])})
	}
	return pareto.NewFront(costs, p.ReferenceCosts()).Hypervolume(), m.Front(nil).Hypervolume()
}

// The noise that the checkpoints of a run share does not explain the signal away: a loss that one of four runs
// brings from 100 down to 2 is reported as that, on every scale, for both goals, in parameters and in features.
func TestSharedNoiseDoesNotExplainTheSignal(t *testing.T) {
	runs := []struct {
		q      space.Point
		values []float64
	}{
		{space.Point{.026, .438, 2.94, 58, 24}, []float64{100, 99.9, 99.6, 99.4, 99.1, 98.6, 97.7, 96.8, 95.0}},
		{space.Point{.0186, .319, 6.26, 91, 24}, []float64{100, 100, 100, 99.9, 99.7, 99.6, 99.3, 99.0, 98.4}},
		{space.Point{.4375, .847, 1.68, 199, 24}, []float64{98.3, 96.2, 94.3, 92.1, 88.2, 84.5, 77.1, 70.1, 56.7}},
		{space.Point{.5887, 1.469, 8.62, 60, 24}, []float64{89.5, 65, 57.5, 50.6, 33, 18.2, 4.92, 3.14, 1.97}},
	}
	for _, tc := range []struct {
		o    suggest.Objective
		from func(mse float64) float64
	}{
		{suggest.Objective{Name: "mse", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 100}, func(v float64) float64 { return v }},
		{suggest.Objective{Name: "mse", Goal: suggest.Minimize, Reference: 100}, func(v float64) float64 { return v }},
		{suggest.Objective{Name: "r2", Goal: suggest.Maximize, Reference: 0}, func(v float64) float64 { return 1 - v/100 }},
		{suggest.Objective{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1}, func(v float64) float64 { return v / 100 }},
	} {
		for _, features := range []bool{false, true} {
			p := curveStudy(tc.o, 2000, features)
			h := new(suggest.History)
			for _, r := range runs {
				var values []float64
				for _, v := range r.values {
					values = append(values, tc.from(v))
				}
				addRun(h, p, r.q, values)
			}
			for _, reading := range []bool{false, true} {
				for seed := range uint64(10) {
					m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: reading, Seed: seed})
					require.NoError(t, err)
					if observed, claimed := hypervolumes(p, h, m); !(math.Abs(claimed/observed-1) < 0.1) {
						t.Errorf("%s, %v, features %t, reading %t, seed %d: observed %.4g, claimed %.4g",
							tc.o.Name, tc.o.Transform, features, reading, seed, observed, claimed)
					}
				}
			}
		}
	}
}

// A parameter that shifts whole curves is not taken for luck of their runs.
func TestRunNoiseDoesNotExplainAParameter(t *testing.T) {
	for _, o := range []suggest.Objective{
		{Name: "error", Goal: suggest.Minimize, Reference: 1},
		{Name: "error", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 1},
		{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
	} {
		for _, reading := range []bool{false, true} {
			p := simulated.RateTraining()
			p.Objectives[1] = o
			p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "w", Kind: space.Double, Max: 1})
			truth := func(q space.Point) float64 { return 0.7 - 0.1*math.Log(1+q[0]*q[1]) + 0.5*(q[2]-0.3)*(q[2]-0.3) }
			h := new(suggest.History)
			for i := range 24 {
				for _, step := range []float64{1, 4, 16, 64} {
					q := space.Point{0.05 + 0.9*float64(i%5)/4, step, float64(i%7) / 6}
					h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{q[0] * step, truth(q)}, Run: int64(i + 1)})
				}
			}
			m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: reading})
			require.NoError(t, err)
			var sum, effect float64
			for k := range 20 {
				q := space.Point{0.05 + 0.9*float64(k)/19, 64, float64(k*7%20) / 19}
				d := m.Predict(q)[1].Median - truth(q)
				sum += d * d
				effect += 0.25 * math.Pow(q[2]-0.3, 4)
			}
			if share := math.Sqrt(sum / effect); !(share < 0.2) {
				t.Errorf("%v, reading %t: predictions are off by %.2f of the effect of w", o.Transform, reading, share)
			}
		}
	}
}

// Intervals hold the noise that a whole run shares, whether its size is known or nothing says that there is any.
func TestIntervalsHoldSharedNoise(t *testing.T) {
	for _, tc := range []struct {
		o     suggest.Objective
		noise float64 // relative
		rate  float64
		told  bool
	}{
		{suggest.Objective{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1}, 0.02, 1, false},
		{suggest.Objective{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1}, 0.02, 5, true},
		{suggest.Objective{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: 50_000}, 0.02, 5, false},
		{suggest.Objective{Name: "loss", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 1}, 0.05, 5, false},
		{suggest.Objective{Name: "loss", Goal: suggest.Minimize, Reference: 1}, 0.01, 5, false},
	} {
		var front, fresh coverage
		for seed := range uint64(10) {
			rng := rand.New(rand.NewPCG(seed, 11))
			p := curveStudy(tc.o, 2000, false)
			h := new(suggest.History)
			truth := func(q space.Point) float64 { return .1 + .6*math.Exp(-tc.rate*q[0]*q[4]) }
			for range 15 {
				q := p.Space.Sample(rng)
				factor := math.Exp(tc.noise * rng.NormFloat64())
				var values []float64
				for _, epoch := range curveEpochs {
					q[4] = epoch
					values = append(values, truth(q)*factor)
				}
				addRun(h, p, q, values)
			}
			for i := range h.Evaluations {
				if e := &h.Evaluations[i]; tc.told {
					e.StdErrors = []float64{0, tc.noise * e.Values[1]}
				}
			}
			m, err := model.Fit(t.Context(), p, h, model.Options{ForReading: true, Seed: seed})
			require.NoError(t, err)
			for _, e := range m.Estimates() {
				if e.OnFront {
					front.count([]float64{truth(e.Point)}, e.Predictions[1:])
				}
			}
			for range 40 {
				q := p.Space.Sample(rng)
				fresh.count([]float64{truth(q)}, m.Predict(q)[1:])
			}
		}
		name := fmt.Sprintf("%v, noise %g, rate %g, told %t, %g records", tc.o.Transform, tc.noise, tc.rate, tc.told, tc.o.SampleSize)
		t.Logf("%s: %.2f of %g on the front, %.2f untried", name, front.share(), front.all, fresh.share())
		// Each study counts about once, since the intervals of its front are right or wrong together.
		if front.share() < 0.7 {
			t.Errorf("%s: %.2f of the intervals on the front cover", name, front.share())
		}
	}
}
