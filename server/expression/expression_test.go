package expression

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

func environment(t *testing.T) *Environment {
	t.Helper()
	e, err := NewEnvironment([]Variable{{"epochs", Int}, {"variance", Double}, {"optimizer", String}})
	require.NoError(t, err)
	return e
}

var values = map[string]any{"epochs": int64(7), "variance": 6.25, "optimizer": "adam"}

func TestNumber(t *testing.T) {
	e := environment(t)
	for source, want := range map[string]float64{
		"40000":                                40000,
		"0.5":                                  0.5,
		"epochs * 2 + 1":                       15,
		"double(epochs) * 0.5":                 3.5,
		"math.sqrt(variance)":                  2.5,
		"math.exp(math.log(variance))":         6.25,
		"math.pow(variance, 2.0)":              39.0625,
		"math.ceil(variance)":                  7,
		"math.greatest(variance, 9.0)":         9,
		"optimizer == 'adam' ? 1.5 : 2.5":      1.5,
		"int(variance) + epochs":               13,
		"epochs > 5 && variance < 7.0 ? 1 : 0": 1,
	} {
		n, err := e.Number(source)
		if err != nil {
			t.Errorf("Number(%q): %v", source, err)
			continue
		}
		got, err := n.Float(values)
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%q = %v, want %v", source, got, want)
		}
	}
}

func TestInteger(t *testing.T) {
	n, err := environment(t).Integer("epochs * 1000000007")
	require.NoError(t, err)
	if got, err := n.Int(values); err != nil || got != 7000000049 {
		t.Errorf("got %d, %v", got, err)
	}
}

func TestCompileErrors(t *testing.T) {
	e := environment(t)
	for source, want := range map[string]string{
		"":                              "must be set",
		"epoch":                         "undeclared reference",
		"epochs * 0.5":                  "no matching overload",
		"optimizer":                     "must have type int or double",
		"epochs > 3":                    "must have type int or double",
		"epochs +":                      "Syntax error",
		strings.Repeat("1+", 600) + "1": "at most 1000 bytes",
		"epoch + 1":                     "the names are: ",
	} {
		if _, err := e.Number(source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Number(%.20q): error %v, want it to contain %q", source, err, want)
		}
	}
	if _, err := e.Integer("variance"); err == nil || !strings.Contains(err.Error(), "must have type int") {
		t.Errorf("Integer of a double: %v", err)
	}
}

func TestEvaluationErrors(t *testing.T) {
	e := environment(t)
	for _, source := range []string{
		"1.0 / 0.0", "math.log(-1.0)", "math.exp(1e6)", "epochs / (epochs - 7)",
		"9223372036854775807 + epochs",
		"[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, [1,2,3,4,5,6,7,8,9].all(d, a+b+c+d > 0)))) ? 1 : 2",
	} {
		n, err := e.Number(source)
		if err != nil {
			t.Errorf("Number(%q): %v", source, err)
			continue
		}
		if x, err := n.Float(values); err == nil {
			t.Errorf("%q = %v, want an error", source, x)
		}
	}
}

func TestPredicate(t *testing.T) {
	e := environment(t)
	for source, want := range map[string]bool{
		"epochs > 5":                                  true,
		"variance < 1.0":                              false,
		"optimizer == 'adam' && epochs < 8":           true,
		"optimizer in ['sgd', 'lamb']":                false,
		"[1, 2, 3].exists(k, k * epochs == 14)":       true,
		"epochs <= 7 ? variance == 6.25 : epochs > 9": true,
	} {
		p, err := e.Predicate(source)
		if err != nil {
			t.Errorf("Predicate(%q): %v", source, err)
			continue
		}
		if got, err := p.Holds(values); err != nil || got != want {
			t.Errorf("%q = %v, %v; want %v", source, got, err, want)
		}
	}
	if _, err := e.Predicate("epochs"); err == nil || !strings.Contains(err.Error(), "must have type bool, has type int") {
		t.Errorf("a number as a predicate: %v", err)
	}
	p, err := e.Predicate("[1,2,3,4,5,6,7,8,9].all(a, [1,2,3,4,5,6,7,8,9].all(b, [1,2,3,4,5,6,7,8,9].all(c, a+b+c > 0)))")
	require.NoError(t, err)
	if _, err := p.Holds(values); err == nil || !strings.Contains(err.Error(), "cost") {
		t.Errorf("a dear predicate: error %v", err)
	}
}

// A variable without a value may stand where it is not needed.
func TestMissingVariable(t *testing.T) {
	e := environment(t)
	missing := map[string]any{"optimizer": "sgd", "epochs": int64(3)}
	for source, want := range map[string]string{
		"optimizer == 'adam' ? variance : 2.0":  "",
		"optimizer == 'sgd' ? variance : 2.0":   "refers to variance, which has no value here",
		"variance":                              "refers to variance, which has no value here",
		"math.sqrt(variance) + double(epochs)":  "refers to variance, which has no value here",
		"optimizer == 'sgd' && variance < 0.0":  "refers to variance, which has no value here",
		"optimizer == 'adam' && variance < 0.0": "",
		"variance < 0.0 && optimizer == 'adam'": "",
		"optimizer == 'sgd' || variance < 0.0":  "",
	} {
		var err error
		if p, notBool := e.Predicate(source); notBool == nil {
			_, err = p.Holds(missing)
		} else {
			n, notNumber := e.Number(source)
			require.NoError(t, notNumber)
			_, err = n.Float(missing)
		}
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", source, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: error %v, want it to contain %q", source, err, want)
		}
	}
}

func TestReserved(t *testing.T) {
	for _, name := range []string{"in", "math", "double"} {
		if !Reserved(name) {
			t.Errorf("%q is not reserved", name)
		}
	}
	if Reserved("epochs") {
		t.Error("epochs is reserved")
	}
	// Every other identifier works as a variable.
	e, err := NewEnvironment([]Variable{{"lot_size", Int}, {"T", Int}, {"e", Double}, {"x1_", Double}})
	require.NoError(t, err)
	for _, source := range []string{"lot_size", "T", "e", "x1_"} {
		if _, err := e.Number(source); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
}
