package nsga2_test

import (
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/nsga2"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/problems"
	"github.com/dpareto/dpareto/suggest/space"
)

// With 200 evaluations of ZDT1 the front of NSGA-II is far ahead of random search's.
func TestNSGA2BeatsRandom(t *testing.T) {
	p := problems.ZDT1(4)
	hypervolume := func(d suggest.Designer, seed uint64) float64 {
		h := simulated.Run(t, d, &p.Problem, 200, seed, func(q space.Point) suggest.Evaluation { return p.Observe(q, nil) })
		values := make([][]float64, len(h.Evaluations))
		for i := range values {
			values[i] = h.Evaluations[i].Values
		}
		return pareto.Hypervolume(values, p.Reference())
	}
	sum := 0.0
	for seed := range uint64(5) {
		random := hypervolume(random.New(), seed)
		nsga2 := hypervolume(nsga2.New(nsga2.Options{}), seed)
		t.Logf("seed %d: random %.3f, nsga2 %.3f of %.3f", seed, random, nsga2, p.MaxHypervolume)
		if !(nsga2 > random) {
			t.Errorf("seed %d: hypervolume %g, of random search %g", seed, nsga2, random)
		}
		sum += (p.MaxHypervolume - nsga2) / (p.MaxHypervolume - random) / 5
	}
	if !(sum < 0.5) {
		t.Errorf("on average %g of what is missing of random search's is missing", sum)
	}
}
