package expression

import (
	"math"
	"math/rand/v2"
	"testing"
)

// natives are expressions that have a Go form.
var natives = []string{
	"n", "x", "40000", "-3", "2.5", "n * 3 + m", "n / m", "n % m", "-n", "-x", "double(n) / double(m)", "int(x)", "int(-x)",
	"math.sqrt(x)", "math.sqrt(n)", "math.abs(x - y)", "math.abs(n - m)", "math.exp(y)", "math.log(x)", "math.pow(x, y)",
	"math.ceil(x)", "math.floor(y)", "math.round(x)", "math.trunc(y)", "x / y", "x * y - 1.5", "n * n * n * n * n * n", "int(math.ceil(x / 3.0))",
}

// The Go form is the CEL program at random values, errors included.
func TestNative(t *testing.T) {
	environment, err := NewEnvironment([]Variable{{"c", String}, {"n", Int}, {"m", Int}, {"x", Double}, {"y", Double}})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for _, source := range natives {
		number, err := environment.Number(source)
		if err != nil {
			t.Fatal(err)
		}
		native := number.Native()
		if native == nil {
			t.Errorf("%s has no Go form", source)
			continue
		}
		for range 200 {
			values := []float64{1, float64(rng.IntN(1000) - 200), float64(rng.IntN(8) - 2), 40 * rng.NormFloat64(), math.Round(3 * rng.NormFloat64())}
			got := native(values)
			want, err := number.Float(map[string]any{"c": "b", "n": int64(values[1]), "m": int64(values[2]), "x": values[3], "y": values[4]})
			if err != nil || math.Abs(want) > 1<<53 && number.ast.GetType(number.ast.Expr().ID()).TypeName() == "int" {
				want = math.NaN()
			}
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Fatalf("%s at %v: %v, CEL says %v, %v", source, values, got, want, err)
			}
		}
	}
	for _, source := range []string{`c == "b" ? x : y`, "n > m ? 1 : 2", "size(c)", "[n, m][0]", "math.greatest(n, m)"} {
		number, err := environment.Number(source)
		if err != nil {
			t.Fatal(err)
		}
		if number.Native() != nil {
			t.Errorf("%s has a Go form", source)
		}
	}
}

func BenchmarkNumber(b *testing.B) {
	environment, err := NewEnvironment([]Variable{{"variance", Double}})
	if err != nil {
		b.Fatal(err)
	}
	number, err := environment.Number("math.sqrt(variance)")
	if err != nil {
		b.Fatal(err)
	}
	b.Run("cel", func(b *testing.B) {
		for b.Loop() {
			if _, err := number.Float(map[string]any{"variance": 4.0}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("native", func(b *testing.B) {
		native, values := number.Native(), []float64{4}
		for b.Loop() {
			native(values)
		}
	})
}
