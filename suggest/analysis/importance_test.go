package analysis_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/analysis"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// function is a function with known Sobol indices.
type function struct {
	name         string
	space        *space.Space
	f            func(space.Point) float64
	variance     float64
	first, total []float64
}

func box(d int, low, high float64) *space.Space {
	s := new(space.Space)
	for j := range d {
		s.Parameters = append(s.Parameters, space.Parameter{Name: fmt.Sprintf("x%d", j+1), Kind: space.Double, Min: low, Max: high})
	}
	return s
}

// ishigami is the function sin x1 + a sin² x2 + b x3⁴ sin x1 on [-π, π]³, with a = 7 and b = 0.1. Its
// variances are in A. Saltelli et al., "Global Sensitivity Analysis. The Primer", Wiley 2008.
func ishigami() *function {
	const a, b = 7, 0.1
	pi4, pi8 := math.Pow(math.Pi, 4), math.Pow(math.Pi, 8)
	v1, v2, v13 := (1+b*pi4/5)*(1+b*pi4/5)/2, a*a/8., b*b*pi8*(1./18-1./50)
	v := v1 + v2 + v13
	return &function{
		name: "Ishigami", space: box(3, -math.Pi, math.Pi),
		f: func(x space.Point) float64 {
			s := math.Sin(x[1])
			return math.Sin(x[0]) + a*s*s + b*math.Pow(x[2], 4)*math.Sin(x[0])
		},
		variance: v,
		first:    []float64{v1 / v, v2 / v, 0},
		total:    []float64{(v1 + v13) / v, v2 / v, v13 / v},
	}
}

// sobolG is Sobol's g-function Π (|4x_i − 2| + a_i)/(1 + a_i) on the unit cube: the variance of
// factor i is 1/(3(1 + a_i)²), and the variance of the product is Π (1 + V_i) − 1.
func sobolG(a ...float64) *function {
	g := &function{name: "g-function", space: box(len(a), 0, 1)}
	g.f = func(x space.Point) float64 {
		product := 1.0
		for i, ai := range a {
			product *= (math.Abs(4*x[i]-2) + ai) / (1 + ai)
		}
		return product
	}
	product := 1.0
	for _, ai := range a {
		product *= 1 + 1/(3*(1+ai)*(1+ai))
	}
	g.variance = product - 1
	for _, ai := range a {
		vi := 1 / (3 * (1 + ai) * (1 + ai))
		g.first = append(g.first, vi/g.variance)
		g.total = append(g.total, vi*(product/(1+vi))/g.variance)
	}
	return g
}

// problem returns the problem of one objective, which is measured unless known is set.
func (g *function) problem(known bool) *suggest.Problem {
	o := suggest.Objective{Name: "y", Goal: suggest.Minimize, Reference: 100}
	if known {
		o.Known = g.f
	}
	return &suggest.Problem{Space: g.space, Objectives: []suggest.Objective{o}}
}

// fit returns the model of n quasi-random points with noise of a standard deviation.
func (g *function) fit(tb testing.TB, n int, noise float64, seed uint64) []*model.Model {
	tb.Helper()
	rng := sample.Stream(seed, 0, sample.Design)
	sequence := sample.NewHalton(len(g.space.Parameters), sample.Mix(seed))
	h := new(suggest.History)
	for i := range n {
		u := make([]float64, len(g.space.Parameters))
		sequence.At(u, uint64(i))
		q := sample.At(g.space, u)
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: q, Values: []float64{g.f(q) + noise*rng.NormFloat64()}, StdErrors: []float64{math.NaN()}, Runs: 1,
		})
	}
	var models []*model.Model
	for _, smooth := range []bool{false, true} {
		m, err := model.Fit(tb.Context(), g.problem(false), h, model.Options{Seed: seed, ForReading: true, Smooth: smooth})
		if err != nil {
			tb.Fatal(err)
		}
		models = append(models, m)
	}
	return models
}

// zero is how far above 0 the interval of an index that is 0 may begin: every function that is
// drawn from the posterior has some effect of every parameter.
const zero = 0.01

func covers(v analysis.Interval, truth float64) bool {
	if truth == 0 {
		return v.Lower <= zero
	}
	return v.Lower <= truth && truth <= v.Upper
}

func TestExplore(t *testing.T) {
	for _, g := range []*function{ishigami(), sobolG(0, 1, 4.5, 9)} {
		for _, noise := range []float64{0, 0.3} {
			d := len(g.space.Parameters)
			hits := make([]int, 1+2*d)
			width := make([]float64, 1+2*d)
			for seed := range uint64(20) {
				m := g.fit(t, 200, noise*math.Sqrt(g.variance), seed)
				s, err := analysis.Importance(t.Context(), m[0].Problem(), m, 0, seed)
				if err != nil {
					t.Fatal(err)
				}
				add := func(k int, v analysis.Interval, truth float64) {
					if covers(v, truth) {
						hits[k]++
					}
					width[k] += (v.Upper - v.Lower) / 20
				}
				add(0, s.Variance, g.variance)
				for i := range d {
					add(1+i, s.FirstOrder[i], g.first[i])
					add(1+d+i, s.Total[i], g.total[i])
				}
				if seed < 3 {
					t.Logf("%v", s)
				}
			}
			t.Logf("%s noise %g: hits %v widths %.3f truth %g %.3f %.3f", g.name, noise, hits, width, g.variance, g.first, g.total)
		}
	}
}
