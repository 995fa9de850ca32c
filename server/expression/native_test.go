package expression

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// natives are expressions that have a Go form.
var natives = []string{
	"n", "x", "40000", "-3", "2.5", "n * 3 + m", "n / m", "n % m", "-n", "-x", "double(n) / double(m)", "int(x)", "int(-x)",
	"math.sqrt(x)", "math.sqrt(n)", "math.abs(x - y)", "math.abs(n - m)", "math.exp(y)", "math.log(x)", "math.pow(x, y)",
	"math.ceil(x)", "math.floor(y)", "math.round(x)", "math.trunc(y)", "x / y", "x * y - 1.5", "n * n * n * n * n * n", "int(math.ceil(x / 3.0))",
	// What has no value leaves none, and integers have no negative zero.
	"math.pow(1.0, double(5 / m))", "math.pow(double(5 % m), 0.0)", "math.pow(1.0, math.log(x))", "math.pow(math.log(x), 0.0)",
	"math.exp(-1.0 / double(-m))", "math.exp(1.0 / double(m / 8))", "math.exp(1.0 / double(n % m))", "math.exp(1.0 / double(int(x / 100.0)))",
	"math.exp(-1.0 / double(m * -5))", "math.exp(-1.0 / double(m))",
}

// drawExpression returns a random expression of type int or double, of operations nested
// so deep. Its integers stay below 2^53.
func drawExpression(rng *rand.Rand, isInt bool, depth int) string {
	sub := func(isInt bool) string { return "(" + drawExpression(rng, isInt, depth-1) + ")" }
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	switch {
	case isInt && depth == 0:
		return pick("n", "m", "0", "1", "-3", "7")
	case depth == 0:
		return pick("x", "y", "0.0", "-0.0", "1.0", "-2.5")
	case isInt:
		switch rng.IntN(6) {
		case 0:
			return "-" + sub(true)
		case 1:
			return "math.abs" + sub(true)
		case 2:
			return "int(" + drawExpression(rng, false, 0) + pick(" + ", " - ", " * ", " / ") + drawExpression(rng, false, 0) + ")"
		default:
			return sub(true) + pick(" + ", " - ", " * ", " / ", " % ") + sub(true)
		}
	default:
		switch rng.IntN(6) {
		case 0:
			return "-" + sub(false)
		case 1:
			return "double" + sub(true)
		case 2:
			return "math." + pick("sqrt", "abs", "exp", "log", "ceil", "floor", "round", "trunc") + sub(false)
		case 3:
			return "math.pow(" + sub(false) + ", " + sub(false) + ")"
		default:
			return sub(false) + pick(" + ", " - ", " * ", " / ") + sub(false)
		}
	}
}

// The Go form is the CEL program at random values, errors included.
func TestNative(t *testing.T) {
	environment, err := NewEnvironment([]Variable{{"c", String}, {"n", Int}, {"m", Int}, {"x", Double}, {"y", Double}})
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(1, 2))
	sources := slices.Clone(natives)
	for i := range 600 {
		sources = append(sources, drawExpression(rng, i%2 == 0, 1+i%4))
	}
	for k, source := range sources {
		number, err := environment.Number(source)
		require.NoError(t, err)
		native := number.Native()
		if native == nil {
			t.Errorf("%s has no Go form", source)
			continue
		}
		draws := 200
		if k >= len(natives) {
			draws = 30
		}
		for range draws {
			values := []float64{1, float64(rng.IntN(1000) - 200), float64(rng.IntN(8) - 2), 40 * rng.NormFloat64(), math.Round(3 * rng.NormFloat64())}
			got := native(values)
			want, err := number.Float(map[string]any{"c": "b", "n": int64(values[1]), "m": int64(values[2]), "x": values[3], "y": values[4]})
			if err != nil || math.Abs(want) > 1<<53 && number.ast.GetType(number.ast.Expr().ID()).TypeName() == "int" {
				want = math.NaN()
			}
			if got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
				t.Errorf("%s at %v: %v, CEL says %v, %v", source, values, got, want, err)
				break
			}
		}
	}
	for _, source := range []string{`c == "b" ? x : y`, "n > m ? 1 : 2", "size(c)", "[n, m][0]", "math.greatest(n, m)"} {
		number, err := environment.Number(source)
		require.NoError(t, err)
		if number.Native() != nil {
			t.Errorf("%s has a Go form", source)
		}
	}
}

func TestUses(t *testing.T) {
	environment, err := NewEnvironment([]Variable{{"a", Int}, {"b", Double}, {"kind", String}})
	require.NoError(t, err)
	for source, want := range map[string][]string{
		"1":                                    nil,
		"a":                                    {"a"},
		"math.sqrt(b) * double(a) + b":         {"a", "b"},
		"kind == 'x' ? math.pow(b, 2.0) : 1.0": {"b", "kind"},
	} {
		n, err := environment.Number(source)
		require.NoError(t, err)
		if got := n.Uses(); !slices.Equal(got, want) {
			t.Errorf("%s uses %q, want %q", source, got, want)
		}
	}
}
