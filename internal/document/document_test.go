package document_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/document"
	"github.com/dpareto/dpareto/internal/require"
)

func TestParse(t *testing.T) {
	d, err := document.Parse([]byte("a: {b.c: 3.10}\nlist:\n- x\n- [1e5, ~]\n"))
	require.NoError(t, err)
	want := map[string]any{
		"a": map[string]any{"b.c": json.Number("3.10")}, "list": []any{"x", []any{json.Number("1e5"), nil}},
	}
	if diff := cmp.Diff(any(want), d.Root); diff != "" {
		t.Errorf("tree (-want +got):\n%s", diff)
	}
	for path, want := range map[string]int{`a["b.c"]`: 1, "list": 2, "list[0]": 3, "list[1][1]": 4, "list[1][1].made[0]": 4, "": 1} {
		if got := d.Line(path); got != want {
			t.Errorf("line of %s is %d, want %d", path, got, want)
		}
	}
}

func TestParseJSON(t *testing.T) {
	got, err := document.ParseJSON([]byte(`{"a": [1.0, "x", null, true, {}, []]}`))
	want := map[string]any{"a": []any{json.Number("1.0"), "x", nil, true, map[string]any{}, []any{}}}
	if diff := cmp.Diff(any(want), got); err != nil || diff != "" {
		t.Errorf("error %v, tree (-want +got):\n%s", err, diff)
	}
	for content, want := range map[string]string{
		"":                                "line 1: the JSON ends within a value",
		"{\n\"a\": [1,\n":                 "line 2: the JSON ends within a value",
		"{\"a\": 1,\n\"a\": 2}":           "line 2: a: is given twice, first in line 1",
		"[{\"a\": {\"b\": 1, \"b\": 1}}]": "line 1: [0].a.b: is given twice",
		"{}\n{}":                          "line 2: more follows the first value",
		"{\"a\": [1, NaN]}":               "line 1: a[1]: is NaN, which is not JSON: use null",
		"{\"a\" 1}":                       "line 1: ",
		"{1: 2}":                          "line 1: ",
	} {
		if _, err := document.ParseJSON([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", content, err, want)
		}
	}
}
