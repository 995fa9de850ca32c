package model_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/dpsgd"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// training is the error of DP-SGD as a function of its five parameters, with features or without.
func training(records float64, features bool, mean *suggest.FeatureMean) *suggest.Problem {
	p := &suggest.Problem{
		Space: &space.Space{},
		Objectives: []suggest.Objective{
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1, SampleSize: records},
		},
	}
	for _, b := range []struct {
		name     string
		min, max float64
	}{{"rate", 1e-4, 1}, {"norm", 0.1, 4}, {"noise", 0.1, 40}, {"lot", 4, 4096}, {"steps", 1, 1e6}} {
		p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: b.name, Kind: space.Double, Min: b.min, Max: b.max, Scale: space.Log})
	}
	if features {
		all := []int{0, 1, 2, 3, 4}
		p.Features = dpsgd.Features(func(q space.Point) dpsgd.Run {
			return dpsgd.Run{LearningRate: q[0], ClippingNorm: q[1], Noise: q[2], LotSize: q[3], Steps: q[4]}
		}, false, all, all)
		p.Features.Mean = mean
	}
	return p
}

// prediction returns the root mean square error of the predicted logit after a number of runs on a surface, a mean over
// draws of these runs.
func predictionError(t *testing.T, surface string, n int, features bool, mean *suggest.FeatureMean) float64 {
	t.Helper()
	var runs []dpsgd.PublicRun
	for _, r := range dpsgd.PublicRuns() {
		if r.Surface == surface {
			runs = append(runs, r)
		}
	}
	logit := func(r *dpsgd.PublicRun, v float64) float64 {
		return math.Log((v*r.Records + 0.5) / ((1-v)*r.Records + 0.5))
	}
	point := func(r *dpsgd.PublicRun) space.Point {
		return space.Point{r.Run.LearningRate, r.Run.ClippingNorm, r.Run.Noise, r.Run.LotSize, r.Run.Steps}
	}
	const draws = 10
	total := 0.0
	for draw := range uint64(draws) {
		order := rand.New(rand.NewPCG(draw, 1)).Perm(len(runs))
		h := &suggest.History{}
		for _, i := range order[:n] {
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: point(&runs[i]), Values: []float64{runs[i].Error}})
		}
		m, err := model.Fit(t.Context(), training(runs[0].Records, features, mean), h, model.Options{Seed: 1})
		require.NoError(t, err)
		sum := 0.0
		for _, i := range order[n:] {
			d := logit(&runs[i], m.Predict(point(&runs[i]))[0].Median) - logit(&runs[i], runs[i].Error)
			sum += d * d
		}
		total += math.Sqrt(sum/float64(len(order)-n)) / draws
	}
	return total
}

// In the coordinates of DP-SGD sixteen runs predict better than in its parameters: by a quarter on average.
func TestFeaturesLearnFaster(t *testing.T) {
	gain := 0.0
	surfaces := []string{"adult-logistic-sgd", "mnist-softmax-sgd", "digits-softmax-sgd", "breast-cancer-logistic-sgd"}
	for _, s := range surfaces {
		raw, featured := predictionError(t, s, 16, false, nil), predictionError(t, s, 16, true, nil)
		t.Logf("%s: %.3f in the parameters, %.3f in features", s, raw, featured)
		gain += math.Log(featured/raw) / float64(len(surfaces))
	}
	if !(math.Exp(gain) < 0.75) {
		t.Errorf("errors of %.2f times those without features", math.Exp(gain))
	}
}

// What runs on other data say helps where there are few runs, and does not mislead for long: even the opposite of it
// costs little once there are sixteen.
func TestPublicMeanHelps(t *testing.T) {
	for surface, own := range map[string]string{"adult-logistic-sgd": "adult", "digits-softmax-sgd": "digits"} {
		mean := dpsgd.PublicMean(false, own)
		for _, n := range []int{3, 7} {
			alone, with := predictionError(t, surface, n, true, nil), predictionError(t, surface, n, true, mean)
			t.Logf("%s, %d runs: %.3f alone, %.3f with public runs", surface, n, alone, with)
			if !(with < alone) {
				t.Errorf("%s, %d runs: %.3f alone, %.3f with public runs", surface, n, alone, with)
			}
		}
		wrong := *mean
		wrong.Values = nil
		for _, v := range mean.Values {
			wrong.Values = append(wrong.Values, -v)
		}
		alone, with := predictionError(t, surface, 16, true, nil), predictionError(t, surface, 16, true, &wrong)
		t.Logf("%s, 16 runs: %.3f alone, %.3f with the opposite of public runs", surface, alone, with)
		if !(with < 1.15*alone) {
			t.Errorf("%s, 16 runs: %.3f alone, %.3f with the opposite of public runs", surface, alone, with)
		}
	}
}

// A maximised fraction is one of correct answers: the same measurements give the same model.
func TestPublicMeanOfAccuracy(t *testing.T) {
	mean := dpsgd.PublicMean(false)
	errors, accuracy := training(1000, true, mean), training(1000, true, mean)
	accuracy.Objectives[0].Goal, accuracy.Objectives[0].Reference = suggest.Maximize, 0
	h, g := &suggest.History{}, &suggest.History{}
	for i, q := range []space.Point{{0.1, 1, 2, 64, 500}, {0.01, 1, 4, 256, 2000}} {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: q, Values: []float64{0.2 + 0.1*float64(i)}})
		g.Evaluations = append(g.Evaluations, suggest.Evaluation{Point: q, Values: []float64{0.8 - 0.1*float64(i)}})
	}
	at := space.Point{0.5, 0.5, 1, 128, 5000}
	var medians [2]float64
	for k, c := range []struct {
		p *suggest.Problem
		h *suggest.History
	}{{errors, h}, {accuracy, g}} {
		m, err := model.Fit(t.Context(), c.p, c.h, model.Options{Seed: 1})
		require.NoError(t, err)
		medians[k] = m.Predict(at)[0].Median
	}
	if math.Abs(medians[0]+medians[1]-1) > 1e-9 {
		t.Errorf("error %g, accuracy %g", medians[0], medians[1])
	}
}

// A study without any value of its own has no model, whatever public runs say: their level is not its own.
func TestPublicMeanIsNoModel(t *testing.T) {
	if _, err := model.Fit(t.Context(), training(1000, true, dpsgd.PublicMean(false)), &suggest.History{}, model.Options{}); err == nil {
		t.Error("a model without data")
	}
}
