package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestApproximateMuValues compares with values of an independent program (numpy, discretised
// losses), for runs of DP-SGD and δ = 1e-6.
func TestApproximateMuValues(t *testing.T) {
	mu, err := ApproximateMu(FixedSizeGaussian{32561, 256, 4}, 1270, 1e-10)
	if err != nil || math.Abs(mu-0.07788) > 1e-5 {
		t.Errorf("mu %.6f, %v, want 0.07788", mu, err)
	}
	for runs, want := range map[float64]float64{1: 0.3037, 3: 0.547, 7: 0.861, 64: 2.874} {
		if got := gaussianEpsilon(mu*math.Sqrt(runs), math.Log(1e-6-runs*1e-10)); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g runs: epsilon %.4f, want %g", runs, got, want)
		}
	}
	// A heavy tail makes it loose: 13 and 25 percent above the ε of a run.
	for _, tt := range []struct {
		m     FixedSizeGaussian
		steps int64
		above float64
	}{{FixedSizeGaussian{32561, 64, 1}, 2540, 1.13}, {FixedSizeGaussian{32561, 600, 1}, 109, 1.25}} {
		mu, err := ApproximateMu(tt.m, tt.steps, 1e-10)
		if err != nil {
			t.Fatal(err)
		}
		got := gaussianEpsilon(mu, math.Log(1e-6-1e-10)) / epsilonOf(t, Exact{}, tt.m, tt.steps, 1e-6).Epsilon
		if math.Abs(got-tt.above) > 0.02 {
			t.Errorf("%+v: %.3f times the ε of a run, want %g", tt.m, got, tt.above)
		}
	}
}

// TestGaussianFilterAdmits: the same program, on coarser losses, gave 9, 33, 114 and 375 runs.
func TestGaussianFilterAdmits(t *testing.T) {
	m := FixedSizeGaussian{32561, 256, 4}
	for _, tt := range []struct {
		epsilon float64
		runs    int64
	}{{1, 9}, {2, 33}, {4, 115}, {8, 386}} {
		budget, err := NewGaussianBudget(tt.epsilon, 1e-6, 1000)
		if err != nil {
			t.Fatal(err)
		}
		cost, err := budget.Cost(m, 1270)
		if err != nil {
			t.Fatal(err)
		}
		if got := int64(budget.Squared / cost); got != tt.runs {
			t.Errorf("ε = %g: %d runs, want %d", tt.epsilon, got, tt.runs)
		}
	}
}

func TestGaussianFilter(t *testing.T) {
	f, err := NewGaussianFilter(2, 1e-6, 400, AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	m := Gaussian{1, 20, AddRemove}
	admitted := int64(0)
	for {
		ok, err := f.Spend(m, 1)
		if err != nil {
			t.Fatal(err)
		}
		if !ok {
			break
		}
		admitted++
	}
	mu, err := GaussianMu(2, 1e-6)
	if err != nil {
		t.Fatal(err)
	}
	if most := int64(mu * mu * 400); admitted > most || admitted < most-1 {
		t.Errorf("%d runs were admitted; Gaussian DP allows %d", admitted, most)
	}
	if g := f.Guarantee(); g.Epsilon != 2 || g.Delta != 1e-6 || g.Steps != admitted || g.Adjacency != AddRemove || g.Accountant != "gdp_filter" {
		t.Errorf("guarantee %+v", g)
	}
	// Accesses that cost next to nothing are counted, since each has a slack.
	f, err = NewGaussianFilter(2, 1e-6, 40, AddRemove)
	if err != nil {
		t.Fatal(err)
	}
	admitted = 0
	for range 50 {
		if ok, err := f.Spend(Gaussian{1, 1e6, AddRemove}, 1); err != nil {
			t.Fatal(err)
		} else if ok {
			admitted++
		}
	}
	if admitted != 40 {
		t.Errorf("%d accesses were admitted, want 40", admitted)
	}
	for _, tt := range []struct {
		epsilon, delta float64
		accesses       int64
		adjacency      Adjacency
		field          string
	}{
		{-1, 1e-6, 9, AddRemove, "epsilon"}, {1, 0, 9, AddRemove, "delta"}, {1, 1e-6, 0, AddRemove, "accesses"}, {1, 1e-6, 9, 0, "adjacency"},
	} {
		_, err := NewGaussianFilter(tt.epsilon, tt.delta, tt.accesses, tt.adjacency)
		if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != tt.field {
			t.Errorf("%+v: %v", tt, err)
		}
	}
}

func TestApproximateMuErrors(t *testing.T) {
	g := Gaussian{1, 1, AddRemove}
	for field, f := range map[string]func() (float64, error){
		"mechanism":          func() (float64, error) { return ApproximateMu(nil, 1, 0.1) },
		"steps":              func() (float64, error) { return ApproximateMu(g, 0, 0.1) },
		"slack":              func() (float64, error) { return ApproximateMu(g, 1, math.NaN()) },
		"standard_deviation": func() (float64, error) { return ApproximateMu(Gaussian{1, 0, AddRemove}, 1, 0.1) },
	} {
		_, err := f()
		if fields := FieldErrors(err); len(fields) != 1 || fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	if mu, err := ApproximateMu(PoissonGaussian{0.5, 0.01, AddRemove, false}, 1000, 1e-10); err != nil || !math.IsInf(mu, 1) {
		t.Errorf("hardly any noise: %g, %v", mu, err)
	}
}

// TestApproximateMuDominates checks the profiles of runs of mechanisms between the points at which
// ApproximateMu looks at them, and that no much smaller μ would do.
func TestApproximateMuDominates(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 1))
	for range 4 {
		slack := math.Pow(10, -4-8*rng.Float64())
		z, steps := math.Exp(2*rng.Float64()), 1+rng.Int64N(1000)
		for _, m := range []Mechanism{
			FixedSizeGaussian{1000, 1 + rng.Int64N(300), z},
			PoissonGaussian{0.3 * rng.Float64(), z, AddRemove, false},
			Laplace{Sensitivity: 1, Scale: 20 + 100*rng.Float64(), Neighbours: AddRemove},
		} {
			if _, ok := m.(Laplace); ok {
				steps = 1 + steps%10
			}
			mu, err := ApproximateMu(m, steps, slack)
			if err != nil {
				t.Fatal(err)
			}
			if math.IsInf(mu, 1) {
				continue
			}
			curve, err := (Tightest{}).Curve(m)
			if err != nil {
				t.Fatal(err)
			}
			for range 40 {
				delta := math.Pow(slack, rng.Float64())
				g, err := curve.Epsilon(steps, delta)
				if err != nil {
					t.Fatal(err)
				}
				if g.Epsilon == 0 {
					continue
				}
				logDelta, _ := gaussianProfile(mu, g.Epsilon)
				if bound := slack + (1-slack)*math.Exp(logDelta); delta > bound*(1+1e-6) {
					t.Errorf("%+v, %d steps, slack %g: δ(%g) = %g, but %g with μ = %g", m, steps, slack, g.Epsilon, delta, bound, mu)
				}
			}
		}
	}
}

// finiteMechanism has finitely many outputs; p and q are their probabilities on two data sets.
type finiteMechanism struct {
	p, q []float64
	cost float64 // μ² of approximateMu
}

// reversed swaps the data sets.
func (m finiteMechanism) reversed() finiteMechanism { return finiteMechanism{m.q, m.p, m.cost} }

// finiteMu is ApproximateMu of a mechanism with finitely many outputs.
func finiteMu(t *testing.T, p, q []float64, slack float64) float64 {
	t.Helper()
	mu := 0.0
	for _, pair := range [][2][]float64{{p, q}, {q, p}} {
		one, err := approximateMu(func(logDelta float64) (float64, error) {
			lo, hi := 0.0, 100.0
			if hockeyStick(pair[0], pair[1], 0) <= math.Exp(logDelta) {
				return 0, nil
			}
			for range 80 {
				if mid := 0.5 * (lo + hi); hockeyStick(pair[0], pair[1], mid) <= math.Exp(logDelta) {
					hi = mid
				} else {
					lo = mid
				}
			}
			return hi, nil
		}, slack)
		if err != nil {
			t.Fatal(err)
		}
		mu = math.Max(mu, one)
	}
	return mu
}

// mostAdaptive returns δ(ε) of the worst of all searches that choose the next mechanism from the
// outputs so far among those that admits allows, as often as depth. path holds the mechanisms used.
func mostAdaptive(mechanisms []finiteMechanism, epsilon, loss float64, depth int, path []int, admits func([]int) bool) float64 {
	worst := math.Max(0, -math.Expm1(epsilon-loss))
	if depth == 0 {
		return worst
	}
	for i, m := range mechanisms {
		next := append(slices.Clone(path), i)
		if !admits(next) {
			continue
		}
		var delta float64
		for o, p := range m.p {
			if p > 0 {
				delta += p * mostAdaptive(mechanisms, epsilon, loss+math.Log(p/m.q[o]), depth-1, next, admits)
			}
		}
		worst = math.Max(worst, delta)
	}
	return worst
}

// composedDelta returns δ(ε) of mechanisms fixed in advance.
func composedDelta(mechanisms []finiteMechanism, path []int, epsilon, loss float64) float64 {
	if len(path) == 0 {
		return math.Max(0, -math.Expm1(epsilon-loss))
	}
	var delta float64
	m := mechanisms[path[0]]
	for o, p := range m.p {
		if p > 0 {
			delta += p * composedDelta(mechanisms, path[1:], epsilon, loss+math.Log(p/m.q[o]))
		}
	}
	return delta
}

// randomMechanisms returns mechanisms whose probabilities differ a little between the data sets.
func randomMechanisms(t *testing.T, rng *rand.Rand, n int, slack float64) []finiteMechanism {
	t.Helper()
	var mechanisms []finiteMechanism
	for range n {
		outputs := 2 + rng.IntN(3)
		p, q := randomOutputs(rng, outputs), make([]float64, outputs)
		scale, sum := 0.1+rng.Float64(), 0.0
		for i := range q {
			q[i] = p[i] * math.Exp(scale*rng.NormFloat64())
			sum += q[i]
		}
		for i := range q {
			q[i] /= sum
		}
		mu := finiteMu(t, p, q, slack)
		mechanisms = append(mechanisms, finiteMechanism{p, q, mu * mu})
	}
	return mechanisms
}

// TestAdaptiveSearchUnderFilters computes what the worst adaptive search shows, exactly, of random
// mechanisms with few outputs: the Gaussian filter keeps its word, the least δ for its budget. The
// filter that composes what was used exactly and stops at its ε and δ does not.
func TestAdaptiveSearchUnderFilters(t *testing.T) {
	rng := rand.New(rand.NewPCG(23, 2))
	const slack, depth, searches = 1e-6, 3, 150
	natural, closest := 0, 0.0
	for range searches {
		mechanisms := randomMechanisms(t, rng, 3, slack)
		budget := mechanisms[0].cost * (1 + 2*rng.Float64())
		if budget == 0 {
			continue
		}
		epsilon := math.Sqrt(budget) * 2 * rng.Float64()
		logDelta, _ := gaussianProfile(math.Sqrt(budget), epsilon)
		declared := depth*slack + math.Exp(logDelta)
		for _, orientation := range []func(finiteMechanism) finiteMechanism{
			func(m finiteMechanism) finiteMechanism { return m }, finiteMechanism.reversed,
		} {
			var oriented []finiteMechanism
			for _, m := range mechanisms {
				oriented = append(oriented, orientation(m))
			}
			gaussian := mostAdaptive(oriented, epsilon, 0, depth, nil, func(path []int) bool {
				spent := 0.0
				for _, i := range path {
					spent += oriented[i].cost
				}
				return spent <= budget
			})
			closest = math.Max(closest, gaussian/declared)
			exact := mostAdaptive(oriented, epsilon, 0, depth, nil, func(path []int) bool {
				return composedDelta(oriented, path, epsilon, 0) <= declared
			})
			if exact > declared*(1+1e-9) {
				natural++
			}
		}
	}
	t.Logf("%.3g of the declared δ at most; the natural filter breaks %d of %d", closest, natural, 2*searches)
	if closest > 1 {
		t.Errorf("a search under the Gaussian filter shows %g times the declared δ", closest)
	}
	if closest < 0.5 || natural < 10 {
		t.Error("the searches find too little")
	}
}

// TestNaturalFilterIsNotPrivate is such a search by hand. After randomised response with ε = 1, one
// goes on with another one of ε = 1/2 if the answer was "yes", and shows everything with probability
// .179 if it was "no". Both compositions have δ(1) = .179; the search has .227.
func TestNaturalFilterIsNotPrivate(t *testing.T) {
	response := func(epsilon float64) finiteMechanism {
		yes := 1 / (1 + math.Exp(-epsilon))
		return finiteMechanism{p: []float64{yes, 1 - yes}, q: []float64{1 - yes, yes}}
	}
	first, second := response(1), response(0.5)
	delta := composedDelta([]finiteMechanism{first, second}, []int{0, 1}, 1, 0)
	shown := finiteMechanism{p: []float64{delta, 0, 1 - delta}, q: []float64{0, delta, 1 - delta}}
	all := []finiteMechanism{first, second, shown}
	admits := func(path []int) bool {
		return len(path) > 0 && path[0] == 0 && composedDelta(all, path, 1, 0) <= delta*(1+1e-12)
	}
	if got := composedDelta(all, []int{0, 2}, 1, 0); math.Abs(got-delta) > 1e-12 || math.Abs(delta-0.179) > 5e-4 {
		t.Fatalf("δ(1) = %.4f and %.4f, want .179", delta, got)
	}
	if got := mostAdaptive(all, 1, 0, 2, nil, admits); math.Abs(got-0.227) > 5e-4 {
		t.Errorf("δ(1) = %.4f of the search, want .227", got)
	}
}
