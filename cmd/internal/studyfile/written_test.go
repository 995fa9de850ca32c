package studyfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	"github.com/dpareto/dpareto/internal/require"
)

// What stands where a text belongs keeps its characters, whatever YAML takes it for.
func TestTextsAreKept(t *testing.T) {
	for _, text := range []string{
		"3.9", "3.10", "3.90", "007", "0123", "08", "1e-3", "1E5", "1e5", "100000", "1.0", "1.", ".5", "+1", "-0", "-0.0", "0o17", "0x1F", "0b11",
		"1_000", "12:30:45", "190:20:30", ".inf", "-.Inf", ".nan", "2026-11-28", "2026-11-28T10:00:00Z", "2026-11-28 10:00:00",
		"18446744073709551616", "1e400", "0.1000000000000000055511151231257827", "y", "n", "None", "nan", "inf", "1,5", "ä",
	} {
		content := fmt.Sprintf(`
study_id: %[1]s
display_name: %[1]s
description: %[1]s
labels: {py: %[1]s, %[1]s: key}
spec:
  parameters:
  - {id: python, categorical_domain: {categories: [%[1]s, other]}}
  - {id: a, double_domain: {min: 0, max: 1}, scale: LINEAR, when: {python: %[1]s}}
  - {id: b, double_domain: {min: 0, max: 1}, scale: LINEAR, condition: {parent: python, values: [%[1]s]}}
  metrics: [{id: e, unit: %[1]s, computed: {expression: %[1]s}}]
  trainer: {name: %[1]s, settings: {rows: %[1]s}}
  prior_values: {python: %[1]s}
`, text)
		if text == "1,5" {
			content = strings.NewReplacer("[1,5", `["1,5"`, "py: 1,5, 1,5: key", `py: "1,5", "1,5": key`, "[1,5]", `["1,5"]`, ": 1,5}", `: "1,5"}`, ": 1,5,", `: "1,5",`).Replace(content)
		}
		file, err := studyfile.Parse([]byte(content))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		spec := file.Study.GetSpec()
		got := []string{
			file.ID, file.Study.GetDisplayName(), file.Study.GetDescription(), file.Study.GetLabels()["py"],
			spec.GetParameters()[0].GetCategoricalDomain().GetCategories()[0],
			spec.GetParameters()[1].GetCondition().GetValues()[0].GetStringValue(),
			spec.GetParameters()[2].GetCondition().GetValues()[0].GetStringValue(),
			spec.GetMetrics()[0].GetUnit(), spec.GetMetrics()[0].GetComputed().GetExpression(),
			spec.GetTrainer().GetName(), spec.GetTrainer().GetSettings()["rows"], spec.GetPriorValues()["python"].GetStringValue(),
		}
		for i := range got {
			if got[i] != text {
				t.Errorf("%s: text %d is %q", text, i, got[i])
			}
		}
		if file.Study.GetLabels()[text] != "key" {
			t.Errorf("%s: labels %v", text, file.Study.GetLabels())
		}
	}
}

// A word that is no text in YAML is refused where one belongs, and so is a key.
func TestWordsAreRefused(t *testing.T) {
	for _, word := range []string{"true", "True", "FALSE", "yes", "No", "on", "OFF", "null", "Null", "~", ""} {
		content := "spec:\n  parameters:\n  - id: a\n  - id: b\n  - id: c\n    categorical_domain:\n      categories:\n      - a\n      - " + word + "\n"
		want := "line 9: spec.parameters[2].categorical_domain.categories[1]: must be a string, is "
		if _, err := studyfile.Parse([]byte(content)); err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "(quote it)") {
			t.Errorf("category %q: error %v, want %s", word, err, want)
		}
		if word == "" {
			continue
		}
		want = fmt.Sprintf("line 2: labels.%s: a key must be a string, is %q (quote it)", word, word)
		if _, err := studyfile.Parse([]byte("labels:\n  " + word + ": x\n")); err == nil || err.Error() != want {
			t.Errorf("key %q: error %v, want %s", word, err, want)
		}
		quoted := fmt.Sprintf("labels: {%q: %q}", word, word)
		if file, err := studyfile.Parse([]byte(quoted)); err != nil || file.Study.GetLabels()[word] != word {
			t.Errorf("%s: %v", quoted, err)
		}
	}
}

// Where a number belongs, its notations mean what they say, and those that programs read in different
// ways are refused.
func TestNumbers(t *testing.T) {
	for text, want := range map[string]float64{
		"3.10": 3.1, "1e-3": 1e-3, "1E+2": 100, ".5": .5, "1.": 1, "+2": 2, "-.5": -.5, "1_000": 1000, "0x1F": 31, "-0x10": -16, "0o17": 15, "0b11": 3,
		"0": 0, "-0": 0, "0.5": .5, `"0.25"`: .25, "1.e2": 100,
	} {
		file, err := studyfile.Parse([]byte("spec: {parameters: [{double_domain: {min: " + text + "}}]}"))
		if err != nil || file.Study.GetSpec().GetParameters()[0].GetDoubleDomain().GetMin() != want {
			t.Errorf("%s: %v, %v, want %v", text, file, err, want)
		}
	}
	for text, want := range map[string]string{
		".inf": "must be a finite number, is .inf", "-.INF": "must be a finite number, is -.INF", ".nan": "must be a finite number, is .nan",
		"007": "must have no leading zeros, is 007", "-010": "must have no leading zeros, is -010", "08": "must have no leading zeros, is 08", "1e400": `must be a number, is "1e400"`,
		"2026-11-28": `must be a number, is "2026-11-28"`, "1:30": `must be a number, is "1:30"`, "1,5": "", "on": "must be a number, is true",
	} {
		content := "spec:\n  parameters:\n  - double_domain:\n      min: " + text + "\n"
		if want == "" {
			want = `must be a number, is "1,5"`
		}
		want = "line 4: spec.parameters[0].double_domain.min: " + want
		if _, err := studyfile.Parse([]byte(content)); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %s", text, err, want)
		}
	}
	if _, err := studyfile.Parse([]byte("spec: {parameters: [{discrete_domain: {values: [1, .inf]}}]}")); err == nil ||
		!strings.Contains(err.Error(), "spec.parameters[0].discrete_domain.values[1]: must be a finite number, is .inf") {
		t.Errorf("a list: %v", err)
	}
}

// Nothing that is given twice is taken once in silence.
func TestRepeatedKeys(t *testing.T) {
	for content, want := range map[string]string{
		"spec:\n  seed: 1\n  seed: 1":                                          "line 3: spec.seed: is given twice, first in line 2",
		"labels: {a: x, \"a\": y}":                                             "line 1: labels.a: is given twice, first in line 1",
		"spec: {metrics: [{id: a,\n id: b}]}":                                  "line 2: spec.metrics[0].id: is given twice, first in line 1",
		"{\"labels\": {\"a\": \"x\",\n \"a\": \"x\"}}":                         "line 2: labels.a: is given twice, first in line 1",
		"{\"spec\": {\"parameters\": [{\"id\":1, \"id\": 2}]}}":                "line 1: spec.parameters[0].id: is given twice, first in line 1",
		"spec:\n  max_trials: 1\n  budget: {max_trials: 1,\n    maxTrials: 2}": "line 3: spec.budget.max_trials: is given twice, also as maxTrials",
		"study_id: a\n---\nstudy_id: b":                                        "line 2: a second document begins, want one",
	} {
		if _, err := studyfile.Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %s", content, err, want)
		}
	}
}

// Files of editors and of other programs: byte order marks, UTF-16, line ends, JSON with escapes.
func TestEncodings(t *testing.T) {
	want, err := studyfile.Parse([]byte(example))
	require.NoError(t, err)
	var wide strings.Builder
	for _, r := range "\ufeff" + example { // it is ASCII
		wide.Write([]byte{byte(r), byte(r >> 8)})
	}
	for name, content := range map[string]string{
		"byte order mark": "\ufeff" + example, "CR LF": strings.ReplaceAll(example, "\n", "\r\n"), "CR": strings.ReplaceAll(example, "\n", "\r"),
		"UTF-16": wide.String(), "document marks": "---\n" + example + "\n---\n",
	} {
		got, err := studyfile.Parse([]byte(content))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if diff := cmp.Diff(want.Study.String(), got.Study.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	file, err := studyfile.Parse([]byte("\ufeff{\n\t\"display_name\": \"\\ud83d\\ude00 \\/\"}"))
	if err != nil || file.Study.GetDisplayName() != "😀 /" {
		t.Errorf("JSON: %v, %v", file, err)
	}
	if _, err := studyfile.Parse([]byte("study_id: a\ndisplay_name: caf\xe9\n")); err == nil || !strings.Contains(err.Error(), "line 2: is not UTF-8") {
		t.Errorf("Latin-1: %v", err)
	}
}

// Anchors and merges work, and cannot fill the memory.
func TestAliases(t *testing.T) {
	file, err := studyfile.Parse([]byte(`
spec:
  parameters:
  - &a {id: a, double_domain: {min: 0, max: 1}, scale: LINEAR}
  - {<<: *a, id: b}
`))
	require.NoError(t, err)
	if p := file.Study.GetSpec().GetParameters()[1]; p.GetId() != "b" || p.GetDoubleDomain().GetMax() != 1 {
		t.Errorf("merged %v", p)
	}
	bomb := "a0: &a0 x\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	for _, content := range []string{bomb, "a: &a [*a]", "a: &a {<<: *a}"} {
		if _, err := studyfile.Parse([]byte(content)); err == nil || !strings.Contains(err.Error(), "in each other, counting aliases") {
			t.Errorf("%.30q: error %v", content, err)
		}
	}
}
