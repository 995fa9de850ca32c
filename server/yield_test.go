package server

import (
	"strings"
	"testing"
)

func TestYielding(t *testing.T) {
	called := false
	yielding(func() { called = true })
	if !called {
		t.Error("the function was not called")
	}
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "a bug") || !strings.Contains(text, "yield_test.go") {
			t.Errorf("the panic became %q, want its value and its stack", text)
		}
	}()
	yielding(func() { panic("a bug") })
}
