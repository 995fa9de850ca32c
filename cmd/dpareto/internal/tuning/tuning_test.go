package tuning

import (
	"runtime"
	"testing"
)

// A process that serves again and again, as tests do, has no more threads than another.
func TestServeAgain(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	t.Setenv("GOMAXPROCS", "")
	processors := Serve()
	after := runtime.GOMAXPROCS(0)
	if want := max(1, before-1); processors != want || after != 2*before+spare {
		t.Errorf("%d processors of Go's %d for models, want %d of %d", processors, after, want, 2*before+spare)
	}
	for range 10 {
		if again := Serve(); again != processors || runtime.GOMAXPROCS(0) != after {
			t.Fatalf("%d processors of Go's %d after another call", again, runtime.GOMAXPROCS(0))
		}
	}
}
