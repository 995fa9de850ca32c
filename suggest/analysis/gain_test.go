package analysis_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

func forecast(t testing.TB, m *model.Model, pending, next []analysis.Run, seed uint64) analysis.Forecast {
	t.Helper()
	f, err := analysis.ForecastGain(t.Context(), m, pending, next, seed)
	require.NoError(t, err)
	return f
}

// randomRuns returns runs of random configurations.
func randomRuns(p *suggest.Problem, h *suggest.History, n int, rng *rand.Rand) []analysis.Run {
	var runs []analysis.Run
	for range n {
		runs = append(runs, analysis.Checkpoints(p, h.Evaluations, p.Space.Sample(rng)))
	}
	return runs
}

// naiveGains draws outcomes one after the other, each from the posterior that knows the ones
// before it, and reads the front of every posterior. It returns the gains by run and draw.
func naiveGains(t *testing.T, m *model.Model, pending, next []analysis.Run, draws int, rng *rand.Rand) [][]float64 {
	t.Helper()
	p := m.Problem()
	gains := make([][]float64, len(next))
	for range draws {
		gps := make([]*surrogate.GP, len(p.Objectives))
		for j := range gps {
			gps[j] = m.Surrogate(j)
		}
		var points []space.Point
		for _, c := range m.Configurations() {
			points = append(points, c.Point)
		}
		volume := func() float64 {
			costs := p.ConstantCosts()
			for _, q := range points {
				cost := make([]float64, len(gps))
				for j, gp := range gps {
					if gp == nil {
						cost[j] = p.Objectives[j].KnownCost(q)
					} else {
						mean, _ := gp.Predict(p.Space.Encode(nil, q))
						cost[j] = m.Distribution(j, mean, 0).Median()
					}
				}
				costs = append(costs, cost)
			}
			return pareto.Hypervolume(costs, p.ReferenceCosts())
		}
		before := volume()
		for k, run := range slices.Concat(pending, next) {
			for j, gp := range gps {
				if gp != nil {
					gps[j] = outcome(t, m, gp, run, k, rng)
				}
			}
			points = append(points, run...)
			switch {
			case k < len(pending)-1:
			case k == len(pending)-1:
				before = volume()
			default:
				gains[k-len(pending)] = append(gains[k-len(pending)], volume()-before)
			}
		}
	}
	return gains
}

// outcome returns a surrogate that knows an outcome of a run drawn from itself. The noise that
// the checkpoints of a run share is drawn from its definition.
func outcome(t *testing.T, m *model.Model, gp *surrogate.GP, run analysis.Run, k int, rng *rand.Rand) *surrogate.GP {
	t.Helper()
	p := m.Problem()
	c := p.CheckpointIndex()
	var obs surrogate.Observations
	var normals []float64
	for _, q := range run {
		obs.X = append(obs.X, p.Space.Encode(nil, q))
		normals = append(normals, rng.NormFloat64())
		obs.Runs = append(obs.Runs, m.RunsPerTrial())
		if c >= 0 {
			obs.Groups, obs.Positions = append(obs.Groups, 1000+k), append(obs.Positions, math.Log(q[c]))
		}
	}
	drawn, err := gp.Condition(obs.X, [][]float64{normals})
	require.NoError(t, err)
	decay, shared := gp.Hyperparameters().NoiseDecay, 0.0
	for i, f := range drawn.BaseValues(0) {
		if i == 0 || c < 0 {
			shared = rng.NormFloat64()
		} else { // an autoregressive process
			r := math.Exp(-(obs.Positions[i] - obs.Positions[i-1]) / decay)
			shared = r*shared + math.Sqrt(1-r*r)*rng.NormFloat64()
		}
		obs.Y = append(obs.Y, f+shared*math.Sqrt(gp.Noise(obs.X[i])/m.RunsPerTrial()))
	}
	next, err := gp.Extend(obs)
	require.NoError(t, err)
	return next
}

// The forecast is the mean over outcomes of which the model learns, drawn step by step.
func TestForecastMatchesSimulation(t *testing.T) {
	curve := simulated.Curve()
	epochs := simulated.EpochTraining()
	level := simulated.Curve()
	level.Constants = [][]float64{{0, 0.25}} // beats the curve up to ε = 1
	branin, _ := problems.ByName("branin_currin")
	plain := new(suggest.History)
	rng := rand.New(rand.NewPCG(7, 7))
	for range 6 { // few: where a gain is a rare event, its mean over the draws is not normal
		q := branin.Space.Sample(rng)
		e := branin.Observe(q, rng)
		e.Values[0] += 10 * rng.NormFloat64()
		e.Values[1] += rng.NormFloat64()
		e.StdErrors = nil
		plain.Evaluations = append(plain.Evaluations, e)
	}
	for i, tc := range []struct {
		name string
		p    *suggest.Problem
		h    *suggest.History
	}{
		{"one measured", curve, simulated.NoisyCurve(8, 1, 0.02, 1)},
		{"beside a constant", level, simulated.NoisyCurve(8, 1, 0.02, 1)},
		{"checkpoints", epochs, epochHistory(epochs, 5, 1)},
		{"two measured", &branin.Problem, plain},
	} {
		name, rng := tc.name, rand.New(rand.NewPCG(7, uint64(i)))
		m := fit(t, tc.p, tc.h, 1)
		for _, pending := range []int{0, 2} {
			runs := randomRuns(tc.p, tc.h, pending+3, rng)
			f := forecast(t, m, runs[:pending], runs[pending:], 5)
			if want := m.Front(nil).Hypervolume(); math.Abs(f.Hypervolume-want) > 1e-9*want {
				t.Errorf("%s: hypervolume %v, want %v", name, f.Hypervolume, want)
			}
			const draws = 1500
			simulated := naiveGains(t, m, runs[:pending], runs[pending:], draws, rng)
			for k, g := range f.Gains {
				want, deviation := stat.MeanStdDev(simulated[k], nil)
				tolerance := 4 * deviation * math.Sqrt(1.0/draws+1.0/512)
				if math.Abs(g.Mean-want) > tolerance {
					t.Errorf("%s, %d pending, %d runs: gain %v, simulated %v ± %v", name, pending, k+1, g.Mean, want, tolerance)
				}
			}
			if again := forecast(t, m, runs[:pending], runs[pending:], 5); !cmp.Equal(f, again) {
				t.Errorf("%s: %v, then %v", name, f, again)
			}
		}
	}
}

// A search that really goes on gains at least what was forecast, on average, and as much as the
// interval says in most cases.
func TestForecastHolds(t *testing.T) {
	p, _ := problems.ByName("branin_currin")
	expected, gained, covered := goOn(t, &p.Problem, func(h *suggest.History, q space.Point, rng *rand.Rand) {
		h.Evaluations = append(h.Evaluations, p.Observe(q, rng))
	})
	if a, b := stat.Mean(expected, nil), stat.Mean(gained, nil); a > b || covered < 16 {
		t.Errorf("%v expected, %v gained, %d of %d within the interval", a, b, covered, len(gained))
	}
}

// goOn searches with 20 seeds: 20 runs, a forecast, and 10 more runs. It returns what was expected
// and what was gained, and how many gains were within their intervals.
func goOn(t *testing.T, p *suggest.Problem, evaluate func(*suggest.History, space.Point, *rand.Rand)) (expected, gained []float64, covered int) {
	t.Helper()
	const seeds, start, more = 20, 20, 10
	for seed := range uint64(seeds) {
		rng := rand.New(rand.NewPCG(seed, 1))
		d, _ := designers.ByName("default", designers.Options{Workers: surrogate.Workers{Max: 1}})
		h := new(suggest.History)
		ask := func(count int) []suggest.Suggestion {
			return simulated.Ask(t, d, p, h, suggest.Request{Count: count, Seed: seed, Number: int64(h.Trials() + 1)})
		}
		for range start {
			evaluate(h, ask(1)[0].Point, rng)
		}
		var next []analysis.Run
		for _, s := range ask(more) {
			next = append(next, analysis.Checkpoints(p, h.Evaluations, s.Point))
		}
		f := forecast(t, fit(t, p, h, seed), nil, next, seed)
		for range more {
			evaluate(h, ask(1)[0].Point, rng)
		}
		gain := fit(t, p, h, seed).Front(nil).Hypervolume() - f.Hypervolume
		last := f.Gains[more-1]
		expected, gained = append(expected, last.Mean), append(gained, gain)
		if last.Lower <= gain && gain <= last.Upper {
			covered++
		}
	}
	t.Logf("%.4g expected, %.4g gained, %d of %d within the interval", stat.Mean(expected, nil), stat.Mean(gained, nil), covered, seeds)
	return expected, gained, covered
}

func TestForecastCosts(t *testing.T) {
	p := simulated.EpochTraining()
	h := epochHistory(p, 8, 2) // a run costs its epochs
	runs := []analysis.Run{
		analysis.Checkpoints(p, h.Evaluations, space.Point{0.1, 10, 0.5}),
		analysis.Checkpoints(p, h.Evaluations, space.Point{0.1, 50, 0.5}),
	}
	costs := func(of suggest.Cost, h *suggest.History) []float64 {
		q := *p
		q.Cost = of
		f := forecast(t, fit(t, &q, h, 1), nil, runs, 1)
		return []float64{f.Gains[0].Cost, f.Gains[1].Cost}
	}
	if got := costs(suggest.CostRuns, h); !slices.Equal(got, []float64{1, 2}) {
		t.Errorf("runs cost %v", got)
	}
	if got := costs(suggest.CostCheckpoint, h); !slices.Equal(got, []float64{10, 60}) {
		t.Errorf("epochs cost %v", got)
	}
	if got := costs(suggest.CostMeasured, h); math.Abs(got[0]-10) > 4 || math.Abs(got[1]-60) > 15 {
		t.Errorf("measured costs %v", got)
	}
	free := new(suggest.History)
	for _, e := range h.Evaluations {
		e.Cost = 0
		free.Evaluations = append(free.Evaluations, e)
	}
	if got := costs(suggest.CostMeasured, free); !math.IsNaN(got[0]) || !math.IsNaN(got[1]) {
		t.Errorf("unknown costs %v", got)
	}
}

func TestCheckpointsOfARun(t *testing.T) {
	p := simulated.EpochTraining()
	at := func(run int64, steps ...float64) (out []suggest.Evaluation) {
		for _, s := range steps {
			out = append(out, suggest.Evaluation{Point: space.Point{0.1, s, 0.5}, Run: run})
		}
		return out
	}
	steps := func(evaluations []suggest.Evaluation, last float64) (steps []float64) {
		for _, q := range analysis.Checkpoints(p, evaluations, space.Point{0.2, last, 0.7}) {
			if q[0] != 0.2 || q[2] != 0.7 {
				t.Errorf("checkpoint %v", q)
			}
			steps = append(steps, q[1])
		}
		return steps
	}
	every := make([]float64, 64)
	for i := range every {
		every[i] = float64(i + 1)
	}
	for _, tt := range []struct {
		evaluations []suggest.Evaluation
		last        float64
		want        []float64
	}{
		{nil, 64, []float64{64}},
		{slices.Concat(at(1, 64), at(2, 32), at(3, 2, 4, 8)), 64, []float64{64}},
		{at(1, 4, 16, 64), 64, []float64{4, 16, 64}},
		{at(1, 4, 16, 64), 3, []float64{3}},
		{at(1, every...), 32, []float64{1, 2, 4, 8, 16, 32}},
		{at(1, every...), 3, []float64{1, 2, 3}},
	} {
		if got := steps(tt.evaluations, tt.last); !slices.Equal(got, tt.want) {
			t.Errorf("up to %v: %v, want %v", tt.last, got, tt.want)
		}
	}
}

// A configuration out of a measured constraint's bounds gains nothing.
func TestForecastUnderConstraints(t *testing.T) {
	p := simulated.Curve()
	p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 2.5}}
	h := simulated.NoisyCurve(8, 1, 0.005, 1)
	for i := range h.Evaluations {
		e := &h.Evaluations[i]
		e.Values = append(e.Values, e.Point[0])
	}
	m := fit(t, p, h, 1)
	gain := func(x float64) analysis.Gain {
		return forecast(t, m, nil, []analysis.Run{{space.Point{x}}}, 1).Gains[0]
	}
	if in, out := gain(1.1), gain(3.9); !(in.Mean > 0.01 && in.Lower > 0) || math.Abs(out.Mean) > 0.001 || out.Probability > 0.05 {
		t.Errorf("gain %+v within the bounds, %+v out of them", in, out)
	}
}

func TestForecastFails(t *testing.T) {
	p := simulated.Curve()
	h := simulated.NoisyCurve(8, 1, 0.02, 1)
	m := fit(t, p, h, 1)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := analysis.ForecastGain(ctx, m, nil, []analysis.Run{{space.Point{1}}}, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	if f := forecast(t, m, nil, nil, 1); len(f.Gains) != 0 || f.Hypervolume <= 0 {
		t.Errorf("no runs: %+v", f)
	}
}
