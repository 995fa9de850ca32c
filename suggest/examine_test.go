//go:build unix

package suggest

import (
	"math"
	"math/rand/v2"
	"testing"

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
			m, err := FitModel(t.Context(), study.problem, h, ModelOptions{imputeInfeasible: true})
			if err != nil {
				t.Fatal(err)
			}
			o := NewDefault(EngineOptions{}).(engine).options
			s, err := newSurface(m, nil, o, 1, 41)
			if err != nil {
				t.Fatal(err)
			}
			e := &explorer{surface: s, options: o, tried: h.tried(), rng: newRand(1, 41, streamSearch)}
			list := e.candidates(s.centres(), 1)
			finalists, err := e.screen(t.Context(), list)
			if err != nil {
				t.Fatal(err)
			}
			v := e.visitor()
			e.examine(v, finalists)
			for _, c := range finalists {
				if want := e.exact(v, c.point); !(math.Abs(c.value-want) <= 1e-6*math.Max(1, math.Abs(want))) && c.value != want {
					t.Errorf("value %.12g of a finalist, want %.12g", c.value, want)
				}
			}
			improved := 0
			runs, predictions := e.predict(pointsOf(list), screenLooks)
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

// What another trial would tell is predicted together for all looks of all repetitions, and
// is what the surrogates predict one by one.
func TestTold(t *testing.T) {
	p := tradeOff()
	h := noisyHistory(p, 20, 3, 1)
	e := &explorer{surface: newTestSurface(t, p, h, EngineOptions{}), tried: h.tried()}
	list, trials := e.replicable(nil)
	after, err := e.model.after(h.Evaluations[0].Point)
	if err != nil {
		t.Fatal(err)
	}
	v := e.visitor()
	runs, x := v.runs(list, looks)
	told := v.told(v.foresee(e.model.gps, x), runs, trials, x, after)
	informed := 0
	for i, r := range runs {
		for k := r.first; k < r.first+r.looks(); k++ {
			for j, gp := range e.model.gps {
				if gp == nil {
					continue
				}
				mean, variance := gp.Predict(x[k])
				_, want := after[j].Predict(x[k])
				want = math.Max(0, want-1/(1/variance+e.model.information(j, x[k], trials[i])))
				if math.Abs(told.means[j][k]-mean) > 1e-9 || math.Abs(told.variances[j][k]-want) > 1e-9*variance {
					t.Errorf("look %d of run %d: %g and %g, want %g and %g", k, i, told.means[j][k], told.variances[j][k], mean, want)
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
	s.problem.Objectives = []Objective{
		{Name: "log", Goal: Maximize, Transform: Log, Reference: math.Exp(-1.1)},
		{Name: "logit", Goal: Maximize, Transform: Logit, Reference: 1 / (1 + math.Exp(1.1))},
	}
	s.evaluate = func(q space.Point, rng *rand.Rand) Evaluation {
		e := minimised(q, rng)
		e.Values[0], e.Values[1] = math.Exp(-e.Values[0]), 1/(1+math.Exp(e.Values[1]))
		return e
	}
	return s
}

// threeObjectives is a study whose runs count as the best of their looks.
func threeObjectives() benchmarkStudy {
	s := trajectoryStudy()
	s.problem.Objectives = append(s.problem.Objectives, Objective{Name: "waste", Goal: Minimize, Reference: 2})
	two := s.evaluate
	s.evaluate = func(q space.Point, rng *rand.Rand) Evaluation {
		e := two(q, rng)
		e.Values = append(e.Values, q[1]/4+math.Log(q[4])/5+0.1*rng.NormFloat64())
		return e
	}
	return s
}

// While configurations that meet the constraints are looked for, those that known
// objectives keep off the front have values, too.
func TestExamineSeeking(t *testing.T) {
	p := &Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "a", Kind: space.Integer, Min: 0, Max: 5},
			{Name: "b", Kind: space.Integer, Min: 0, Max: 5},
		}},
		Objectives: []Objective{
			{Name: "known", Goal: Minimize, Reference: 2.5, Known: func(q space.Point) float64 { return q[0] }},
			{Name: "measured", Goal: Minimize, Reference: 10},
		},
		Constraints: []Constraint{{Name: "limit", Lower: math.Inf(-1), Upper: 0}},
	}
	h := &History{}
	for a := range 2 {
		for b := range 6 {
			h.Evaluations = append(h.Evaluations, Evaluation{Point: space.Point{float64(a), float64(b)}, Values: []float64{float64(a), float64(b), float64(6 - b)}})
		}
	}
	e := &explorer{surface: newTestSurface(t, p, h, EngineOptions{}), options: EngineOptions{Candidates: 64}, tried: h.tried()}
	if !e.seeking {
		t.Fatal("not seeking")
	}
	finalists, err := e.screen(t.Context(), e.candidates(nil, 1))
	if err != nil {
		t.Fatal(err)
	}
	v := e.visitor()
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

func pointsOf(list []candidate) []space.Point {
	points := make([]space.Point, len(list))
	for i, c := range list {
		points[i] = c.point
	}
	return points
}

// eachDrawnImprovement is drawnImprovement outcome by outcome.
func eachDrawnImprovement(v *visitor, n int) float64 {
	sum := 0.0
	for i, normals := range v.outcomes {
		best := 0.0
		for _, l := range v.looks[:n] {
			outcome := make([]float64, len(v.known))
			for j := range outcome {
				outcome[j] = v.law(l, j, i/outcomes).Quantile(normals[j])
			}
			best = math.Max(best, v.fronts[i/outcomes].improvement(outcome))
		}
		sum += best / float64(len(v.outcomes))
	}
	return sum
}
