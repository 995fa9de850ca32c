package pool

import (
	"runtime"
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
		if running.count != 0 {
			t.Errorf("%d computations go on after the panic", running.count)
		}
	}()
	onThread(func() { panic("a bug") })
}

// Go has more processors until the last computation has ended.
func TestGOMAXPROCS(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	t.Cleanup(runtime.SetDefaultGOMAXPROCS)
	runtime.SetDefaultGOMAXPROCS()
	before := runtime.GOMAXPROCS(0)
	expect := func(when string, want int) {
		t.Helper()
		if got := runtime.GOMAXPROCS(0); got != want {
			t.Errorf("%s Go has %d processors, want %d", when, got, want)
		}
	}
	onThread(func() {
		expect("in a computation", 2*processors+4)
		onThread(func() { expect("in a second one", 2*processors+4) })
		expect("after the second one", 2*processors+4)
	})
	expect("afterwards", before)

	t.Setenv("GOMAXPROCS", "3")
	runtime.GOMAXPROCS(3)
	onThread(func() { expect("with GOMAXPROCS in the environment", 3) })
	expect("after that", 3)
}
