package main

import (
	"io"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A module whose tests miss some of the faults that can be put into it.
var example = map[string]string{
	"go.mod": "module example.org/small\n\ngo 1.26\n",
	"small/small.go": `package small

// Larger returns the larger of a and b; the boundary is free.
func Larger[T int | float64](a, b T) T {
	if a > b {
		return a
	}
	return b
}

type counter struct{ n, calls int }

// Add adds all of xs, and counts how often it was called, which nobody tests.
func (c *counter) Add(_ string, xs ...int) (err error) {
	for _, x := range xs {
		c.n += x
	}
	c.calls++
	return nil
}

func (*counter) String() string { return "a" + "b" }

func unused() bool { return true && !false }

func sign(x int) int {
	switch {
	case x > 0:
		return 1
	default:
		return 0
	}
}
`,
	"small/small_test.go": `package small

import "testing"

func TestLarger(t *testing.T) {
	if Larger(1, 2) != 2 || Larger(3.5, 2) != 3.5 {
		t.Error("Larger")
	}
}

func TestSign(t *testing.T) {
	if sign(5) != 1 || sign(0) != 0 {
		t.Error("sign")
	}
}

func TestAdd(t *testing.T) {
	c := &counter{}
	if err := c.Add("", 1, 2); err != nil || c.n != 3 {
		t.Error(c.n)
	}
}
`,
}

func TestWhatTestsMiss(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range example {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	o := options{folder: "out", mutated: "./small", seed: 1, count: 100, seconds: 60, out: log.New(io.Discard, "", 0)}
	if err := o.run(t.Context()); err == nil || !strings.Contains(err.Error(), "9 mutants need a test") {
		t.Errorf("error %v", err)
	}
	known, err := results("out/small-1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	status := map[string]string{}
	for key, r := range known {
		status[strings.TrimPrefix(key, "small/small.go ")] = r.Status
	}
	want := map[string]string{
		"Larger: a > b → a >= b":                            "survived",
		"Larger: a > b → a <= b":                            "killed",
		"Larger: return a → return *new(T)":                 "killed",
		"Larger: return b → return *new(T)":                 "killed",
		"counter.Add: c.n += x → c.n -= x":                  "killed",
		"counter.Add: c.calls++ → c.calls--":                "survived",
		"counter.Add: c.calls++ → nothing":                  "survived",
		"unused: return true && !false → return *new(bool)": "unreached",
		"unused: true && !false → true || !false":           "unreached",
		"unused: true && !false → false && !false":          "unreached",
		"unused: true && !false → true && false":            "unreached",
		"sign: x > 0 → x >= 0":                              "killed",
		"sign: x > 0 → x <= 0":                              "killed",
		"sign: x > 0 → x > (0 + 1)":                         "survived",
		"sign: x > 0 → x > (0 - 1)":                         "killed",
		"sign: return 1 → return *new(int)":                 "killed",
		"sign: return 1 → return (1 + 1)":                   "killed",
		"sign: return 1 → return (1 - 1)":                   "killed",
		"sign: return 0 → return (0 + 1)":                   "killed",
		"sign: return 0 → return (0 - 1)":                   "killed",
		"unused: !false → !true":                            "unreached",
	}
	if !maps.Equal(status, want) {
		for _, key := range slices.Sorted(maps.Keys(status)) {
			t.Errorf("%s: %s", key, status[key])
		}
	}
	before, err := os.ReadFile("out/small-1.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	_ = o.run(t.Context()) // has nothing left to try
	if after, err := os.ReadFile("out/small-1.jsonl"); err != nil || string(after) != string(before) {
		t.Errorf("tried again: %s", after)
	}
}

func TestReasons(t *testing.T) {
	got := parseReasons("# Reasons.\n\na → b\n    equal,\n    both ways\nc → d\n\tslower\n")
	if want := map[string]string{"a → b": "equal, both ways", "c → d": "slower"}; !maps.Equal(got, want) {
		t.Errorf("%q", got)
	}
}
