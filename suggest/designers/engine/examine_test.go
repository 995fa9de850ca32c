package engine

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/sample"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
)

// What is computed together, and left out where it can not count, is what is computed one
// by one.
func TestExamine(t *testing.T) {
	for name, study := range map[string]benchmarkStudy{
		"exact": exactStudy(0), "noisy": exactStudy(0.05), "known": knownStudy(), "trajectory": trajectoryStudy(),
		"maximised": maximisedStudy(), "several looks": threeObjectives(),
	} {
		t.Run(name, func(t *testing.T) {
			h := study.history(40)
			m, err := model.Fit(t.Context(), study.problem, h, model.Options{ImputeInfeasible: true})
			require.NoError(t, err)
			o := New(Options{}).(designer).options
			s, err := newSurface(m, new(common), o, turn{seed: 1, number: 41})
			require.NoError(t, err)
			e := newExplorer(s, o, h.Tried(), sample.Stream(1, 41, sample.Search))
			list := e.choices.candidates(s.centres(), o.Candidates, sample.Stream(1, 41, sample.Candidates))
			chunks, err := e.chunks(t.Context(), list)
			require.NoError(t, err)
			finalists, err := e.screen(t.Context(), chunks)
			require.NoError(t, err)
			v := e.evaluator()
			e.examine(v, finalists)
			for _, c := range finalists {
				if want := e.exact(v, c.point); !(math.Abs(c.value-want) <= 1e-6*math.Max(1, math.Abs(want))) && c.value != want {
					t.Errorf("value %.12g of a finalist, want %.12g", c.value, want)
				}
			}
			improved := 0
			runs, predictions := e.predict(list, screenLooks)
			for _, r := range runs {
				n := v.load(r, predictions)
				got, want := v.drawnImprovement(n), 0.0
				if v.axis < 0 || n == 1 {
					want = eachDrawnImprovement(v, n)
				}
				if math.Abs(got-want) > 1e-9*want {
					t.Errorf("drawn improvement %g, want %g", got, want)
				}
				if got > 0 {
					improved++
				}
			}
			if drawn := name != "exact" && name != "trajectory"; drawn != (improved > 0) {
				t.Errorf("%d candidates improve draws of the front", improved)
			}
		})
	}
}

// The outlook on repeated runs is predicted together for all of their looks, and is what the
// surrogates predict one by one.
func TestRepeated(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 20, 3, 1)
	e := newExplorer(newTestSurface(t, p, h, Options{}), Options{}, h.Tried(), nil)
	c := newComparison(e)
	list, trials := c.replicable(nil)
	after, err := c.after(h.Evaluations[0].Point)
	require.NoError(t, err)
	runs, x := e.runs(list, looks)
	gps := c.surrogates()
	repeated := c.repeated(c.foresee(gps, x), runs, trials, x, after)
	informed := 0
	for i, r := range runs {
		for k := r.first; k < r.first+r.looks(); k++ {
			for j, gp := range gps {
				if gp == nil {
					continue
				}
				mean, variance := gp.Predict(x[k])
				_, want := after[j].Predict(x[k])
				want = math.Max(0, want-1/(1/variance+information(e.model, j, x[k], trials[i])))
				if math.Abs(repeated.means[j][k]-mean) > 1e-9 || math.Abs(repeated.variances[j][k]-want) > 1e-9*variance {
					t.Errorf("look %d of run %d: %g and %g, want %g and %g", k, i, repeated.means[j][k], repeated.variances[j][k], mean, want)
				}
				if want > 0.01*variance {
					informed++
				}
			}
		}
	}
	if informed == 0 {
		t.Error("no trial tells anything")
	}
}

// maximisedStudy is a noisy study whose objectives are maximised, on other scales.
func maximisedStudy() benchmarkStudy {
	s := exactStudy(0.05)
	minimised := s.evaluate
	s.problem.Objectives = []suggest.Objective{
		{Name: "log", Goal: suggest.Maximize, Transform: suggest.Log, Reference: math.Exp(-1.1)},
		{Name: "logit", Goal: suggest.Maximize, Transform: suggest.Logit, Reference: 1 / (1 + math.Exp(1.1))},
	}
	s.evaluate = func(q space.Point, rng *rand.Rand) suggest.Evaluation {
		e := minimised(q, rng)
		e.Values[0], e.Values[1] = math.Exp(-e.Values[0]), 1/(1+math.Exp(e.Values[1]))
		return e
	}
	return s
}

// threeObjectives is a study whose runs count as the best of their looks.
func threeObjectives() benchmarkStudy {
	s := trajectoryStudy()
	s.problem.Objectives = append(s.problem.Objectives, suggest.Objective{Name: "waste", Goal: suggest.Minimize, Reference: 2})
	two := s.evaluate
	s.evaluate = func(q space.Point, rng *rand.Rand) suggest.Evaluation {
		e := two(q, rng)
		e.Values = append(e.Values, q[1]/4+math.Log(q[4])/5+0.1*rng.NormFloat64())
		return e
	}
	return s
}

// While configurations that meet the constraints are looked for, those that known
// objectives keep off the front have values, too.
func TestExamineSeeking(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "a", Kind: space.Integer, Min: 0, Max: 5},
			{Name: "b", Kind: space.Integer, Min: 0, Max: 5},
		}},
		Objectives: []suggest.Objective{
			{Name: "known", Goal: suggest.Minimize, Reference: 2.5, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "measured", Goal: suggest.Minimize, Reference: 10},
		},
		Constraints: []suggest.Constraint{{Name: "limit", Lower: math.Inf(-1), Upper: 0}},
	}
	h := &suggest.History{}
	for a := range 2 {
		for b := range 6 {
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: space.Point{float64(a), float64(b)}, Values: []float64{float64(a), float64(b), float64(6-b) + 0.5*math.Sin(float64(5*a+3*b*b))}})
		}
	}
	e := newExplorer(newTestSurface(t, p, h, Options{}), Options{Candidates: 64}, h.Tried(), nil)
	if !e.seeking {
		t.Fatal("not seeking")
	}
	chunks, err := e.chunks(t.Context(), e.choices.candidates(nil, 64, nil))
	require.NoError(t, err)
	finalists, err := e.screen(t.Context(), chunks)
	require.NoError(t, err)
	v := e.evaluator()
	e.examine(v, finalists)
	if len(finalists) != 24 {
		t.Errorf("%d finalists", len(finalists))
	}
	for _, c := range finalists {
		if want := e.exact(v, c.point); !(math.Abs(c.value-want) <= 1e-9*math.Max(1, math.Abs(want))) {
			t.Errorf("value %g of %v, want %g", c.value, c.point, want)
		}
	}
}

// eachDrawnImprovement is drawnImprovement outcome by outcome.
func eachDrawnImprovement(v *evaluator, n int) float64 {
	sum := 0.0
	for i, normals := range v.outcomes {
		best := 0.0
		for _, l := range v.looks[:n] {
			outcome := make([]float64, len(v.known))
			for j := range outcome {
				outcome[j] = v.distribution(l, j, i/outcomes).Quantile(normals[j])
			}
			best = math.Max(best, v.fronts[i/outcomes].improvement(outcome))
		}
		sum += best / float64(len(v.outcomes))
	}
	return sum
}

// What suggestions of one request have in common changes none of them.
func TestCommon(t *testing.T) {
	for name, study := range map[string]benchmarkStudy{"exact": exactStudy(0), "noisy": exactStudy(0.05), "known": knownStudy()} {
		t.Run(name, func(t *testing.T) {
			h := study.history(40)
			m, err := model.Fit(t.Context(), study.problem, h, model.Options{ImputeInfeasible: true})
			require.NoError(t, err)
			o := New(Options{}).(designer).options
			shared := new(common)
			var pending []space.Point
			for number := int64(41); number < 44; number++ {
				got, err := newSurface(m, shared, o, turn{pending: pending, seed: 1, number: number})
				require.NoError(t, err)
				want, err := newSurface(m, new(common), o, turn{pending: pending, seed: 1, number: number})
				require.NoError(t, err)
				if len(got.members) != len(want.members) || got.seeking != want.seeking {
					t.Fatalf("%d members, want %d", len(got.members), len(want.members))
				}
				for i, e := range got.members {
					w := want.members[i]
					if !e.point.Equal(w.point) || e.open != w.open || !slices.EqualFunc(e.variances, w.variances, func(a, b float64) bool {
						return math.Abs(a-b) <= 1e-9*b
					}) || !(math.Abs(e.gain-w.gain) <= 1e-9*w.gain) && e.gain != w.gain {
						t.Errorf("member %+v, want %+v", e, w)
					}
				}
				tried := h.Tried()
				for _, q := range pending {
					tried.Add(q)
				}
				var found [2]candidate
				for i, s := range []*surface{got, want} {
					e := newExplorer(s, o, tried, sample.Stream(1, number, sample.Search))
					var ok bool
					if found[i], ok, err = e.find(t.Context(), sample.Stream(1, 41, sample.Candidates)); err != nil || !ok {
						t.Fatal(ok, err)
					}
				}
				if !found[0].point.Equal(found[1].point) {
					t.Errorf("suggestion %d: %v, want %v", number, found[0].point, found[1].point)
				}
				pending = append(pending, found[0].point)
			}
			if len(shared.chunks) == 0 || len(shared.members) == 0 || !slices.ContainsFunc(shared.members, func(e member) bool { return e.settled }) {
				t.Error("nothing is shared")
			}
		})
	}
}
