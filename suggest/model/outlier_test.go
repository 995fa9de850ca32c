package model

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Squashing keeps the order of values and is continuous, with the slope that it says, and its results are finite.
func TestSquash(t *testing.T) {
	f := fence{edge{-3, 2}, edge{1, 0.5}}
	rapid.Check(t, func(t *rapid.T) {
		z := rapid.OneOf(rapid.Float64Range(-10, 10), rapid.Float64Range(-1e100, 1e100)).Draw(t, "z")
		y, slope, doubt := f.squash(z)
		if z >= f.low.at && z <= f.high.at && (y != z || slope != 1 || doubt != 0) {
			t.Fatalf("%g within becomes %g with the slope %g and the noise %g", z, y, slope, doubt)
		}
		if !(math.Abs(y) < 20) || !(slope > 0 && slope <= 1) || !(doubt >= 0) {
			t.Fatalf("%g becomes %g with the slope %g and the noise %g", z, y, slope, doubt)
		}
		step := 1e-6 * math.Max(1, math.Abs(z))
		next, _, _ := f.squash(z + step)
		if !(next > y) && math.Abs(z) < 1e6 || next < y {
			t.Fatalf("%g becomes %g, and %g %g", z, y, z+step, next)
		}
		if rise := (next - y) / step; math.Abs(rise-slope) > 1e-3*slope+1e-6 && math.Abs(z) < 1e3 {
			t.Fatalf("slope %g at %g, want %g", slope, z, rise)
		}
	})
}

// outlierProblem is a problem of two smooth objectives, and a constraint if constrained.
func outlierProblem(constrained bool) *suggest.Problem {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Double, Min: 0, Max: 1}}},
		Objectives: []suggest.Objective{
			{Name: "a", Goal: suggest.Minimize, Reference: 1.2},
			{Name: "b", Goal: suggest.Maximize, Reference: -1.2},
		},
	}
	if constrained {
		p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 0.8}}
	}
	return p
}

// outlierHistory has runs of it, with standard errors if known.
func outlierHistory(p *suggest.Problem, known bool) *suggest.History {
	h := &suggest.History{}
	for i := range 16 {
		x := (float64(i*7%16) + 0.5) / 16
		e := suggest.Evaluation{Point: space.Point{x}, Values: []float64{x * x, -(x - 1) * (x - 1)}}
		if len(p.Constraints) > 0 {
			e.Values = append(e.Values, x)
		}
		if known {
			e.StdErrors = make([]float64, len(e.Values))
			for j := range e.StdErrors {
				e.StdErrors[j] = 0.01
			}
		}
		h.Evaluations = append(h.Evaluations, e)
	}
	return h
}

// Whatever metric a run reports an absurd value of, and whatever the value, the front that the model claims is the one of the
// other runs, without the run, and the model names the value.
func TestOutliers(t *testing.T) {
	for _, known := range []bool{false, true} {
		for _, constrained := range []bool{false, true} {
			p := outlierProblem(constrained)
			for j := range p.Metrics() {
				for _, absurd := range []float64{1000, 1e6, 1e30, -1000, -1e30} {
					h := outlierHistory(p, known)
					e := &h.Evaluations[5]
					e.Values[j] = absurd
					if known {
						e.StdErrors[j] = math.Abs(absurd) / 10
					}
					m, err := Fit(t.Context(), p, h, Options{Seed: 1, ForReading: true})
					if err != nil {
						t.Fatalf("metric %d of %g: %v", j, absurd, err)
					}
					if !m.IsOutlier(j, absurd) || m.IsOutlier(0, 0.5) || m.IsOutlier(1, -1.19) {
						t.Errorf("known %v: metric %d: %g is not the only outlier", known, j, absurd)
					}
					var claimed [][]float64
					for i, e := range m.Estimates() {
						if e.OnFront && i == 5 {
							t.Errorf("known %v: metric %d: a run with %g is on the front", known, j, absurd)
						}
						if e.OnFront {
							claimed = append(claimed, []float64{e.Predictions[0].Median, -e.Predictions[1].Median})
						}
					}
					least, most := 1.1, 1.3 // the front has 1.24
					if constrained {
						least = 1.05
					}
					if v := pareto.Hypervolume(claimed, p.ReferenceCosts()); !(v > least && v < most) {
						t.Errorf("known %v, constrained %v: hypervolume %g with %g in metric %d", known, constrained, v, absurd, j)
					}
				}
			}
		}
	}
}

// Without outliers a fence changes nothing, even where values lie far beyond the reference and show the way.
func TestNoOutliers(t *testing.T) {
	p := outlierProblem(false)
	p.Objectives[0].Reference = 0.1
	h := outlierHistory(p, false)
	m, err := Fit(t.Context(), p, h, Options{Seed: 1})
	require.NoError(t, err)
	for i, z := range m.Observed(0).Values {
		if v := h.Evaluations[i].Values[0]; z != v || m.IsOutlier(0, v) {
			t.Errorf("%g became %g", v, z)
		}
	}
}

// The checkpoints of a run that is judged while it is running are squashed like the others.
func TestObserveOutlier(t *testing.T) {
	p := outlierProblem(false)
	p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "epochs", Kind: space.Integer, Min: 1, Max: 4})
	p.Checkpoint = "epochs"
	h := outlierHistory(p, false)
	for i := range h.Evaluations {
		h.Evaluations[i].Point = append(h.Evaluations[i].Point, 4)
		h.Evaluations[i].Run = int64(i + 1)
	}
	h.Evaluations[3].Values[0] = 1000
	m, err := Fit(t.Context(), p, h, Options{Seed: 1})
	require.NoError(t, err)
	m, err = m.Observe([]suggest.Evaluation{{Point: space.Point{0.5, 1}, Values: []float64{1e30, -1e30}, Run: 99}})
	require.NoError(t, err)
	for j, v := range m.Predict(space.Point{0.5, 4}) {
		if math.Abs(v.Median) > 5 {
			t.Errorf("objective %d is predicted as %v", j, v)
		}
	}
}

// A run that diverges at its later checkpoints spoils neither the front nor what is predicted of other runs.
func TestOutlyingCheckpoints(t *testing.T) {
	for _, transform := range []suggest.Transform{suggest.Identity, suggest.Log} {
		p := outlierProblem(false)
		p.Objectives[0].Transform = transform
		p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "epochs", Kind: space.Integer, Min: 1, Max: 8})
		p.Checkpoint = "epochs"
		for _, absurd := range []float64{1000, 1e30} {
			h := &suggest.History{}
			for i := range 12 {
				x := (float64(i*5%12) + 0.5) / 12
				for k, epoch := range []float64{1, 2, 4, 8} {
					e := suggest.Evaluation{Point: space.Point{x, epoch}, Run: int64(i + 1), Values: []float64{0.1 + x*x + 0.3/epoch, -(x - 1) * (x - 1)}}
					if i == 4 && k >= 2 {
						e.Values[0] = absurd
					}
					h.Evaluations = append(h.Evaluations, e)
				}
			}
			m, err := Fit(t.Context(), p, h, Options{Seed: 1, ForReading: true})
			require.NoError(t, err)
			var claimed, measured [][]float64
			for _, e := range m.Estimates() {
				measured = append(measured, []float64{e.Values[0], -e.Values[1]})
				if e.OnFront {
					claimed = append(claimed, []float64{e.Predictions[0].Median, -e.Predictions[1].Median})
				}
			}
			got, want := pareto.Hypervolume(claimed, p.ReferenceCosts()), pareto.Hypervolume(measured, p.ReferenceCosts())
			if math.Abs(got-want) > 0.05*want {
				t.Errorf("%v, %g: hypervolume %g claimed, %g measured", transform, absurd, got, want)
			}
		}
	}
}
