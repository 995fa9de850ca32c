package tuning

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"testing/synctest"
	"time"
)

// Go has more processors and more memory while models are fitted, and a moment longer.
func TestFitting(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	synctest.Test(t, func(t *testing.T) {
		before := runtime.GOMAXPROCS(0)
		defer runtime.GOMAXPROCS(before)
		if got, want := Serve(), max(1, before-1); got != want {
			t.Errorf("models may use %d of %d processors, want %d", got, before, want)
		}
		runtime.GC() // which finds the ballast
		expect := func(when string, fitting bool) {
			t.Helper()
			synctest.Wait()
			processors, extra := before, uint64(0)
			if fitting {
				processors, extra = 2*before+spare, fittingHeadroom
			}
			if got := runtime.GOMAXPROCS(0); got != processors {
				t.Errorf("%s Go has %d processors, want %d", when, got, processors)
			}
			// The percentage is whole, and Go counts some memory more.
			live, growth := heap()
			if want := live + extra; growth < want-want/50 || growth > want+16<<20 {
				t.Errorf("%s the heap of %d MB may grow by %d MB, want %d", when, live>>20, growth>>20, want>>20)
			}
		}
		expect("without a model", false)
		first, second := Fitting(), Fitting()
		expect("with two models", true)
		first()
		first() // once more does no harm
		time.Sleep(2 * calm)
		expect("with one model", true)
		second()
		time.Sleep(calm / 2)
		expect("a moment after the last", true)
		third := Fitting()
		time.Sleep(calm)
		expect("with another one", true)
		third()
		time.Sleep(calm + 1)
		expect("after the last", false)

		large := make([]byte, 3*headroom)
		fourth := Fitting()
		runtime.GC()
		fifth := Fitting()
		expect("with a larger heap", true)
		fourth()
		fifth()
		time.Sleep(calm + 1)
		expect("after all", false)
		runtime.KeepAlive(large)
	})
}

// What the environment says is left alone.
func TestFittingKeepsToEnvironment(t *testing.T) {
	t.Setenv("GOMAXPROCS", "2")
	t.Setenv("GOGC", "70")
	defer debug.SetGCPercent(debug.SetGCPercent(70))
	synctest.Test(t, func(t *testing.T) {
		before := runtime.GOMAXPROCS(0)
		check := func() {
			t.Helper()
			if got := runtime.GOMAXPROCS(0); got != before {
				t.Errorf("%d processors, want %d", got, before)
			}
			if got := read("/gc/gogc:percent"); got != 70 {
				t.Errorf("the heap grows by %d %%, want 70", got)
			}
		}
		done := Fitting()
		check()
		done()
		time.Sleep(calm + 1)
		synctest.Wait()
		check()
	})
}

// heap returns the size of the heap at the last collection of garbage, and by how much it
// may grow until the next.
func heap() (live, growth uint64) {
	live = read("/gc/heap/live:bytes")
	return live, read("/gc/heap/goal:bytes") - live
}

func read(name string) uint64 {
	sample := []metrics.Sample{{Name: name}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}
