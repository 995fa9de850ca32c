package tuning

import (
	"math"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
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
		lower() // as a timer does that ran when it was to be stopped
		time.Sleep(calm)
		expect("with another one", true)
		third()
		time.Sleep(calm + 1)
		expect("after the last", false)

		first, second = Fitting(), Fitting()
		first()
		time.Sleep(calm / 2)
		second()
		time.Sleep(calm * 3 / 4)
		expect("longer than that after the first of two", true)
		Fitting()()
		time.Sleep(calm * 3 / 4)
		expect("longer than that after the last but one", true)
		time.Sleep(calm)
		expect("at last", false)

		fourth := Fitting()
		large := make([]byte, 3*headroom)
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

// What the environment says is left alone, and only that.
func TestFittingKeepsToEnvironment(t *testing.T) {
	for _, test := range []struct{ processors, percent string }{{"2", "70"}, {"2", ""}, {"", "70"}} {
		t.Setenv("GOMAXPROCS", test.processors)
		t.Setenv("GOGC", test.percent)
		initial := 100
		if test.percent != "" {
			initial, _ = strconv.Atoi(test.percent)
		}
		before := debug.SetGCPercent(initial)
		synctest.Test(t, func(t *testing.T) {
			processors := runtime.GOMAXPROCS(0)
			check := func(moreProcessors, moreMemory bool) {
				t.Helper()
				if got := runtime.GOMAXPROCS(0); got > processors != moreProcessors {
					t.Errorf("%+v: %d processors instead of %d", test, got, processors)
				}
				if got := read("/gc/gogc:percent"); got > uint64(initial) != moreMemory || got < uint64(initial) {
					t.Errorf("%+v: the heap grows by %d %% instead of %d", test, got, initial)
				}
			}
			done := Fitting()
			check(test.processors == "", test.percent == "")
			done()
			time.Sleep(calm + 1)
			synctest.Wait()
			check(false, false)
		})
		debug.SetGCPercent(before)
	}
}

// The heap has the same room whatever its size, and never less than by default.
func TestPercent(t *testing.T) {
	for live, want := range map[uint64]int{
		0: 300, headroom / 2: 300, headroom: 300, fittingHeadroom: 200, 4 * fittingHeadroom: 125, 1 << 40: 100, math.MaxUint64: 100,
	} {
		if got := percent(live); got != want {
			t.Errorf("a heap of %d MB grows by %d %%, want %d", live>>20, got, want)
		}
	}
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
