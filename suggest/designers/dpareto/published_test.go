package dpareto

import (
	"encoding/json"
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats/scalar"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// publishedRun is testdata/published.json.
type publishedRun struct {
	Inputs         [][]float64      `json:"inputs"`
	Privacy        []float64        `json:"privacy"`
	Utility        []float64        `json:"utility"`
	PrivacyProcess publishedProcess `json:"privacy_process"`
	UtilityProcess publishedProcess `json:"utility_process"`
	Front          [][]float64      `json:"front"`
	Reference      []float64        `json:"reference"`
	Proposal       []float64        `json:"proposal"`
	Means          []float64        `json:"means"`
	Variances      []float64        `json:"variances"`
	Improvement    float64          `json:"improvement"`
	Probability    float64          `json:"probability"`
	HVPoI          float64          `json:"hvpoi"`
}

type publishedProcess struct {
	SignalVariance float64   `json:"signal_variance"`
	LengthScales   []float64 `json:"length_scales"`
	NoiseVariance  float64   `json:"noise_variance"`
	LogLikelihood  float64   `json:"log_likelihood"`
}

// publishedSpace is the domain of the published run in units of the largest initial values:
// epochs in [2, 4], lots of [32, 128], rates in [1e-3, 1e-2], norms in [0.1, 2], noise in [1, 8].
func publishedSpace() *space.Space {
	s := new(space.Space)
	for _, p := range []struct {
		name           string
		min, max, unit float64
	}{
		{"epochs", 2, 4, 4},
		{"lot_size", 32, 128, 96},
		{"learning_rate", 1e-3, 1e-2, 0.0097181822907163},
		{"clipping_norm", 0.1, 2, 1.9620608423290127},
		{"noise_multiplier", 1, 8, 7.868943856313684},
	} {
		s.Parameters = append(s.Parameters, space.Parameter{Name: p.name, Kind: space.Double, Min: p.min / p.unit, Max: p.max / p.unit})
	}
	return s
}

// publishedKernel is the kernel of GPflow 0.5, k(√(r² + 10⁻⁷)), divided by its value at 0.
type publishedKernel struct{ surrogate.Matern52 }

const publishedOffset = 1e-7

// atZero is the value of GPflow's kernel at 0, which it does not use for the prior variance.
func (k publishedKernel) atZero() float64 {
	value, _ := k.Matern52.Correlation(publishedOffset)
	return value
}

func (k publishedKernel) Correlation(r2 float64) (c, dc float64) {
	c, dc = k.Matern52.Correlation(r2 + publishedOffset)
	return c / k.atZero(), dc / k.atZero()
}

// process returns the fitted process over the encoded space, which stretches each input.
func (g *publishedProcess) process(t *testing.T, s *space.Space, inputs [][]float64, y []float64) *surrogate.GP {
	t.Helper()
	h := surrogate.Hyperparameters{SignalVariance: g.SignalVariance * publishedKernel{}.atZero(), NoiseVariance: g.NoiseVariance}
	for j, l := range g.LengthScales {
		h.LengthScales = append(h.LengthScales, l/(s.Parameters[j].Max-s.Parameters[j].Min))
	}
	obs := surrogate.Observations{Y: y}
	for _, x := range inputs {
		obs.X = append(obs.X, s.Encode(nil, x))
	}
	gp, err := surrogate.New(publishedKernel{}, h, obs)
	require.NoError(t, err)
	return gp
}

// publishedModel returns the run that is stored with the published code, and its model.
func publishedModel(t *testing.T) (*publishedRun, *model.Model) {
	t.Helper()
	content, err := os.ReadFile("testdata/published.json")
	require.NoError(t, err)
	run := new(publishedRun)
	require.NoError(t, json.Unmarshal(content, run))
	p := &suggest.Problem{Space: publishedSpace(), Objectives: []suggest.Objective{
		{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10},
		{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
	}}
	h := new(suggest.History)
	for i, x := range run.Inputs {
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: x, Values: []float64{math.Exp(run.Privacy[i]), 1 / (1 + math.Exp(-run.Utility[i]))},
		})
	}
	m, err := model.New(p, h, []*surrogate.GP{
		run.PrivacyProcess.process(t, p.Space, run.Inputs, run.Privacy),
		run.UtilityProcess.process(t, p.Space, run.Inputs, run.Utility),
	})
	require.NoError(t, err)
	return run, m
}

// From the processes that the published code fitted follow its front of nine posterior means, its
// reference, and the HVPoI of what it proposed.
func TestPublishedRun(t *testing.T) {
	run, m := publishedModel(t)
	o := newDesigner(Options{Published: true}).objective(m, nil)
	compare := func(name string, got, want, tolerance float64) {
		t.Helper()
		if !scalar.EqualWithinAbsOrRel(got, want, tolerance, tolerance) {
			t.Errorf("%s is %.10g, published as %.10g", name, got, want)
		}
	}
	compare("likelihood of the privacy", m.Likelihood(0), run.PrivacyProcess.LogLikelihood, 1e-6)
	compare("likelihood of the utility", m.Likelihood(1), run.UtilityProcess.LogLikelihood, 1e-9)
	if o.front.Len() != 9 {
		t.Fatalf("the front has %d points, published with 9", o.front.Len())
	}
	for i, want := range run.Front {
		compare("ε of the front", o.front.Points()[i][0], want[0], 1e-6)
		compare("error of the front", o.front.Points()[i][1], want[1], 1e-6)
	}
	outcomes := o.outcomes(nil, nil, run.Proposal)
	for j, l := range outcomes {
		compare("reference", o.front.Reference()[j], run.Reference[j], 1e-6)
		compare("mean", l.Mean, run.Means[j], 1e-6)
		// GPflow takes the whole signal variance for the prior's.
		prior := []float64{run.PrivacyProcess.SignalVariance, run.UtilityProcess.SignalVariance}[j]
		compare("variance", l.StdDev*l.StdDev+prior*(1-publishedKernel{}.atZero()), run.Variances[j], 1e-6)
	}
	compare("improvement", acquisition.MedianImprovement(o.front, outcomes), run.Improvement, 1e-6)
	compare("probability", acquisition.PoI(o.front, outcomes), run.Probability, 1e-9)
	compare("HVPoI", acquisition.HVPoI(o.front, outcomes), run.HVPoI, 1e-6)
}

// The search finds the global maximum, which the published code missed: its proposal is the best of
// 5,000 random points. The maximum was found independently, by local searches from many points; it is
// at bounds of four parameters.
func TestPublishedMaximum(t *testing.T) {
	_, m := publishedModel(t)
	want := []float64{0.5, 1. / 3, 1.02900, 0.66652, 1.01665}
	s, ok, err := newDesigner(Options{Published: true}).maximize(t.Context(), m, nil, nil, 1, 33)
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	if math.Abs(s.Acquisition-0.615204) > 1e-5 {
		t.Errorf("the largest HVPoI found is %.6f, want 0.615204", s.Acquisition)
	}
	for j, x := range s.Point {
		if math.Abs(x-want[j]) > 1e-3 {
			t.Errorf("%s = %.5f, want %.5f", m.Problem().Space.Parameters[j].Name, x, want[j])
		}
	}
}

// The published acquisition does not depend on the problem's references and constants, nor on whether an
// error is minimised or an accuracy maximised.
func TestPublishedSymmetries(t *testing.T) {
	suggestion := func(change func(*suggest.Problem)) suggest.Suggestion {
		p := simulated.Training()
		h := new(suggest.History)
		rng := rand.New(rand.NewPCG(1, 2))
		for range 20 {
			h.Evaluations = append(h.Evaluations, simulated.Train(p.Space.Sample(rng)))
		}
		change(p)
		if p.Objectives[1].Goal == suggest.Minimize {
			for i := range h.Evaluations {
				h.Evaluations[i].Values[1] = 1 - h.Evaluations[i].Values[1]
			}
		}
		d := New(Options{Published: true, Candidates: 300, Restarts: 5})
		return simulated.Ask(t, d, p, h, suggest.Request{Count: 1, Seed: 3, Number: 20})[0]
	}
	want := suggestion(func(*suggest.Problem) {})
	if want.Designer != Name || !(want.Acquisition > 0) {
		t.Fatalf("suggestion %+v", want)
	}
	moved := suggestion(func(p *suggest.Problem) { p.Objectives[0].Reference, p.Objectives[1].Reference = 0.01, 0.9 })
	if !moved.Point.Equal(want.Point) || moved.Acquisition != want.Acquisition {
		t.Errorf("with other references %v of %g, want %v of %g", moved.Point, moved.Acquisition, want.Point, want.Acquisition)
	}
	beside := suggestion(func(p *suggest.Problem) {
		p.Constants = [][]float64{{0, 1}, {1e-9, 1 - 1e-9}, {-50, 50}} // better than everything, in any units
	})
	if !beside.Point.Equal(want.Point) || beside.Acquisition != want.Acquisition {
		t.Errorf("beside a constant %v of %g, want %v of %g", beside.Point, beside.Acquisition, want.Point, want.Acquisition)
	}
	turned := suggestion(func(p *suggest.Problem) {
		p.Objectives[1].Goal, p.Objectives[1].Reference = suggest.Minimize, 1
	})
	if !scalar.EqualWithinRel(turned.Acquisition, want.Acquisition, 1e-6) {
		t.Errorf("with errors the HVPoI is %g, with accuracies %g", turned.Acquisition, want.Acquisition)
	}
}

// With one point on the front the reference is that point: what is better in both objectives counts,
// by the area up to the point.
func TestPublishedSinglePoint(t *testing.T) {
	front := pareto.NewFront([][]float64{{1, 2}}, publishedReference([][]float64{{1, 2}}))
	for _, tt := range []struct {
		mean []float64
		want float64
	}{{[]float64{-1, 1}, 2}, {[]float64{-5, 2.5}, 0}, {[]float64{1, 2}, 0}} {
		if got := front.Improvement(tt.mean); got != tt.want {
			t.Errorf("the improvement of %v is %g, want %g", tt.mean, got, tt.want)
		}
	}
}

// Acquisition says of a suggestion what the suggestion says, and what is less elsewhere.
func TestAcquisition(t *testing.T) {
	p := simulated.Training()
	rng := rand.New(rand.NewPCG(5, 6))
	h := new(suggest.History)
	for range 20 {
		h.Evaluations = append(h.Evaluations, simulated.Train(p.Space.Sample(rng)))
	}
	h.Pending = []space.Point{p.Space.Sample(rng)}
	for _, o := range []Options{{}, {Published: true}} {
		s := simulated.Ask(t, New(o), p, h, suggest.Request{Count: 1, Seed: 3, Number: 21})[0]
		points := []space.Point{s.Point}
		for range 200 {
			points = append(points, p.Space.Sample(rng))
		}
		values, err := Acquisition(t.Context(), p, h, 3, o, points)
		require.NoError(t, err)
		if values[0].HVPoI != s.Acquisition || !slices.Equal(values[0].Predictions, s.Predictions) {
			t.Errorf("%+v: the suggestion %+v has the value %+v", o, s, values[0])
		}
		for i, v := range values {
			if v.HVPoI > s.Acquisition || v.HVPoI != v.Improvement*v.Probability || !(v.Probability <= 1) {
				t.Errorf("%+v: point %d has the value %+v", o, i, v)
			}
		}
	}
	if _, err := Acquisition(t.Context(), p, &suggest.History{}, 3, Options{}, nil); !errors.Is(err, model.ErrNoData) {
		t.Errorf("without evaluations: %v", err)
	}
	if _, err := Acquisition(t.Context(), p, &suggest.History{Pending: []space.Point{{1}}}, 3, Options{}, nil); err == nil {
		t.Error("a point of another length is accepted")
	}
}
