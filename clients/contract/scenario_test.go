package contract_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/dpareto/dpareto/internal/require"
)

// table is scenarios.yaml.
type table struct {
	// Fragments are anchors for the rest of the file.
	Fragments map[string]any `json:"fragments"`
	// Tokens belong to the server that asks for them.
	Tokens []token `json:"tokens"`
	// Exceptions are methods without a scenario, with reasons.
	Exceptions map[string]string `json:"exceptions"`
	Scenarios  []scenario        `json:"scenarios"`
}

// token is one of the server's tokens.
type token struct {
	Name    string   `json:"name"`
	Role    string   `json:"role"`
	Studies []string `json:"studies"`
}

// scenario is a sequence of steps on one server.
type scenario struct {
	Name string `json:"name"`
	// Authentication has a server that asks for tokens.
	Authentication bool `json:"authentication"`
	// RestartBetweenSteps kills the server, and starts it again, before every step.
	RestartBetweenSteps bool   `json:"restart_between_steps"`
	Steps               []step `json:"steps"`
}

// step is one call and what it must answer, or a restart.
type step struct {
	Step    string `json:"step"`
	Restart bool   `json:"restart"`

	Call       string         `json:"call"`
	As         string         `json:"as"`
	Stub       bool           `json:"stub"`
	Request    map[string]any `json:"request"`
	Requests   any            `json:"requests"`
	Take       int            `json:"take"`
	Eventually bool           `json:"eventually"`

	Code       string            `json:"code"`
	Violations []string          `json:"violations"`
	Answer     any               `json:"answer"`
	Save       map[string]string `json:"save"`
}

// readTable reads the scenarios. A field that no step has is an error.
func readTable(t *testing.T) *table {
	t.Helper()
	text, err := os.ReadFile("scenarios.yaml")
	require.NoError(t, err)
	var out table
	text, err = yaml.YAMLToJSON(text) // not strict: a merged key can be given anew
	require.NoError(t, err)
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&out))
	return &out
}

// variables are what earlier steps have saved.
type variables map[string]any

var reference = regexp.MustCompile(`\$\{(\w+)\}`)

// expand replaces the references in a value. A text that is nothing but a reference
// becomes the value itself.
func (v variables) expand(value any) (any, error) {
	switch value := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(value))
		for key, x := range value {
			k, err := v.text(key)
			if err != nil {
				return nil, err
			}
			if out[k], err = v.expand(x); err != nil {
				return nil, err
			}
		}
		return out, nil
	case []any:
		out := make([]any, len(value))
		for i, x := range value {
			var err error
			if out[i], err = v.expand(x); err != nil {
				return nil, err
			}
		}
		return out, nil
	case string:
		if match := reference.FindStringSubmatch(value); match != nil && match[0] == value {
			saved, ok := v[match[1]]
			if !ok {
				return nil, fmt.Errorf("nothing is saved as %s", value)
			}
			return saved, nil
		}
		return v.text(value)
	default:
		return value, nil
	}
}

func (v variables) text(s string) (string, error) {
	var err error
	return reference.ReplaceAllStringFunc(s, func(match string) string {
		saved, ok := v[match[2:len(match)-1]]
		if !ok {
			err = fmt.Errorf("nothing is saved as %s", match)
		}
		return fmt.Sprint(saved)
	}), err
}

// save keeps parts of an answer.
func (v variables) save(paths map[string]string, answer any) error {
	for name, path := range paths {
		value, err := lookup(answer, path)
		if err != nil {
			return err
		}
		v[name] = value
	}
	return nil
}

// lookup returns the part of a value at a path such as "trials.0.lease.token".
func lookup(value any, path string) (any, error) {
	if path == "." {
		return value, nil
	}
	for part := range strings.SplitSeq(path, ".") {
		var next any
		switch value := value.(type) {
		case map[string]any:
			next = value[part]
		case []any:
			if i, err := strconv.Atoi(part); err == nil && i >= 0 && i < len(value) {
				next = value[i]
			}
		}
		if next == nil {
			return nil, fmt.Errorf("the answer has no %s", path)
		}
		value = next
	}
	return value, nil
}

// match compares an answer with what is expected of it, and returns the differences.
func match(path string, want, got any) []string {
	if expected, ok := want.(map[string]any); ok {
		if operator, argument, ok := operation(expected); ok {
			return matchOperation(path, operator, argument, got)
		}
		object, _ := got.(map[string]any)
		if object == nil && got != nil {
			return []string{difference(path, want, got)}
		}
		var out []string
		for key, x := range expected {
			out = append(out, match(join(path, key), x, object[key])...)
		}
		return out
	}
	if expected, ok := want.([]any); ok {
		list, _ := got.([]any)
		if list == nil && got != nil {
			return []string{difference(path, want, got)}
		}
		if len(list) != len(expected) {
			return []string{fmt.Sprintf("%s: got %d elements, want %d", path, len(list), len(expected))}
		}
		var out []string
		for i, x := range expected {
			out = append(out, match(fmt.Sprintf("%s[%d]", path, i), x, list[i])...)
		}
		return out
	}
	if want == got || got == nil && isDefault(want) {
		return nil
	}
	return []string{difference(path, want, got)}
}

// operation returns the operator of an expectation that is not a value.
func operation(expected map[string]any) (operator string, argument any, ok bool) {
	if len(expected) != 1 {
		return "", nil, false
	}
	for operator, argument = range maps.All(expected) {
		ok = strings.HasPrefix(operator, "$")
	}
	return operator, argument, ok
}

func matchOperation(path, operator string, argument, got any) []string {
	list, _ := got.([]any)
	number, isNumber := got.(float64)
	holds := false
	switch operator {
	case "$present":
		holds = (got != nil) == (argument == true)
	case "$not":
		holds = len(match(path, argument, got)) > 0
	case "$contains":
		text, isText := got.(string)
		part, _ := argument.(string)
		holds = isText && strings.Contains(text, part)
	case "$length":
		holds = argument == float64(len(list))
	case "$first", "$last":
		if len(list) == 0 {
			break
		}
		i := 0
		if operator == "$last" {
			i = len(list) - 1
		}
		return match(fmt.Sprintf("%s[%d]", path, i), argument, list[i])
	case "$above":
		limit, _ := argument.(float64)
		holds = isNumber && number > limit
	case "$at_most":
		limit, isLimit := argument.(float64)
		holds = isLimit && isNumber && number <= limit
	case "$near":
		pair, _ := argument.([]any)
		if len(pair) != 2 || !isNumber {
			break
		}
		value, isValue := pair[0].(float64)
		tolerance, isTolerance := pair[1].(float64)
		holds = isValue && isTolerance && math.Abs(number-value) <= tolerance
	default:
		return []string{fmt.Sprintf("%s: there is no operator %s", path, operator)}
	}
	if holds {
		return nil
	}
	return []string{difference(path, map[string]any{operator: argument}, got)}
}

// isDefault reports whether a value is one that JSON leaves out.
func isDefault(value any) bool {
	switch value := value.(type) {
	case string:
		return value == "" || value == "0" || strings.HasSuffix(value, "_UNSPECIFIED")
	case float64:
		return value == 0
	case bool:
		return !value
	default:
		return false
	}
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}

func difference(path string, want, got any) string {
	return fmt.Sprintf("%s: got %s, want %s", path, show(got), show(want))
}

func show(value any) string {
	if value == nil {
		return "nothing"
	}
	text, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func TestMatch(t *testing.T) {
	parse := func(text string) (out any) {
		t.Helper()
		require.NoError(t, json.Unmarshal([]byte(text), &out))
		return out
	}
	for _, test := range []struct {
		want, got   string
		differences int
	}{
		{`{"a": 1}`, `{"a": 1, "b": 2}`, 0},
		{`{"a": 1, "b": 2}`, `{"a": 2, "b": 3}`, 2},
		{`{"a": {"b": 0, "c": "", "d": false, "e": [], "f": null}}`, `{}`, 0},
		{`{"a": null}`, `{"a": 1}`, 1},
		{`{"a": {}}`, `{"a": 1}`, 1},
		{`[1, 2]`, `[1]`, 1},
		{`[]`, `{"a": 1}`, 1},
		{`[{"a": 1}]`, `[{"a": 1, "b": 2}]`, 0},
		{`0.30000000000000004`, `0.3`, 1},
		{`"17"`, `17`, 1},
		{`{"a": {"$present": true}}`, `{"a": 0}`, 0},
		{`{"a": {"$present": true}}`, `{}`, 1},
		{`{"a": {"$present": false}}`, `{"a": 0}`, 1},
		{`{"$not": 1}`, `2`, 0},
		{`{"$not": 1}`, `1`, 1},
		{`{"$contains": "b"}`, `"abc"`, 0},
		{`{"$contains": "d"}`, `"abc"`, 1},
		{`{"$length": 2}`, `[1, 2]`, 0},
		{`{"$length": 0}`, `null`, 0},
		{`{"$length": 1}`, `[]`, 1},
		{`{"$last": {"a": 2}}`, `[{"a": 1}, {"a": 2}]`, 0},
		{`{"$first": {"a": 2}}`, `[{"a": 1}, {"a": 2}]`, 1},
		{`{"$last": 1}`, `[]`, 1},
		{`{"$above": 1}`, `1`, 1},
		{`{"$above": 1}`, `2`, 0},
		{`{"$at_most": 1}`, `1`, 0},
		{`{"$at_most": 1}`, `2`, 1},
		{`{"$near": [1, 0.1]}`, `1.05`, 0},
		{`{"$near": [1, 0.1]}`, `1.2`, 1},
		{`{"$near": 1}`, `1`, 1},
		{`{"$nonsense": 1}`, `1`, 1},
	} {
		if differences := match("", parse(test.want), parse(test.got)); len(differences) != test.differences {
			t.Errorf("%s of %s: %d differences %q, want %d", test.got, test.want, len(differences), differences, test.differences)
		}
	}
}

func TestVariables(t *testing.T) {
	v := variables{}
	answer := map[string]any{"trials": []any{map[string]any{"number": "7", "runs": []any{0.5}}}}
	require.NoError(t, v.save(map[string]string{"n": "trials.0.number", "runs": "trials.0.runs"}, answer))
	got, err := v.expand(map[string]any{"studies/${n}": "${runs}", "name": []any{"trials/${n}", 1.0}})
	require.NoError(t, err)
	want := map[string]any{"studies/7": []any{0.5}, "name": []any{"trials/7", 1.0}}
	if show(got) != show(want) {
		t.Errorf("got %s, want %s", show(got), show(want))
	}
	for _, bad := range []any{"${m}", "a${m}", map[string]any{"${m}": 1}, []any{"${m}"}} {
		if _, err := v.expand(bad); err == nil {
			t.Errorf("%v was expanded", bad)
		}
	}
	for _, path := range []string{"trials.1", "trials.x", "study"} {
		if err := v.save(map[string]string{"x": path}, answer); err == nil {
			t.Errorf("%s was found", path)
		}
	}
}
