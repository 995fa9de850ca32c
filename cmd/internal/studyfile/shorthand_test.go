package studyfile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/spec"
)

// What is written shortly is the same as what is written out.
func TestShorthand(t *testing.T) {
	const short = `
spec:
  parameters:
    - {id: model, categorical_domain: {categories: [linear, "600"]}}
    - {id: layers, integerDomain: {min: 1, max: 3}, scale: LINEAR, when: {model: 600}}
    - {id: momentum, discrete_domain: {values: [0, 0.5]}, scale: LINEAR, when: {layers: [1, 3]}}
    - {id: rate, double_domain: {min: 1, max: 2}, scale: LINEAR, when: {momentum: [0]}}
  cost: seconds
`
	const long = `
spec:
  parameters:
    - {id: model, categorical_domain: {categories: [linear, "600"]}}
    - {id: layers, integer_domain: {min: 1, max: 3}, scale: LINEAR, condition: {parent: model, values: [{string_value: "600"}]}}
    - {id: momentum, discrete_domain: {values: [0, 0.5]}, scale: LINEAR, condition: {parent: layers, values: [{int_value: 1}, {int_value: 3}]}}
    - {id: rate, double_domain: {min: 1, max: 2}, scale: LINEAR, condition: {parent: momentum, values: [{double_value: 0}]}}
  cost: {metric: seconds}
`
	parse := func(content string) *File {
		t.Helper()
		file, err := Parse([]byte(content))
		require.NoError(t, err)
		return file
	}
	if diff := cmp.Diff(parse(long), parse(short), protocmp.Transform()); diff != "" {
		t.Errorf("study (-long +short):\n%s", diff)
	}
	for _, name := range []string{"runs", "checkpoint_parameter"} {
		long, short := parse("spec: {cost: {"+name+": {}}}"), parse("spec: {cost: "+name+"}")
		if diff := cmp.Diff(long, short, protocmp.Transform()); diff != "" {
			t.Errorf("cost (-long +short):\n%s", diff)
		}
	}
}

func TestShorthandErrors(t *testing.T) {
	const model = "spec: {parameters: [{id: model, categorical_domain: {categories: [a, b]}}, {id: size, integer_domain: {min: 1, max: 2}}, {id: c, "
	for content, want := range map[string]string{
		"when: model}]}":                                `spec.parameters[2].when: must be one parameter with its values such as {optimizer: [adam, lamb]}, is "model"`,
		"when: {model: a, size: 1}}]}":                  "spec.parameters[2].when: must be one parameter with its values",
		"when: {models: a}}]}":                          `spec.parameters[2].when: "models" is not a parameter`,
		"when: {model: on}}]}":                          "spec.parameters[2].when: must have names of categories of model, has true (quote it)",
		"when: {model: {a: b}}}]}":                      "spec.parameters[2].when: must have names of categories of model, has a mapping",
		"when: {size: a}}]}":                            `spec.parameters[2].when: must have numbers for size, has "a"`,
		"when: {size: 1.5}}]}":                          "spec.parameters[2].condition.values[0].int_value: must be a whole number",
		"when: {size: 1}, condition: {parent: size}}]}": "spec.parameters[2].when: cannot be combined with condition",
	} {
		if _, err := Parse([]byte(model + content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v\nwant %s", content, err, want)
		}
	}
	if _, err := Parse([]byte("spec: {cost: 3}")); err == nil || !strings.Contains(err.Error(), "spec.cost: must be a mapping, is 3") {
		t.Errorf("error %v", err)
	}
}

// The files in docs/reference/studies.md are studies that a server accepts.
func TestDocumentedStudies(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "reference", "studies.md"))
	require.NoError(t, err)
	files := 0
	for i, part := range strings.Split(string(text), "<!-- file: ") {
		if i == 0 {
			continue
		}
		files++
		name, rest, _ := strings.Cut(part, " -->\n")
		var content strings.Builder
		for line := range strings.Lines(rest) {
			indented, ok := strings.CutPrefix(line, "    ")
			if !ok && strings.TrimSpace(line) != "" {
				break
			}
			content.WriteString(indented)
		}
		file, err := Parse([]byte(content.String()))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		study, err := spec.Compile("spec", file.Study.GetSpec())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if p := study.Problem; len(p.Constraints) == 0 || p.Allowed == nil || p.Checkpoint == "" || p.Cost == 0 {
			t.Errorf("%s does not show what it is for: %+v", name, p)
		}
	}
	if files != 1 {
		t.Errorf("%d files, want 1", files)
	}
}

// Values of parameters may be written plain, as commands print them: their types are the parameters'.
func TestPlainValues(t *testing.T) {
	file, err := Parse([]byte(`{"spec": {"parameters": [
		{"id": "rate", "double_domain": {"min": 0, "max": 2}, "scale": "linear"},
		{"id": "layers", "integer_domain": {"min": 1, "max": 3}, "scale": "linear"},
		{"id": "kind", "categorical_domain": {"categories": ["1", "b"]}},
		{"id": "a", "double_domain": {"min": 0, "max": 2}, "scale": "linear", "condition": {"parent": "rate", "values": [1, 0.5]}},
		{"id": "b", "double_domain": {"min": 0, "max": 2}, "scale": "linear", "condition": {"parent": "layers", "values": [1, 3]}},
		{"id": "c", "double_domain": {"min": 0, "max": 2}, "scale": "linear", "condition": {"parent": "kind", "values": ["1"]}}],
		"prior_values": {"rate": 1, "layers": 2, "kind": "b"},
		"private_mode": {"slots": [{"parameters": {"rate": 1, "layers": 2, "kind": "b"}, "count": 3}]},
		"random_stopping": {"final_run": {"values": {"rate": 1, "layers": 2}}}}}`))
	require.NoError(t, err)
	spec := file.Study.GetSpec()
	rate, layers, kind := spec.GetParameters()[3], spec.GetParameters()[4], spec.GetParameters()[5]
	if v := rate.GetCondition().GetValues(); len(v) != 2 || v[0].GetDoubleValue() != 1 || v[1].GetDoubleValue() != 0.5 {
		t.Errorf("rate %v", v)
	}
	if v := layers.GetCondition().GetValues(); len(v) != 2 || v[0].GetIntValue() != 1 || v[1].GetIntValue() != 3 {
		t.Errorf("layers %v", v)
	}
	if v := kind.GetCondition().GetValues(); len(v) != 1 || v[0].GetStringValue() != "1" {
		t.Errorf("kind %v", v)
	}
	if v := spec.GetPriorValues(); v["rate"].GetDoubleValue() != 1 || v["layers"].GetIntValue() != 2 || v["kind"].GetStringValue() != "b" {
		t.Errorf("prior values %v", v)
	}
	slot := spec.GetPrivateMode().GetSlots()[0]
	if v := slot.GetParameters(); slot.GetCount() != 3 || v["rate"].GetDoubleValue() != 1 || v["layers"].GetIntValue() != 2 || v["kind"].GetStringValue() != "b" {
		t.Errorf("slot %v", slot)
	}
	if v := spec.GetRandomStopping().GetFinalRun().GetValues(); v["rate"].GetDoubleValue() != 1 || v["layers"].GetIntValue() != 2 {
		t.Errorf("values of the final run %v", v)
	}
}
