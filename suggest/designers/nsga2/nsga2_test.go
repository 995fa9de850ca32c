package nsga2

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/space"
)

// What a constant dominates or equals comes after everything that it does not.
func TestFrontsBesideConstants(t *testing.T) {
	all := []individual{
		{costs: []float64{1, 5}}, {costs: []float64{2, 3}}, {costs: []float64{3, 4}}, {costs: []float64{4, 1}},
	}
	constants := [][]float64{{0, 3}}
	if diff := cmp.Diff([][]int{{3}, {0, 1}, {2}}, fronts(all, constants, 4)); diff != "" {
		t.Errorf("fronts (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([][]int{{0, 1, 3}, {2}}, fronts(all, [][]float64{{0, 0}}, 4)); diff != "" {
		t.Errorf("all are dominated (-want +got):\n%s", diff)
	}
}

func TestFronts(t *testing.T) {
	at := func(violation float64, costs ...float64) individual {
		return individual{costs: costs, violation: violation}
	}
	for _, tc := range []struct {
		name   string
		all    []individual
		enough int
		want   [][]int
	}{
		// (1,5) (2,3) (4,1) | (3,4) (4,3) | (5,5) by hand; (2,3) twice.
		{"by dominance", []individual{at(0, 5, 5), at(0, 2, 3), at(0, 4, 1), at(0, 3, 4), at(0, 1, 5), at(0, 4, 3), at(0, 2, 3)}, 7,
			[][]int{{1, 2, 4, 6}, {3, 5}, {0}}},
		{"as far as needed", []individual{at(0, 5, 5), at(0, 2, 3), at(0, 3, 4)}, 2, [][]int{{1}, {2}}},
		{"violation before objectives", []individual{at(2, 0, 0), at(0.5, 1, 1), at(0, 9, 9), at(2, 5, 5), at(math.Inf(1), 0, 0)}, 9,
			[][]int{{2}, {1}, {0, 3}, {4}}},
		{"none", nil, 3, nil},
	} {
		if diff := cmp.Diff(tc.want, fronts(tc.all, nil, tc.enough)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestCrowdingDistances(t *testing.T) {
	inf := math.Inf(1)
	for _, tc := range []struct {
		name        string
		costs, want [][]float64
	}{
		// The second: (4-0)/10 + (10-3)/10; the third: (10-1)/10 + (5-0)/10.
		{"by hand", [][]float64{{0, 10}, {1, 5}, {4, 3}, {10, 0}}, [][]float64{{inf, 1.1, 1.4, inf}}},
		{"alone", [][]float64{{1, 2}}, [][]float64{{inf}}},
		{"equal points", [][]float64{{1, 2}, {1, 2}, {1, 2}}, [][]float64{{inf, 0, inf}}},
	} {
		if diff := cmp.Diff(tc.want[0], crowdingDistances(tc.costs), cmpopts.EquateApprox(0, 1e-12)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}

// Far from the bounds the spread of the children is the one of the paper: half of them lie
// between their parents, the density of the spread is (η+1)/2 β^η below 1 and
// (η+1)/2 β^-(η+2) above, and the mean stays.
func TestCrossover(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 0))
	const n = 20_000
	spreads := make([]float64, n)
	for i := range spreads {
		a, b := 0.49, 0.51
		if i%2 == 0 {
			a, b = b, a
		}
		first, second := crossover(a, b, rng.Float64())
		if math.Abs(first+second-1) > 1e-9 {
			t.Fatalf("children %v and %v of %v and %v", first, second, a, b)
		}
		if math.Abs(first-a) > math.Abs(first-b) {
			t.Fatalf("first child %v of %v and %v", first, a, b)
		}
		spreads[i] = math.Abs(first-second) / 0.02
	}
	slices.Sort(spreads)
	for _, q := range []float64{0.05, 0.25, 0.5, 0.75, 0.95} {
		want := math.Pow(2*q, 1.0/21)
		if q > 0.5 {
			want = math.Pow(1/(2*(1-q)), 1.0/21)
		}
		if got := stat.Quantile(q, stat.Empirical, spreads, nil); math.Abs(got/want-1) > 0.01 {
			t.Errorf("quantile %v of the spread is %v, want %v", q, got, want)
		}
	}
	for range 1000 { // near the bounds, and on them
		a, b := math.Round(5*rng.Float64())/5, rng.Float64()
		first, second := crossover(a, b, rng.Float64())
		if !(first >= 0 && first <= 1 && second >= 0 && second <= 1) {
			t.Fatalf("children %v and %v of %v and %v", first, second, a, b)
		}
	}
	if first, second := crossover(0.3, 0.3, 0.9); first != 0.3 || second != 0.3 {
		t.Errorf("children %v and %v of equal parents", first, second)
	}
}

// Far from the bounds the density of the step is (η+1)/2 (1-|δ|)^η.
func TestMutate(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 0))
	const n = 20_000
	steps := make([]float64, n)
	for i := range steps {
		steps[i] = mutate(0.5, rng.Float64()) - 0.5
	}
	slices.Sort(steps)
	for _, q := range []float64{0.05, 0.25, 0.4, 0.6, 0.75, 0.95} {
		want := math.Pow(2*q, 1.0/21) - 1
		if q > 0.5 {
			want = 1 - math.Pow(2*(1-q), 1.0/21)
		}
		if got := stat.Quantile(q, stat.Empirical, steps, nil); math.Abs(got-want) > 0.002 {
			t.Errorf("quantile %v of the step is %v, want %v", q, got, want)
		}
	}
	for range 1000 {
		at := math.Round(10*rng.Float64()) / 10
		if got := mutate(at, rng.Float64()); !(got >= 0 && got <= 1) {
			t.Fatalf("%v becomes %v", at, got)
		}
	}
	if mutate(0, 0) != 0 || mutate(1, math.Nextafter(1, 0)) != 1 {
		t.Error("a mutation leaves the bounds")
	}
}

// mixedProblem has a parameter of every kind.
func mixedProblem() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 1e-4, Max: 1, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64},
			{Name: "momentum", Kind: space.Discrete, Values: []float64{0, 0.5, 0.9}},
			{Name: "model", Kind: space.Categorical, Choices: []string{"a", "b", "c"}},
		}},
		Objectives: []suggest.Objective{{Name: "f", Goal: suggest.Minimize, Reference: 10}, {Name: "g", Goal: suggest.Maximize, Reference: 0}},
	}
}

func mixedHistory(p *suggest.Problem, n int) *suggest.History {
	rng := rand.New(rand.NewPCG(7, 7))
	h := &suggest.History{}
	for range n {
		values := []float64{10 * rng.Float64(), rng.Float64()}
		for range p.Constraints {
			values = append(values, rng.Float64())
		}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: p.Space.Sample(rng), Values: values})
	}
	return h
}

func TestNSGA2Population(t *testing.T) {
	p := mixedProblem()
	p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 0.5}}
	evaluate := func(rate, f, g, c float64) suggest.Evaluation {
		return suggest.Evaluation{Point: space.Point{rate, 1, 0, 0}, Values: []float64{f, g, c}}
	}
	h := &suggest.History{Evaluations: []suggest.Evaluation{
		evaluate(0.1, 1, 0.1, 0), // front, end
		evaluate(0.2, 5, 0.9, 0), // front, end
		evaluate(0.3, 2, 0.5, 0), // front, between
		evaluate(0.4, 6, 0.8, 0), // dominated by the second
		evaluate(0.5, 0, 1, 1),   // best of all, but violates c by 0.5
		evaluate(0.6, 0, 1, 0.6), // less
		evaluate(0.7, math.Inf(1), 1, 0),
		evaluate(0.8, 0, 1, math.NaN()),
	}}
	d := designer{Options{Population: 7}}
	got := make([]float64, 0, 7)
	for _, one := range d.population(p, h) {
		got = append(got, one.point[0])
	}
	if diff := cmp.Diff([]float64{0.1, 0.2, 0.3, 0.4, 0.6, 0.5, 0.8}, got); diff != "" {
		t.Errorf("population (-want +got):\n%s", diff)
	}
	d.options.Population = 2
	if got := d.population(p, h); len(got) != 2 || got[1].point[0] != 0.2 {
		t.Errorf("population of two: %v", got)
	}
}

func TestNSGA2Request(t *testing.T) {
	p := mixedProblem()
	p.Allowed = func(q space.Point) bool { return q[0] < 0.5 || q[3] != 0 }
	h := mixedHistory(p, 60)
	d := New(Options{})
	r := suggest.Request{Count: 40, Seed: 3, Number: 61}
	batch, err := d.Suggest(t.Context(), p, h, r)
	require.NoError(t, err)
	tried := h.Tried()
	sequential := *h
	for i, s := range batch {
		if err := p.Space.Contains(s.Point); err != nil || !p.Allowed(s.Point) || tried.Contains(s.Point) || s.Designer != "nsga2" {
			t.Errorf("suggestion %d: %+v: %v", i, s, err)
		}
		tried.Add(s.Point)
		one, err := d.Suggest(t.Context(), p, &sequential, suggest.Request{Count: 1, Seed: 3, Number: 61 + int64(i)})
		require.NoError(t, err)
		if diff := cmp.Diff(s, one[0]); diff != "" {
			t.Errorf("suggestion %d with the earlier pending (-batch +single):\n%s", i, diff)
		}
		sequential.Pending = append(sequential.Pending, s.Point)
	}
	again, err := d.Suggest(t.Context(), p, h, r)
	if err != nil || cmp.Diff(batch, again) != "" {
		t.Errorf("the same request gives other suggestions: %v", err)
	}
	r.Seed++
	if other, _ := d.Suggest(t.Context(), p, h, r); cmp.Diff(batch, other) == "" {
		t.Error("another seed gives the same suggestions")
	}
}

func TestNSGA2Initial(t *testing.T) {
	p := mixedProblem()
	h := mixedHistory(p, 3)
	for i := range h.Evaluations {
		h.Evaluations[i].Run = 9 // three checkpoints of one run
	}
	h.Infeasible = []space.Point{{0.1, 1, 0, 0}}
	h.Pending = []space.Point{{0.2, 1, 0, 0}}
	got, err := New(Options{InitialPoints: 5}).Suggest(t.Context(), p, h, suggest.Request{Count: 4, Seed: 1, Number: 4})
	require.NoError(t, err)
	names := make([]string, len(got))
	for i, s := range got {
		names[i] = s.Designer
	}
	if diff := cmp.Diff([]string{"random", "random", "nsga2", "nsga2"}, names); diff != "" {
		t.Errorf("designers (-want +got):\n%s", diff)
	}
	// The initial points are the random designer's.
	random, err := random.New().Suggest(t.Context(), p, h, suggest.Request{Count: 2, Seed: 1, Number: 4})
	if err != nil || !got[0].Point.Equal(random[0].Point) || !got[1].Point.Equal(random[1].Point) {
		t.Errorf("initial points %v, of random search %v: %v", got[:2], random, err)
	}
}

// Every point of a small space is suggested once, and no other.
func TestNSGA2Exhausted(t *testing.T) {
	p := &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "n", Kind: space.Integer, Min: 1, Max: 20},
			{Name: "c", Kind: space.Categorical, Choices: []string{"a", "b"}},
		}},
		Objectives: []suggest.Objective{{Name: "f", Goal: suggest.Minimize, Reference: 100}},
		Allowed:    func(q space.Point) bool { return q[0] != 7 },
	}
	h := &suggest.History{}
	d := New(Options{Population: 4})
	for number := int64(1); ; number++ {
		s, err := d.Suggest(t.Context(), p, h, suggest.Request{Count: 1, Number: number})
		if errors.Is(err, suggest.ErrExhausted) {
			break
		}
		if err != nil || !p.Allowed(s[0].Point) || h.Tried().Contains(s[0].Point) {
			t.Fatalf("suggestion %d: %v, %v", number, s, err)
		}
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: s[0].Point, Values: []float64{s[0].Point[0]}})
	}
	if len(h.Evaluations) != 38 {
		t.Errorf("%d configurations are suggested, want 38", len(h.Evaluations))
	}
}

func TestNSGA2Options(t *testing.T) {
	for _, o := range []Options{{Population: 1}, {Population: -1}, {InitialPoints: -1}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%+v does not panic", o)
				}
			}()
			New(o)
		}()
	}
}
