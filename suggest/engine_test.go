package suggest

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// tradeOff is a noisy study with a known objective: error falls with the budget,
// has its optimum at rate 0.3, and needs kind "b".
func tradeOff() *Problem {
	return &Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 0, Max: 1},
			{Name: "noise", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
			{Name: "lot", Kind: space.Integer, Min: 1, Max: 256, Scale: space.Log},
			{Name: "kind", Kind: space.Categorical, Choices: []string{"a", "b"}},
		}},
		Objectives: []Objective{
			{Name: "epsilon", Goal: Minimize, Transform: Log, Reference: 10, Known: func(q space.Point) float64 {
				return math.Sqrt(q[2]) / q[1] / 4
			}},
			{Name: "error", Goal: Minimize, Transform: Logit, Reference: 1},
		},
	}
}

func tradeOffError(q space.Point) float64 {
	z := -1 + 4*(q[0]-0.3)*(q[0]-0.3) + 0.3*math.Log(q[1]/math.Sqrt(q[2])) + 0.5*(1-q[3])
	return 1 / (1 + math.Exp(-z))
}

// observe adds a run of q, with noise on the logit scale.
func observeTradeOff(h *History, p *Problem, q space.Point, rng *rand.Rand, sd float64) {
	v := logit(tradeOffError(q)) + sd*rng.NormFloat64()
	h.Evaluations = append(h.Evaluations, Evaluation{
		Point: q, Values: []float64{p.Objectives[0].Known(q), 1 / (1 + math.Exp(-v))},
	})
}

// noisyHistory has n random runs.
func noisyHistory(p *Problem, n int, seed uint64, sd float64) *History {
	rng := rand.New(rand.NewPCG(seed, 1))
	h := &History{}
	for range n {
		observeTradeOff(h, p, p.Space.Sample(rng), rng, sd)
	}
	return h
}

// newTestSurface returns the surface of a history.
func newTestSurface(t *testing.T, p *Problem, h *History, o EngineOptions) *surface {
	t.Helper()
	m, err := FitModel(t.Context(), p, h, ModelOptions{Seed: 1, ModelKnown: o.ModelKnown})
	if err != nil {
		t.Fatal(err)
	}
	if o.Samples == 0 {
		o.Samples = 8
	}
	s, err := newSurface(m, h.Pending, o, 1, int64(len(h.Evaluations)+1))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The gradient of the acquisition is that of difference quotients, with and without
// known objectives, draws, checkpoints, constraints and costs.
func TestSurfaceGradient(t *testing.T) {
	withEpochs := func() (*Problem, *History) {
		p := epochProblem(64)
		p.Space.Parameters = append(p.Space.Parameters, space.Parameter{Name: "rate", Kind: space.Double, Min: 0, Max: 1})
		h := &History{}
		rng := rand.New(rand.NewPCG(3, 1))
		for run := range 12 {
			noise, rate := math.Exp(-4.5*rng.Float64()), rng.Float64()
			shared := 0.05 * rng.NormFloat64()
			for t := range 16 {
				q := space.Point{noise, float64(t + 1), rate}
				e := 0.15 + 0.3*math.Exp(-0.2*q[1]) + 0.2*(rate-0.4)*(rate-0.4) + 0.1*math.Log(1/noise)/4.5
				h.Evaluations = append(h.Evaluations, Evaluation{
					Point: q, Values: []float64{q[0] * q[1], e * (1 + shared)}, Run: int64(run + 1), Cost: q[1],
				})
			}
		}
		return p, h
	}
	for name, set := range map[string]func() (*Problem, *History, EngineOptions){
		"known": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			return p, noisyHistory(p, 25, 1, 0.2), EngineOptions{}
		},
		"modelled": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			return p, noisyHistory(p, 25, 2, 0.2), EngineOptions{ModelKnown: true, PlugIn: true}
		},
		"maximised": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			h := noisyHistory(p, 25, 3, 0.2)
			p.Objectives[1].Goal, p.Objectives[1].Reference = Maximize, 0
			for i := range h.Evaluations {
				h.Evaluations[i].Values[1] = 1 - h.Evaluations[i].Values[1]
			}
			return p, h, EngineOptions{}
		},
		"constrained": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			h := noisyHistory(p, 25, 4, 0.2)
			p.Constraints = []Constraint{{Name: "time", Transform: Log, Lower: math.Inf(-1), Upper: 5}}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				e.Values = append(e.Values, 1+8*e.Point[0])
			}
			return p, h, EngineOptions{}
		},
		"constrained, nothing acceptable": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			h := noisyHistory(p, 25, 4, 0.2)
			p.Constraints = []Constraint{{Name: "time", Lower: math.Inf(-1), Upper: 0.5}}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				e.Values = append(e.Values, 1+8*e.Point[0])
			}
			return p, h, EngineOptions{}
		},
		"along rays": func() (*Problem, *History, EngineOptions) {
			p := tradeOff()
			h := noisyHistory(p, 25, 5, 0.2)
			for j := range 4 {
				p.Objectives = append(p.Objectives, Objective{Name: string(rune('a' + j)), Goal: Goal(1 + j%2), Reference: float64(1 - j%2)})
			}
			for i := range h.Evaluations {
				e := &h.Evaluations[i]
				for j := range 4 {
					e.Values = append(e.Values, 0.5+0.4*math.Sin(float64(j)+3*e.Point[0]+math.Log(e.Point[1])))
				}
			}
			return p, h, EngineOptions{}
		},
		"trajectory": func() (*Problem, *History, EngineOptions) {
			p, h := withEpochs()
			return p, h, EngineOptions{}
		},
		"measured cost": func() (*Problem, *History, EngineOptions) {
			p, h := withEpochs()
			p.Cost = CostMeasured
			return p, h, EngineOptions{}
		},
		"length as cost": func() (*Problem, *History, EngineOptions) {
			p, h := withEpochs()
			p.Cost = CostCheckpoint
			return p, h, EngineOptions{FinalOnly: true}
		},
		"trajectory of modelled objectives": func() (*Problem, *History, EngineOptions) {
			p, h := withEpochs()
			return p, h, EngineOptions{ModelKnown: true}
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, h, o := set()
			s := newTestSurface(t, p, h, o)
			v := s.visitor()
			rng := rand.New(rand.NewPCG(9, 1))
			checked := 0
			for range 40 {
				q := p.Space.Sample(rng)
				at := s.siteAt(q)
				for j := range at.unit {
					if s.isRelaxed(j) {
						at.unit[j] = 0.02 + 0.96*rng.Float64()
					}
				}
				steps := s.steps(q, looks)
				grad := make([]float64, len(q))
				value := v.value(at, steps, len(s.fronts), grad)
				if math.IsInf(value, -1) {
					continue
				}
				for j := range at.unit {
					if !s.isRelaxed(j) {
						continue
					}
					const step = 1e-6
					old := at.unit[j]
					at.unit[j] = old + step
					up := v.value(at, steps, len(s.fronts), nil)
					at.unit[j] = old - step
					down := v.value(at, steps, len(s.fronts), nil)
					at.unit[j] = old
					left, right := (value-down)/step, (up-value)/step
					if math.Abs(left-right) > 1e-3*(1+math.Abs(left)+math.Abs(right)) {
						continue // a kink: a known objective's, or a border of the front
					}
					slope := (up - down) / (2 * step)
					if math.Abs(grad[j]-slope) > 2e-3*(1+math.Abs(slope)) {
						t.Errorf("at %v: d/d%d = %g, difference quotient %g", q, j, grad[j], slope)
					}
					checked++
				}
			}
			if checked < 20 {
				t.Errorf("only %d slopes were checked", checked)
			}
		})
	}
}

// The acquisition is the mean over joint draws of the front and of the outcome of
// the improvement.
func TestSurfaceIsTheExpectedImprovement(t *testing.T) {
	p := tradeOff()
	p.Objectives[1].Transform = Identity
	h := noisyHistory(p, 15, 5, 0.3)
	s := newTestSurface(t, p, h, EngineOptions{Samples: 2000})
	v := s.visitor()
	var base [][]float64
	for _, e := range s.members {
		if e.open {
			base = append(base, e.x)
		}
	}
	rng := rand.New(rand.NewPCG(2, 2))
	for checked := 0; checked < 4; {
		q := p.Space.Sample(rng)
		if v.value(s.siteAt(q), nil, len(s.fronts), nil) < -6 {
			continue // too seldom an improvement for Monte Carlo
		}
		checked++
		x := p.Space.Encode(nil, q)
		mean, cov := s.model.gps[1].PredictJoint(append(slices.Clone(base), x))
		var sum, squares float64
		const draws = 20000
		for i := range mean {
			cov.SetSym(i, i, cov.At(i, i)+1e-9)
		}
		var chol mat.Cholesky
		if !chol.Factorize(cov) {
			t.Fatal("no Cholesky factor")
		}
		var lower mat.TriDense
		chol.LTo(&lower)
		for range draws {
			z := make([]float64, len(mean))
			for i := range z {
				z[i] = rng.NormFloat64()
			}
			f := slices.Clone(mean)
			for i := range f {
				for k := 0; k <= i; k++ {
					f[i] += lower.At(i, k) * z[k]
				}
			}
			var points [][]float64
			b := 0
			for _, e := range s.members {
				point := slices.Clone(e.medians)
				if e.open {
					point[1] = f[b]
					b++
				}
				points = append(points, point)
			}
			front := pareto.NewFront(points, s.reference())
			gain := front.Improvement([]float64{p.Objectives[0].Known(q), f[len(base)]})
			sum += gain
			squares += gain * gain
		}
		want := sum / draws
		se := math.Sqrt((squares/draws - want*want) / draws)
		got := math.Exp(v.value(s.siteAt(q), nil, len(s.fronts), nil))
		// The draws of the surface have an error of their own.
		if math.Abs(got-want) > 6*se+0.08*want {
			t.Errorf("at %v: %g, Monte Carlo %g ± %g", q, got, want, se)
		}
	}
}

// runStudy runs a designer for n runs on the trade-off.
func runStudy(t *testing.T, d Designer, p *Problem, n int, seed uint64, sd float64) *History {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 77))
	h := &History{}
	for i := range n {
		suggestions, err := d.Suggest(t.Context(), p, h, Request{Count: 1, Seed: seed, Number: int64(i + 1)})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Space.Contains(suggestions[0].Point); err != nil {
			t.Fatalf("suggestion %d: %v", i+1, err)
		}
		if suggestions[0].FallbackReason != "" {
			t.Errorf("suggestion %d: %s", i+1, suggestions[0].FallbackReason)
		}
		observeTradeOff(h, p, suggestions[0].Point, rng, sd)
	}
	return h
}

// trueHypervolume is that of the exact values of all configurations.
func trueHypervolume(h *History) float64 {
	var costs [][]float64
	for _, e := range h.Evaluations {
		costs = append(costs, []float64{e.Values[0], tradeOffError(e.Point)})
	}
	return pareto.Hypervolume(costs, []float64{10, 1})
}

func TestDefaultBeatsRandomSearch(t *testing.T) {
	for seed := range uint64(3) {
		p := tradeOff()
		ours := trueHypervolume(runStudy(t, NewDefault(EngineOptions{}), p, 30, seed, 0.1))
		random := trueHypervolume(runStudy(t, NewRandom(), p, 200, seed, 0.1))
		if ours <= random {
			t.Errorf("seed %d: hypervolume %g after 30 runs, %g after 200 random ones", seed, ours, random)
		}
	}
}

// The same arguments give the same suggestions, whatever was asked before, and a
// batch is the same as one after the other with the earlier ones pending.
func TestDefaultIsReproducible(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 30, 6, 0.2)
	d := NewDefault(EngineOptions{})
	request := Request{Count: 3, Seed: 5, Number: 31}
	batch, err := d.Suggest(t.Context(), p, h, request)
	if err != nil {
		t.Fatal(err)
	}
	forget() // as after a restart
	again, err := d.Suggest(t.Context(), p, h, request)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(batch, again); diff != "" {
		t.Errorf("after a restart (-before +after):\n%s", diff)
	}
	for i, want := range batch {
		one, err := d.Suggest(t.Context(), p, h, Request{Count: 1, Seed: 5, Number: 31 + int64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, one[0]); diff != "" {
			t.Errorf("suggestion %d alone (-batch +alone):\n%s", i, diff)
		}
		h.Pending = append(h.Pending, want.Point)
	}
}

// Histories that leave little to a model: nothing, one value, values that are all
// equal, all worse than the reference, or not finite.
func TestDefaultWithPoorHistories(t *testing.T) {
	one := noisyHistory(tradeOff(), 1, 1, 0)
	equal := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range equal.Evaluations {
		equal.Evaluations[i].Values[1] = 0.5
	}
	bad := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range bad.Evaluations {
		bad.Evaluations[i].Values[1] = 1
	}
	infinite := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range infinite.Evaluations {
		infinite.Evaluations[i].Values[0] = math.Inf(1)
	}
	absent := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range absent.Evaluations {
		absent.Evaluations[i].Values[1] = math.NaN()
	}
	same := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range same.Evaluations {
		same.Evaluations[i] = same.Evaluations[0]
	}
	infeasible := noisyHistory(tradeOff(), 20, 1, 0)
	for i := range infeasible.Evaluations {
		infeasible.Infeasible = append(infeasible.Infeasible, infeasible.Evaluations[i].Point)
	}
	infeasible.Evaluations = nil
	for name, h := range map[string]*History{
		"nothing": {}, "one": one, "equal": equal, "bad": bad, "infinite": infinite,
		"absent": absent, "same": same, "infeasible": infeasible,
	} {
		for _, d := range []Designer{NewDefault(EngineOptions{InitialPoints: 1}), NewEHVI(EngineOptions{InitialPoints: 1})} {
			p := tradeOff()
			got, err := d.Suggest(t.Context(), p, h, Request{Count: 3, Seed: 1, Number: 21})
			if err != nil || len(got) != 3 {
				t.Errorf("%s, %s: %d suggestions, %v", d.Name(), name, len(got), err)
				continue
			}
			for _, s := range got {
				if err := p.Space.Contains(s.Point); err != nil {
					t.Errorf("%s, %s: %v", d.Name(), name, err)
				}
			}
		}
	}
}

// Two points of a space that has no others are suggested once each, then replicated
// or exhausted.
func TestDefaultInATinySpace(t *testing.T) {
	p := tradeOff()
	for j := range 3 {
		p.Space.Parameters[j] = space.Parameter{Name: p.Space.Parameters[j].Name, Kind: space.Discrete, Values: []float64{1}}
	}
	d := NewDefault(EngineOptions{InitialPoints: 1})
	got, err := d.Suggest(t.Context(), p, &History{}, Request{Count: 2, Seed: 1, Number: 1})
	if err != nil || len(got) != 2 || got[0].Point.Equal(got[1].Point) {
		t.Fatalf("suggestions %v, %v, want both points", got, err)
	}
	h := &History{Pending: []space.Point{got[0].Point, got[1].Point}}
	if got, err := d.Suggest(t.Context(), p, h, Request{Count: 1, Seed: 1, Number: 3}); len(got) != 0 || !errors.Is(err, ErrExhausted) {
		t.Errorf("suggestions %v, %v, want none", got, err)
	}
}

func TestDefaultIsCancelled(t *testing.T) {
	p := tradeOff()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NewDefault(EngineOptions{}).Suggest(ctx, p, noisyHistory(p, 30, 1, 0.1), Request{Count: 1, Number: 31}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want that of the context", err)
	}
}
