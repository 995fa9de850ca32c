package space

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"
	"pgregory.net/rapid"

	"github.com/dpareto/dpareto/internal/require"
)

func example() *Space {
	return &Space{Parameters: []Parameter{
		{Name: "epochs", Kind: Integer, Min: 1, Max: 64, Design: Uniform{}},
		{Name: "lot_size", Kind: Integer, Min: 8, Max: 512, Scale: Log, Design: Normal{Mean: 128, StdDev: 64}},
		{Name: "learning_rate", Kind: Double, Min: 1e-3, Max: 0.1, Scale: Log, Design: ShiftedExponential{Rate: 10, Shift: 1e-3}},
		{Name: "momentum", Kind: Discrete, Values: []float64{0, 0.5, 0.9, 0.99}},
		{Name: "optimizer", Kind: Categorical, Choices: []string{"sgd", "adam", "lamb"}},
	}}
}

func TestValidate(t *testing.T) {
	require.NoError(t, example().Validate())
	for _, tc := range []struct {
		name   string
		space  Space
		fields []string
	}{
		{"empty", Space{}, []string{"parameters"}},
		{"no kind, no name", Space{[]Parameter{{}}}, []string{"parameters[0].name", "parameters[0].kind"}},
		{"every violation", Space{[]Parameter{
			{Name: "a", Kind: Double, Min: 2, Max: 1, Levels: -1},
			{Name: "a", Kind: Integer, Min: 0.5, Max: 1 << 54},
			{Name: "b", Kind: Double, Min: math.NaN(), Max: math.Inf(1)},
			{Name: "c", Kind: Double, Min: 0, Max: 1, Scale: Log},
			{Name: "d", Kind: Discrete, Values: []float64{1, 1, math.Inf(1)}},
			{Name: "e", Kind: Discrete, Values: []float64{-1}, Scale: Log, Design: Uniform{}},
			{Name: "f", Kind: Categorical, Choices: []string{"x", "", "x"}, Scale: Log},
			{Name: "g", Kind: Categorical},
			{Name: "h", Kind: Double, Min: 0, Max: 1, Scale: 7},
			{Name: "i", Kind: Double, Min: -1e308, Max: 1e308},
			{Name: "j", Kind: Double, Min: 1e-300, Max: 1e300, Scale: Log},
			{Name: "k", Kind: Discrete, Values: []float64{1e-300, 1, 1e300}, Scale: Log},
		}}, []string{
			"parameters[0].max", "parameters[0].levels",
			"parameters[1].min", "parameters[1].max", "parameters[1].name",
			"parameters[2].min", "parameters[2].max",
			"parameters[3].min",
			"parameters[4].values[1]", "parameters[4].values[2]",
			"parameters[5].values[0]", "parameters[5].design",
			"parameters[6].choices[1]", "parameters[6].choices[2]", "parameters[6].scale",
			"parameters[7].choices",
			"parameters[8].scale",
			"parameters[9].max",
			"parameters[10].max",
			"parameters[11].values[2]",
		}},
		{"designs", Space{[]Parameter{
			{Name: "a", Kind: Double, Min: 0, Max: 1, Design: Uniform{AcceptMin: -1, AcceptMax: 2}},
			{Name: "b", Kind: Double, Min: 0, Max: 1, Design: LogUniform{}},
			{Name: "c", Kind: Double, Min: 0, Max: 1, Design: Normal{Mean: math.NaN(), StdDev: 0}},
			{Name: "d", Kind: Double, Min: 0, Max: 1, Design: Normal{Mean: 8, StdDev: 1}},
			{Name: "e", Kind: Double, Min: 0, Max: 1, Design: ShiftedExponential{Rate: 0, Shift: math.Inf(1)}},
			{Name: "f", Kind: Double, Min: 0, Max: 1, Design: ShiftedExponential{Rate: 1, Shift: 1}},
			{Name: "g", Kind: Double, Min: 0, Max: 1, Design: Uniform{AcceptMin: 0.5, AcceptMax: 0.5}},
			{Name: "h", Kind: Double, Min: 0, Max: 100, Design: ShiftedExponential{Rate: 1, AcceptMin: 50, AcceptMax: 60}},
		}}, []string{
			"parameters[0].design.accept_min", "parameters[0].design.accept_max",
			"parameters[1].design.accept_min",
			"parameters[2].design.mean", "parameters[2].design.std_dev",
			"parameters[3].design",
			"parameters[4].design.rate", "parameters[4].design.shift",
			"parameters[5].design",
			"parameters[6].design.accept_max",
			"parameters[7].design",
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.fields, fields(tc.space.Validate())); diff != "" {
				t.Errorf("violated fields (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContains(t *testing.T) {
	s := example()
	if err := s.Contains(Point{64, 8, 0.1, 0.9, 2}); err != nil {
		t.Error(err)
	}
	err := s.Contains(Point{1.5, 513, 0.2, 0.6, 3})
	want := []string{"parameters[0]", "parameters[1]", "parameters[2]", "parameters[3]", "parameters[4]"}
	if diff := cmp.Diff(want, fields(err)); diff != "" {
		t.Errorf("violated fields (-want +got):\n%s", diff)
	}
	if !strings.Contains(err.Error(), `"lot_size" in [8, 512]`) {
		t.Errorf("message %q does not name the parameter and its domain", err)
	}
	if diff := cmp.Diff([]string{"parameters"}, fields(s.Contains(Point{1}))); diff != "" {
		t.Errorf("violated fields (-want +got):\n%s", diff)
	}
	if err := s.Contains(Point{math.NaN(), 8, math.NaN(), math.NaN(), math.NaN()}); len(fields(err)) != 4 {
		t.Errorf("NaN accepted: %v", err)
	}
}

func fields(err error) []string {
	var list FieldErrors
	if !errors.As(err, &list) {
		return nil
	}
	var names []string
	for _, e := range list {
		names = append(names, e.Field)
	}
	return names
}

func TestFieldErrorsUnwrap(t *testing.T) {
	err := (&Space{}).Validate()
	var first FieldError
	if !errors.As(err, &first) || first.Field != "parameters" {
		t.Errorf("first violation = %+v, want the one of parameters", first)
	}
}

func TestEncode(t *testing.T) {
	s := example()
	if got := s.Dim(); got != 7 {
		t.Fatalf("Dim = %d, want 7", got)
	}
	got := s.Encode(nil, Point{1, 64, 0.01, 0.9, 1})
	want := []float64{0, 0.5, 0.5, 0.9 / 0.99, 0, 1, 0} // 64 = √(8·512), 0.01 = √(0.001·0.1)
	for i := range want {
		if math.Abs(got[i]-want[i]) > 1e-15 {
			t.Errorf("coordinate %d = %g, want %g", i, got[i], want[i])
		}
	}
	if p := s.Decode([]float64{-1, 2, math.NaN(), 0.8, 0.2, 0.1, 0.2}); !p.Equal(Point{1, 512, 1e-3, 0.9, 0}) {
		t.Errorf("Decode out of the cube = %v", p)
	}
}

func TestDecodeInvertsEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSpace(t)
		require.NoError(t, s.Validate())
		p := s.Sample(rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1)))
		require.NoError(t, s.Contains(p))
		u := s.Encode(nil, p)
		if len(u) != s.Dim() {
			t.Fatalf("%d coordinates, want %d", len(u), s.Dim())
		}
		for _, v := range u {
			if !(v >= 0 && v <= 1) {
				t.Fatalf("%v encodes to %v, outside the cube", p, u)
			}
		}
		q := s.Decode(u)
		for j := range p {
			if p[j] == q[j] {
				continue
			}
			par := &s.Parameters[j]
			if par.Kind != Double || math.Abs(p[j]-q[j]) > 1e-13*math.Max(math.Abs(par.Min), math.Abs(par.Max)) {
				t.Fatalf("%+v: %v decodes to %v", *par, p[j], q[j])
			}
		}
	})
}

func drawSpace(t *rapid.T) *Space {
	n := rapid.IntRange(1, 4).Draw(t, "parameters")
	s := &Space{}
	for i := range n {
		p := Parameter{Name: string(rune('a' + i)), Kind: Kind(rapid.IntRange(1, 4).Draw(t, "kind"))}
		p.Scale = Scale(rapid.IntRange(0, 1).Draw(t, "scale"))
		lo := rapid.Float64Range(1e-6, 1e6).Draw(t, "min")
		width := rapid.Float64Range(0, 1e6).Draw(t, "width")
		switch p.Kind {
		case Integer:
			p.Min, p.Max = math.Ceil(lo), math.Ceil(lo)+math.Floor(width)
		case Discrete:
			for v := lo; len(p.Values) < 5; v *= 1 + width {
				if len(p.Values) > 0 && v <= p.Values[len(p.Values)-1] {
					break
				}
				p.Values = append(p.Values, v)
			}
		case Categorical:
			p.Choices, p.Scale = []string{"x", "y", "z"}[:1+i%3], Linear
		default:
			p.Min, p.Max = lo, lo+width
		}
		s.Parameters = append(s.Parameters, p)
	}
	return s
}

// Integers and discretes go to the value nearest on the scale: on a log scale
// the border between 1 and 2 is √2.
func TestAtRounds(t *testing.T) {
	integer := Parameter{Name: "c", Kind: Integer, Min: 1, Max: 30, Scale: Log}
	discrete := Parameter{Name: "d", Kind: Discrete, Values: []float64{1, 2, 30}, Scale: Log}
	linear := Parameter{Name: "e", Kind: Integer, Min: 1, Max: 30}
	position := func(v float64) float64 { return math.Log(v) / math.Log(30) }
	for _, tc := range []struct {
		p    Parameter
		t    float64
		want float64
	}{
		{integer, position(math.Sqrt2 - 1e-9), 1},
		{integer, position(math.Sqrt2 + 1e-9), 2},
		{discrete, position(math.Sqrt2 - 1e-9), 1},
		{discrete, position(math.Sqrt2 + 1e-9), 2},
		{discrete, position(math.Sqrt(60) + 1e-6), 30},
		{linear, 0.4999 / 29, 1},
		{linear, 0.5001 / 29, 2},
		{linear, 1.7, 30},
	} {
		if got := tc.p.At(tc.t); got != tc.want {
			t.Errorf("%s at %g = %g, want %g", tc.p.Name, tc.t, got, tc.want)
		}
	}
}

// The grids of Avent et al., PoPETs 2020: three and four levels per parameter.
func TestGridValues(t *testing.T) {
	for _, tc := range []struct {
		name string
		p    Parameter
		want []float64
	}{
		{"epochs", Parameter{Kind: Integer, Min: 1, Max: 64}, []float64{1, 32, 64}},
		{"lot size", Parameter{Kind: Integer, Min: 8, Max: 512, Levels: 3}, []float64{8, 260, 512}},
		{"few integers", Parameter{Kind: Integer, Min: 3, Max: 4, Levels: 9}, []float64{3, 4}},
		{"log", Parameter{Kind: Double, Min: 1, Max: 100, Scale: Log, Levels: 3}, []float64{1, 10, 100}},
		{"one level", Parameter{Kind: Double, Min: 0, Max: 3, Levels: 1}, []float64{1.5}},
		{"merged levels", Parameter{Kind: Integer, Min: 1, Max: 4, Scale: Log, Levels: 4}, []float64{1, 2, 3, 4}},
		{"constant", Parameter{Kind: Double, Min: 2, Max: 2}, []float64{2}},
		{"discrete", Parameter{Kind: Discrete, Values: []float64{1, 5, 7, 8}, Levels: 2}, []float64{1, 5, 7, 8}},
		{"categorical", Parameter{Kind: Categorical, Choices: []string{"a", "b"}}, []float64{0, 1}},
	} {
		got := tc.p.GridValues()
		if !slices.EqualFunc(got, tc.want, func(a, b float64) bool { return math.Abs(a-b) <= 1e-12*b }) {
			t.Errorf("%s: levels %v, want %v", tc.name, got, tc.want)
		}
	}
}

// The distributions against direct rejection sampling from gonum's distributions, by the
// two-sample Kolmogorov-Smirnov statistic (critical value at 1e-4: 2.23·√(2/n)).
func TestDesignDistributions(t *testing.T) {
	const n = 20_000
	src := rand.NewPCG(7, 8)
	for _, tc := range []struct {
		name   string
		p      Parameter
		raw    func() float64
		lo, hi float64
	}{
		{"uniform", Parameter{Min: 1, Max: 64, Design: Uniform{}}, distuv.Uniform{Min: 0, Max: 70, Src: src}.Rand, 1, 64},
		{"log-uniform", Parameter{Min: 1e-3, Max: 100, Design: LogUniform{AcceptMin: 1e-2, AcceptMax: 100}},
			func() float64 { return math.Exp(distuv.Uniform{Min: -7, Max: 5, Src: src}.Rand()) }, 1e-2, 100},
		{"normal", Parameter{Min: 8, Max: 512, Design: Normal{Mean: 128, StdDev: 64}}, distuv.Normal{Mu: 128, Sigma: 64, Src: src}.Rand, 8, 512},
		{"normal above its mean", Parameter{Min: 0, Max: 9, Design: Normal{StdDev: 1, AcceptMin: 1.5, AcceptMax: 4}}, distuv.Normal{Sigma: 1, Src: src}.Rand, 1.5, 4},
		{"normal below its mean", Parameter{Min: -9, Max: 9, Design: Normal{Mean: 3, StdDev: 2, AcceptMin: -4, AcceptMax: 1}}, distuv.Normal{Mu: 3, Sigma: 2, Src: src}.Rand, -4, 1},
		{"shifted exponential", Parameter{Min: 0.1, Max: 12, Design: ShiftedExponential{Rate: 0.5, Shift: 0.1}},
			func() float64 { return 0.1 + distuv.Exponential{Rate: 0.5, Src: src}.Rand() }, 0.1, 12},
		{"shifted exponential beyond its shift", Parameter{Min: -1, Max: 12, Design: ShiftedExponential{Rate: 2, AcceptMin: 1, AcceptMax: 1.5}},
			distuv.Exponential{Rate: 2, Src: src}.Rand, 1, 1.5},
		{"shifted exponential before its shift", Parameter{Min: -1, Max: 12, Design: ShiftedExponential{Rate: 2, Shift: 1}},
			func() float64 { return 1 + distuv.Exponential{Rate: 2, Src: src}.Rand() }, 1, 12},
	} {
		for _, kind := range []Kind{Double, Integer} {
			tc.p.Name, tc.p.Kind = tc.name, kind
			s := &Space{Parameters: []Parameter{tc.p}}
			if err := s.Validate(); err != nil {
				if kind == Integer {
					continue // bounds that are not whole
				}
				t.Fatal(err)
			}
			rng := rand.New(rand.NewPCG(3, 4))
			got := make([]float64, n)
			want := make([]float64, n)
			for i := range got {
				got[i] = s.Sample(rng)[0]
				for {
					if v := tc.raw(); v > tc.lo && v < tc.hi {
						want[i] = v
						break
					}
				}
				if kind == Integer {
					want[i] = math.RoundToEven(want[i])
				} else if !(got[i] > tc.lo && got[i] < tc.hi) {
					t.Fatalf("%s: drew %g, not strictly inside (%g, %g)", tc.name, got[i], tc.lo, tc.hi)
				}
				if !tc.p.Contains(got[i]) {
					t.Fatalf("%s: drew %g outside the domain", tc.name, got[i])
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			if d := stat.KolmogorovSmirnov(got, nil, want, nil); d > 2.23*math.Sqrt(2.0/n) {
				t.Errorf("%s %v: Kolmogorov-Smirnov distance %g", tc.name, kind, d)
			}
		}
	}
}

// A uniform integer has half mass at its ends, the default distribution has not.
func TestIntegerDistributions(t *testing.T) {
	const n = 60_000
	for _, tc := range []struct {
		design Distribution
		want   [4]float64
	}{
		{Uniform{}, [4]float64{1.0 / 6, 1.0 / 3, 1.0 / 3, 1.0 / 6}},
		{nil, [4]float64{0.25, 0.25, 0.25, 0.25}},
	} {
		s := &Space{Parameters: []Parameter{{Name: "n", Kind: Integer, Min: 1, Max: 4, Design: tc.design}}}
		rng := rand.New(rand.NewPCG(5, 6))
		var counts [4]float64
		for range n {
			counts[int(s.Sample(rng)[0])-1]++
		}
		for i, c := range counts {
			if p := tc.want[i]; math.Abs(c/n-p) > 5*math.Sqrt(p*(1-p)/n) {
				t.Errorf("%T: frequency of %d = %g, want %g", tc.design, i+1, c/n, p)
			}
		}
	}
}

// Far in a tail the conditioned distribution has no rejected draws to loop over, and
// keeps its digits.
func TestTailQuantile(t *testing.T) {
	p := Parameter{Name: "x", Kind: Double, Min: 0, Max: 10, Design: Normal{StdDev: 1, AcceptMin: 5.5, AcceptMax: 10}}
	// Half of P(5.5 < Z < 10) lies beyond 5.62096329012546 (mpmath).
	if got := p.Quantile(0.5); math.Abs(got-5.62096329012546) > 1e-12 {
		t.Errorf("median beyond 5.5 = %.15g", got)
	}
	last := 5.5
	for u := 0.001; u < 1; u += 0.001 {
		v := p.Quantile(u)
		if v <= last || v >= 10 {
			t.Fatalf("quantile at %g = %g after %g", u, v, last)
		}
		last = v
	}
}

// Golden values: draws are part of every study's record and must not change.
func TestSampleGolden(t *testing.T) {
	s := example()
	rng := rand.New(rand.NewPCG(1, 2))
	var got []Point
	for range 3 {
		got = append(got, s.Sample(rng))
	}
	want := []Point{
		{49, 149, 0.06891512628676927, 0.99, 0},
		{4, 130, 0.03418475717548141, 0, 0},
		{43, 122, 0.09048841664042473, 0, 1},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("draws (-want +got):\n%s", diff)
	}
}

func TestShapePanics(t *testing.T) {
	s := example()
	for name, f := range map[string]func(){
		"Encode":   func() { s.Encode(nil, Point{1}) },
		"Decode":   func() { s.Decode([]float64{1}) },
		"Quantile": func() { s.Quantile([]float64{0.5}) },
		"Unit":     func() { s.Parameters[4].Unit(0) },
		"At":       func() { s.Parameters[4].At(0) },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			f()
		})
	}
}
