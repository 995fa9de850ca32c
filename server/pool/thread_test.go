package pool

import (
	"strings"
	"testing"
)

func TestOnThread(t *testing.T) {
	var called bool
	onThread(func() { called = true })
	if !called {
		t.Error("the function was not called")
	}
	defer func() {
		if text, _ := recover().(string); !strings.HasPrefix(text, "a bug") || !strings.Contains(text, "thread_test.go") {
			t.Errorf("the panic became %q, want its value and its stack", text)
		}
	}()
	onThread(func() { panic("a bug") })
}
