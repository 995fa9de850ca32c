package server

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYielding(t *testing.T) {
	var calls []string
	note := func(call string) func() { return func() { calls = append(calls, call) } }
	s := New(Options{Fitting: func() func() { note("begin")(); return note("done") }})
	s.yielding(note("function"))
	if d := cmp.Diff([]string{"begin", "function", "done"}, calls); d != "" {
		t.Error(d)
	}
	defer func() {
		if len(calls) != 5 || calls[4] != "done" {
			t.Errorf("calls %q", calls)
		}
		if text, _ := recover().(string); !strings.HasPrefix(text, "a bug") || !strings.Contains(text, "yield_test.go") {
			t.Errorf("the panic became %q, want its value and its stack", text)
		}
	}()
	s.yielding(func() { panic("a bug") })
}
