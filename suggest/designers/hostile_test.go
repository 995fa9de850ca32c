package designers_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/nsga2"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// hostileProblem varies what a problem can have with seed.
func hostileProblem(seed int) *suggest.Problem {
	p := simulated.NoiseTraining(32)
	p.Cost = suggest.Cost(seed % 3)
	if seed%4 == 0 {
		p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 1}}
	}
	if seed%5 == 0 {
		p.Objectives[1].Goal = suggest.Maximize
		p.Objectives[1].Reference = 0
	}
	if seed%7 == 0 {
		p.Objectives[1].Transform = suggest.Identity
	}
	return p
}

// hostileHistory returns runs whose values and standard errors are the worst that a
// float64 can hold about half of the time.
func hostileHistory(rng *rand.Rand, p *suggest.Problem) []suggest.Evaluation {
	values := []float64{0, 1, -1, 1e300, -1e300, 1e-300, math.Inf(1), math.Inf(-1), math.NaN(), 0.5, 0.2361, 5e-324}
	stdErrors := []float64{0, 0.01, math.NaN(), 1e200}
	var evaluations []suggest.Evaluation
	for run := range rng.IntN(14) {
		noise := math.Exp(-4.5 * rng.Float64())
		for epoch := range 1 + rng.IntN(5) {
			q := space.Point{noise, float64(epoch + 1)}
			e := suggest.Evaluation{Point: q, Values: []float64{noise * q[1], values[rng.IntN(len(values))]}, Run: int64(run + 1)}
			if rng.IntN(2) == 0 {
				e.Values[1] = 0.2 + 0.3*rng.Float64()
			}
			if len(p.Constraints) > 0 {
				e.Values = append(e.Values, values[rng.IntN(len(values))])
			}
			if rng.IntN(3) == 0 {
				e.StdErrors = make([]float64, len(e.Values))
				for j := range e.StdErrors {
					e.StdErrors[j] = stdErrors[rng.IntN(len(stdErrors))]
				}
				e.Runs = 1 + rng.IntN(3)
			}
			evaluations = append(evaluations, e)
		}
	}
	return evaluations
}

// Whatever was measured, a designer answers with points of the space, and a model is
// given up only where there is nothing to fit it to.
func TestHostileHistories(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for seed := range 60 {
		p := hostileProblem(seed)
		h := &suggest.History{
			Evaluations: hostileHistory(rng, p),
			Pending:     []space.Point{{0.5, 32}, {0.5, 32}},
			Infeasible:  []space.Point{{0.05, 3}},
		}
		if seed%3 == 0 {
			h.Prior, h.Evaluations = h.Evaluations, nil
		}
		for _, d := range []suggest.Designer{
			engine.New(engine.Options{InitialPoints: 1}),
			engine.NewEHVI(engine.Options{InitialPoints: 1}),
			dpareto.New(dpareto.Options{InitialPoints: 1}),
			nsga2.New(nsga2.Options{}),
		} {
			suggestions, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 2, Seed: 1, Number: 40})
			if err != nil || len(suggestions) != 2 {
				t.Errorf("history %d, %s: %d suggestions, error %v", seed, d.Name(), len(suggestions), err)
			}
			for _, s := range suggestions {
				if err := p.Space.Contains(s.Point); err != nil {
					t.Errorf("history %d, %s: %v", seed, d.Name(), err)
				}
				if d.Name() == "default" && s.FallbackReason != "" && !strings.HasSuffix(s.FallbackReason, "no finite value to fit a model to") {
					t.Errorf("history %d, %s fell back: %s", seed, d.Name(), s.FallbackReason)
				}
			}
		}
	}
}
