package space

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

// conditional is a space whose parameters stand before their parents.
func conditional() *Space {
	return &Space{Parameters: []Parameter{
		{Name: "beta", Kind: Double, Min: 0.5, Max: 0.9, Condition: &Condition{Parent: 2, Values: []float64{1}}},
		{Name: "width", Kind: Discrete, Values: []float64{16, 64}, Condition: &Condition{Parent: 4, Values: []float64{2, 3}}},
		{Name: "optimizer", Kind: Categorical, Choices: []string{"sgd", "adam"}, Condition: &Condition{Parent: 3, Values: []float64{0}}},
		{Name: "model", Kind: Categorical, Choices: []string{"network", "forest"}},
		{Name: "layers", Kind: Integer, Min: 1, Max: 3, Condition: &Condition{Parent: 3, Values: []float64{0}}},
		{Name: "split", Kind: Categorical, Choices: []string{"gini", "entropy", "error"}, Condition: &Condition{Parent: 3, Values: []float64{1}}},
	}}
}

func TestActive(t *testing.T) {
	s := conditional()
	require.NoError(t, s.Validate())
	if diff := cmp.Diff([]int{3, 2, 0, 4, 1, 5}, s.Order()); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	for _, tc := range []struct {
		point, canonical Point
		active           string
	}{
		{Point{0.7, 64, 1, 0, 2, 2}, Point{0.7, 64, 1, 0, 2, 0}, "beta width optimizer model layers"},
		{Point{0.7, 64, 0, 0, 1, 2}, Point{0.5, 16, 0, 0, 1, 0}, "optimizer model layers"},
		// adam and three layers say nothing where there is no network.
		{Point{0.7, 64, 1, 1, 3, 2}, Point{0.5, 16, 0, 1, 1, 2}, "model split"},
	} {
		var active []string
		for j := range s.Parameters {
			if s.Active(tc.point, j) {
				active = append(active, s.Parameters[j].Name)
			}
			if s.Active(tc.point, j) != s.Active(tc.canonical, j) {
				t.Errorf("%s exists at one of %v and its canonical form %v", s.Parameters[j].Name, tc.point, tc.canonical)
			}
		}
		if got := strings.Join(active, " "); got != tc.active {
			t.Errorf("%v has %s, want %s", tc.point, got, tc.active)
		}
		if err := s.Contains(tc.point); err == nil {
			t.Errorf("%v is not canonical and accepted", tc.point)
		}
		if got := s.Canonical(tc.point.Clone()); !got.Equal(tc.canonical) {
			t.Errorf("%v becomes %v, want %v", tc.point, got, tc.canonical)
		}
		if err := s.Contains(tc.canonical); err != nil {
			t.Error(err)
		}
	}
	err := s.Contains(Point{0.5, 64, 0, 1, 1, 2})
	if diff := cmp.Diff([]string{"parameters[1]"}, fields(err)); diff != "" || !strings.Contains(err.Error(), `"width" does not exist`) {
		t.Errorf("error %v", err)
	}
}

func TestValidateConditions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func([]Parameter)
		fields []string
	}{
		{"no such parent", func(p []Parameter) { p[0].Condition.Parent = 6 }, []string{"parameters[0].condition.parent"}},
		{"double parent", func(p []Parameter) { p[1].Condition.Parent = 0 }, []string{"parameters[1].condition.parent"}},
		{"itself", func(p []Parameter) { p[4].Condition.Parent = 4 }, []string{"parameters[4].condition.parent"}},
		{"circle", func(p []Parameter) { p[3].Condition = &Condition{Parent: 2, Values: []float64{0}} },
			[]string{"parameters[2].condition.parent", "parameters[3].condition.parent"}},
		{"no values", func(p []Parameter) { p[0].Condition.Values = nil }, []string{"parameters[0].condition.values"}},
		{"bad values", func(p []Parameter) { p[1].Condition.Values = []float64{2, 4, math.NaN(), 2} },
			[]string{"parameters[1].condition.values[1]", "parameters[1].condition.values[2]", "parameters[1].condition.values[3]"}},
	} {
		s := conditional()
		tc.change(s.Parameters)
		if diff := cmp.Diff(tc.fields, fields(s.Validate())); diff != "" {
			t.Errorf("%s: violated fields (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestBranches(t *testing.T) {
	var got []Point
	for p := range conditional().Branches() {
		got = append(got, p)
	}
	want := []Point{ // in the order of model, optimizer, layers
		{0.5, 16, 0, 0, 1, 0},
		{0.5, 16, 0, 0, 2, 0},
		{0.5, 16, 1, 0, 1, 0},
		{0.5, 16, 1, 0, 2, 0},
		{0.5, 16, 0, 1, 1, 0},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
}

// A parent with very many values is not walked through.
func TestLargeParent(t *testing.T) {
	s := &Space{Parameters: []Parameter{
		{Name: "n", Kind: Integer, Min: 0, Max: 1 << 50},
		{Name: "child", Kind: Categorical, Choices: []string{"a", "b", "c"}, Condition: &Condition{Parent: 0, Values: []float64{0, 1, 1 << 40}}},
	}}
	// 2^50 + 1 - 3 values without the child and 3 with three points each.
	if got, want := s.Cardinality(), float64(1<<50+7); got != want {
		t.Errorf("cardinality %g, want %g", got, want)
	}
	var got []Point
	for p := range s.Branches() {
		got = append(got, p)
	}
	if diff := cmp.Diff([]Point{{0, 0}, {2, 0}}, got); diff != "" {
		t.Errorf("branches (-want +got):\n%s", diff)
	}
}

// drawConditional draws a space with conditions at random; if finite is true,
// without doubles and small.
func drawConditional(t *rapid.T, finite bool) *Space {
	n := rapid.IntRange(1, 6).Draw(t, "parameters")
	ranks := rapid.Permutation(slices.Collect(func(yield func(int) bool) {
		for i := range n {
			if !yield(i) {
				return
			}
		}
	})).Draw(t, "ranks") // a parent has a lower rank than its children
	s := &Space{Parameters: make([]Parameter, n)}
	least := Double
	if finite {
		least = Integer
	}
	for i := range s.Parameters {
		p := Parameter{Name: fmt.Sprintf("p%d", i), Kind: Kind(rapid.IntRange(int(least), int(Categorical)).Draw(t, "kind"))}
		switch p.Kind {
		case Categorical:
			p.Choices = []string{"x", "y", "z"}[:rapid.IntRange(1, 3).Draw(t, "choices")]
		case Discrete:
			p.Values = []float64{0.5, 2, 3}[:rapid.IntRange(1, 3).Draw(t, "values")]
		default:
			p.Min = float64(rapid.IntRange(1, 3).Draw(t, "min"))
			p.Max = p.Min + float64(rapid.IntRange(0, 3).Draw(t, "width"))
			p.Scale = Scale(rapid.IntRange(0, 1).Draw(t, "scale"))
		}
		s.Parameters[i] = p
	}
	for i := range s.Parameters {
		var parents []int
		for j := range s.Parameters {
			if ranks[j] < ranks[i] && s.Parameters[j].Kind != Double {
				parents = append(parents, j)
			}
		}
		if len(parents) == 0 || rapid.IntRange(0, 3).Draw(t, "free") == 0 {
			continue
		}
		c := &Condition{Parent: rapid.SampledFrom(parents).Draw(t, "parent")}
		parent := &s.Parameters[c.Parent]
		count := int(parent.Count())
		for v := range count {
			if rapid.Bool().Draw(t, "listed") {
				c.Values = append(c.Values, parent.Value(v))
			}
		}
		if len(c.Values) == 0 {
			c.Values = []float64{parent.Value(rapid.IntRange(0, count-1).Draw(t, "value"))}
		}
		s.Parameters[i].Condition = c
	}
	return s
}

// What holds in every space with conditions, for random points, canonical or not.
func TestConditionalProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawConditional(t, false)
		require.NoError(t, s.Validate())
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		sample := s.Sample(rng)
		require.NoError(t, s.Contains(sample))
		raw := make(Point, len(s.Parameters)) // any values where there are none
		u := make([]float64, len(raw))
		for j := range raw {
			u[j] = 1e-3 + 0.998*rng.Float64()
			raw[j] = s.Parameters[j].Quantile(u[j])
		}
		canonical := s.Canonical(raw.Clone())
		require.NoError(t, s.Contains(canonical))
		if q := s.Quantile(u); !q.Equal(canonical) {
			t.Fatalf("quantile %v, want %v", q, canonical)
		}
		if (s.Contains(raw) == nil) != raw.Equal(canonical) {
			t.Fatalf("%v is contained: %v; its canonical form is %v", raw, s.Contains(raw), canonical)
		}
		x := s.Encode(nil, raw)
		if diff := cmp.Diff(s.Encode(nil, canonical), x); diff != "" {
			t.Fatalf("encodings of %v and its canonical form differ:\n%s", raw, diff)
		}
		back := s.Decode(x)
		require.NoError(t, s.Contains(back))
		for j := range back {
			if math.Abs(back[j]-canonical[j]) > 1e-12 {
				t.Fatalf("%v is encoded and decoded to %v, want %v", raw, back, canonical)
			}
		}
		for j := range x {
			x[j] = rng.Float64()
		}
		require.NoError(t, s.Contains(s.Decode(x)))
	})
}

// Cardinality and Product agree with the different canonical forms of the full
// Cartesian product, and Branches with the sets of parameters that exist there.
func TestConditionalEnumeration(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawConditional(t, true)
		want := make(map[string]bool)
		branches := make(map[string]bool)
		free := &Space{Parameters: slices.Clone(s.Parameters)}
		counts := make([]float64, len(s.Parameters))
		for j := range free.Parameters {
			free.Parameters[j].Condition = nil
			counts[j] = free.Parameters[j].Count()
		}
		for p := range free.Product(counts, func(j, i int) float64 { return s.Parameters[j].Value(i) }) {
			want[fmt.Sprint(s.Canonical(p))] = true
			branches[branch(s, p)] = true
		}
		if got := s.Cardinality(); got != float64(len(want)) {
			t.Fatalf("cardinality %g, want %d", got, len(want))
		}
		got := make(map[string]bool)
		for p := range s.Product(counts, func(j, i int) float64 { return s.Parameters[j].Value(i) }) {
			if k := fmt.Sprint(p); got[k] || !want[k] {
				t.Fatalf("%s occurs twice or is not canonical", k)
			} else {
				got[k] = true
			}
		}
		if len(got) != len(want) {
			t.Fatalf("%d points, want %d", len(got), len(want))
		}
		for p := range s.Branches() {
			require.NoError(t, s.Contains(p))
			if k := branch(s, p); !branches[k] {
				t.Fatalf("branch %s occurs twice or does not exist", k)
			} else {
				delete(branches, k)
			}
		}
		if len(branches) > 0 {
			t.Fatalf("missing branches: %v", branches)
		}
	})
}

// branch names the parameters that exist at p.
func branch(s *Space, p Point) string {
	var names []string
	for j := range s.Parameters {
		if s.Active(p, j) {
			names = append(names, s.Parameters[j].Name)
		}
	}
	return strings.Join(names, " ")
}

// A fixed parameter has one value everywhere, and keeps its place on the scale.
func TestFixedParameter(t *testing.T) {
	four, second := 4.0, 1.0
	s := &Space{Parameters: []Parameter{
		{Name: "n", Kind: Integer, Min: 1, Max: 16, Scale: Log, Fixed: &four},
		{Name: "x", Kind: Double, Min: 0, Max: 1, Condition: &Condition{Parent: 2, Values: []float64{1}}},
		{Name: "c", Kind: Categorical, Choices: []string{"a", "b", "c"}, Fixed: &second},
		{Name: "m", Kind: Integer, Min: 0, Max: 2, Condition: &Condition{Parent: 2, Values: []float64{0, 1}}},
	}}
	require.NoError(t, s.Validate())
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		p := s.Sample(rng)
		if p[0] != 4 || p[2] != 1 || s.Contains(p) != nil {
			t.Fatalf("sample %v: %v", p, s.Contains(p))
		}
	}
	free := &Space{Parameters: slices.Clone(s.Parameters)}
	for j := range free.Parameters {
		free.Parameters[j].Fixed = nil
	}
	for range 100 {
		p := free.Sample(rng)
		if got, want := s.Encode(nil, p), free.Encode(nil, p); !slices.Equal(got, want) {
			t.Errorf("%v: encoded as %v, want %v", p, got, want)
		}
		if q := s.Canonical(p.Clone()); q[0] != 4 || q[2] != 1 {
			t.Errorf("canonical form %v", q)
		}
	}
	s.Parameters[1].Kind, s.Parameters[1].Max = Integer, 3
	points := 0
	for range s.Product([]float64{1, 4, 1, 3}, func(j, i int) float64 { return s.Parameters[j].Value(i) }) {
		points++
	}
	if n := s.Cardinality(); n != 12 || points != 12 {
		t.Errorf("%g points, listed %d, want 12", n, points)
	}
	bad := 17.0
	s.Parameters[0].Fixed = &bad
	if err := s.Validate(); err == nil {
		t.Error("a fixed value outside of the domain is valid")
	}
}
