package analysis_test

import (
	"cmp"
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// fit fits a model for reading.
func fit(t testing.TB, p *suggest.Problem, h *suggest.History, seed uint64) *model.Model {
	t.Helper()
	return fitFor(t, p, h, seed, true)
}

// fitFor fits a model for reading, or one for searching, which predicts by one surrogate alone.
func fitFor(t testing.TB, p *suggest.Problem, h *suggest.History, seed uint64, reading bool) *model.Model {
	t.Helper()
	m, err := model.Fit(t.Context(), p, h, model.Options{Seed: seed, ForReading: reading, Workers: surrogate.Workers{Max: 1}})
	require.NoError(t, err)
	return m
}

func crossValidate(t *testing.T, m *model.Model) []analysis.Validation {
	t.Helper()
	all, err := analysis.CrossValidate(t.Context(), m)
	require.NoError(t, err)
	return all
}

// epochHistory has runs with checkpoints of random configurations.
func epochHistory(p *suggest.Problem, runs int, seed uint64) *suggest.History {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := new(suggest.History)
	for run := range runs {
		simulated.TrainEpochs(h, p.Space.Sample(rng), int64(run+1), rng)
	}
	return h
}

// A checkpoint is predicted as by a posterior that knows no step of its run.
func TestCrossValidateLeavesRunsOut(t *testing.T) {
	const tol = 1e-8
	p := simulated.EpochTraining()
	h := epochHistory(p, 12, 3)
	m := fitFor(t, p, h, 1, false)
	all := crossValidate(t, m)
	if len(all) != 1 || all[0].Objective != 1 || len(all[0].Points) != len(m.Configurations()) {
		t.Fatalf("%d objectives, %d points of %d configurations", len(all), len(all[0].Points), len(m.Configurations()))
	}
	gp := m.Surrogate(1)
	inside, squares := 0.0, 0.0
	var values []float64
	for _, point := range all[0].Points {
		c := m.Configurations()[point.Configuration]
		var rest surrogate.Observations
		for _, other := range m.Configurations() {
			e := h.Evaluations[other.Evaluations[0]]
			if e.Run == h.Evaluations[c.Evaluations[0]].Run {
				continue
			}
			rest.X = append(rest.X, p.Space.Encode(nil, e.Point))
			rest.Y = append(rest.Y, simulated.Logit(e.Values[1]))
			rest.Groups = append(rest.Groups, int(e.Run))
			rest.Positions = append(rest.Positions, math.Log(e.Point[1]))
		}
		without, err := surrogate.New(nil, gp.Hyperparameters(), rest)
		require.NoError(t, err)
		x := p.Space.Encode(nil, c.Point)
		mean, variance := without.Predict(x)
		half := 1.6448536269514722 * math.Sqrt(variance+without.Noise(x))
		want := suggest.Prediction{Median: simulated.Expit(mean), Lower: simulated.Expit(mean - half), Upper: simulated.Expit(mean + half)}
		got := point.Predicted
		if !scalar.EqualWithinAbs(got.Median, want.Median, tol) || !scalar.EqualWithinAbs(got.Lower, want.Lower, tol) || !scalar.EqualWithinAbs(got.Upper, want.Upper, tol) {
			t.Errorf("%v: %v, want %v", c.Point, got, want)
		}
		if point.Observed != c.Values[1] {
			t.Errorf("%v: observed %v, want %v", c.Point, point.Observed, c.Values[1])
		}
		if want.Lower <= point.Observed && point.Observed <= want.Upper {
			inside++
		}
		z := simulated.Logit(point.Observed)
		values = append(values, z)
		squares += (z - mean) * (z - mean)
	}
	n := float64(len(values))
	if got := all[0].Coverage; math.Abs(got-inside/n) > 1e-12 {
		t.Errorf("coverage %v, want %v", got, inside/n)
	}
	mean, total := 0.0, 0.0
	for _, z := range values {
		mean += z / n
	}
	for _, z := range values {
		total += (z - mean) * (z - mean)
	}
	if got := all[0].RSquared; math.Abs(got-(1-squares/total)) > tol {
		t.Errorf("R² %v, want %v", got, 1-squares/total)
	}
}

// line is the problem of one measured objective over one parameter.
func line(o suggest.Objective) *suggest.Problem {
	o.Name, o.Goal = "y", cmp.Or(o.Goal, suggest.Minimize)
	return &suggest.Problem{
		Space:      &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Max: 1}}},
		Objectives: []suggest.Objective{o},
	}
}

// Repetitions of a configuration are left out together, and the interval is that of their mean.
func TestCrossValidatePoolsRepetitions(t *testing.T) {
	const tol = 1e-8
	p := line(suggest.Objective{Reference: 10})
	rng := rand.New(rand.NewPCG(1, 1))
	h := new(suggest.History)
	for i := range 60 {
		x := float64(i%20) / 19
		if i >= 20 && x < 0.5 {
			continue // one run
		}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: space.Point{x}, Values: []float64{math.Sin(6*x) + 0.2*rng.NormFloat64()},
		})
	}
	h.Evaluations = append(h.Evaluations,
		suggest.Evaluation{Point: space.Point{0.31}, Values: []float64{math.Inf(1)}},
		suggest.Evaluation{Point: space.Point{0.32}, Values: []float64{math.NaN()}})
	m := fitFor(t, p, h, 1, false)
	v := crossValidate(t, m)[0]
	if len(v.Points) != 20 {
		t.Fatalf("%d points", len(v.Points))
	}
	gp := m.Surrogate(0)
	observed := m.Observed(0)
	for _, point := range v.Points {
		c := m.Configurations()[point.Configuration]
		var rest surrogate.Observations
		for i, k := range observed.Configurations {
			if k != point.Configuration {
				rest.X = append(rest.X, p.Space.Encode(nil, m.Configurations()[k].Point))
				rest.Y = append(rest.Y, observed.Values[i])
			}
		}
		without, err := surrogate.New(nil, gp.Hyperparameters(), rest)
		require.NoError(t, err)
		x := p.Space.Encode(nil, c.Point)
		mean, variance := without.Predict(x)
		half := 1.6448536269514722 * math.Sqrt(variance+without.Noise(x)/float64(c.Runs))
		want := suggest.Prediction{Median: mean, Lower: mean - half, Upper: mean + half}
		got := point.Predicted
		if !scalar.EqualWithinAbs(got.Median, want.Median, tol) || !scalar.EqualWithinAbs(got.Lower, want.Lower, tol) || !scalar.EqualWithinAbs(got.Upper, want.Upper, tol) {
			t.Errorf("%v of %d runs: %v, want %v", c.Point, c.Runs, got, want)
		}
	}
}

// Intervals cover nine of ten measurements, also of fractions and of repetitions with known
// noise, and the predictions explain a function that a model can follow.
func TestCrossValidateCovers(t *testing.T) {
	for name, tc := range map[string]struct {
		objective suggest.Objective
		evaluate  func(x float64, rng *rand.Rand) (value, se float64, runs int)
	}{
		"identity": {suggest.Objective{Reference: 10}, func(x float64, rng *rand.Rand) (float64, float64, int) {
			return math.Sin(6*x) + 0.1*rng.NormFloat64(), math.NaN(), 1
		}},
		"known noise": {suggest.Objective{Reference: 10, Goal: suggest.Maximize, Transform: suggest.Log}, func(x float64, rng *rand.Rand) (float64, float64, int) {
			return 3 + math.Sin(6*x) + 0.05*rng.NormFloat64(), 0.05, 4
		}},
		"fraction": {suggest.Objective{Reference: 1, Transform: suggest.Logit, SampleSize: 40}, func(x float64, rng *rand.Rand) (float64, float64, int) {
			k := 0
			for range 40 {
				if rng.Float64() < simulated.Expit(5*math.Sin(6*x)) {
					k++
				}
			}
			return float64(k) / 40, math.NaN(), 1
		}},
	} {
		p := line(tc.objective)
		var coverage []float64
		for seed := range uint64(5) {
			rng := rand.New(rand.NewPCG(seed, 2))
			h := new(suggest.History)
			for range 60 {
				x := rng.Float64()
				value, se, runs := tc.evaluate(x, rng)
				h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{x}, Values: []float64{value}, StdErrors: []float64{se}, Runs: runs})
			}
			v := crossValidate(t, fit(t, p, h, seed))[0]
			coverage = append(coverage, v.Coverage)
			if v.RSquared < 0.8 || v.RSquared > 1 {
				t.Errorf("%s, seed %d: R² %v", name, seed, v.RSquared)
			}
			covered := 0
			for _, q := range v.Points {
				if o := q.Predicted; !(o.Lower <= o.Median && o.Median <= o.Upper) {
					t.Errorf("%s: prediction %v", name, o)
				} else if o.Lower <= q.Observed && q.Observed <= o.Upper {
					covered++
				}
			}
			if got := float64(covered) / float64(len(v.Points)); math.Abs(got-v.Coverage) > 1e-9 {
				t.Errorf("%s, seed %d: coverage %v in own units, %v on the scale of the model", name, seed, got, v.Coverage)
			}
		}
		sum := 0.0
		for _, c := range coverage {
			sum += c / float64(len(coverage))
		}
		if sum < 0.84 || sum > 0.97 {
			t.Errorf("%s: coverage %v", name, coverage)
		}
		t.Logf("%s: coverage %.3f", name, sum)
	}
}

// Where there is little or nothing to compare, the shares are undefined, not wrong.
func TestCrossValidateLittle(t *testing.T) {
	p := line(suggest.Objective{Reference: 10})
	at := func(x float64) suggest.Evaluation {
		return suggest.Evaluation{Point: space.Point{x}, Values: []float64{2}}
	}
	v := crossValidate(t, fit(t, p, &suggest.History{Evaluations: []suggest.Evaluation{at(0.5)}}, 1))[0]
	if len(v.Points) != 1 || !math.IsNaN(v.RSquared) || v.Coverage != 1 {
		t.Errorf("one measurement: %+v", v)
	}
	v = crossValidate(t, fit(t, p, &suggest.History{Prior: []suggest.Evaluation{at(0.1), at(0.9)}}, 1))[0]
	if len(v.Points) != 0 || !math.IsNaN(v.RSquared) || !math.IsNaN(v.Coverage) {
		t.Errorf("measurements of an earlier study: %+v", v)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := analysis.CrossValidate(ctx, fit(t, p, &suggest.History{Evaluations: []suggest.Evaluation{at(0.5)}}, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// A run's checkpoints say more of each other than other runs do: left in, they would make the
// model look better than it is for a new run.
func TestCheckpointsWouldGiveTheAnswerAway(t *testing.T) {
	p := simulated.EpochTraining()
	m := fit(t, p, epochHistory(p, 10, 5), 1)
	v := crossValidate(t, m)[0]
	single := make([][]int, len(m.Observed(1).Values))
	for i := range single {
		single[i] = []int{i}
	}
	left, err := surrogate.LeaveOut(t.Context(), m.Surrogate(1), single)
	require.NoError(t, err)
	var own []float64
	for _, l := range left {
		own = append(own, math.Abs(l.Residuals[0]))
	}
	var honest []float64
	for _, q := range v.Points {
		honest = append(honest, math.Abs(simulated.Logit(q.Observed)-simulated.Logit(q.Predicted.Median)))
	}
	slices.Sort(own)
	slices.Sort(honest)
	if a, b := own[len(own)/2], honest[len(honest)/2]; !(b > 1.5*a) {
		t.Errorf("median error %v without the run, %v with its other checkpoints", b, a)
	}
}

// Equal measurements have no variance to explain, whatever the rounding error of their mean.
func TestCrossValidateOfEqualMeasurements(t *testing.T) {
	p := simulated.EpochTraining()
	for _, v := range []float64{0.1, 0.3, 0.5, 0.7} {
		h := epochHistory(p, 7, 3)
		for i := range h.Evaluations {
			h.Evaluations[i].Values[1] = v
		}
		for _, c := range crossValidate(t, fit(t, p, h, 1)) {
			if !math.IsNaN(c.RSquared) || c.Coverage != 1 {
				t.Errorf("measurements of %g: R² %g, coverage %g", v, c.RSquared, c.Coverage)
			}
		}
	}
}
