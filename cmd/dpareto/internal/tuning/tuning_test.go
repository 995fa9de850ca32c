package tuning

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// Go has more processors while models are fitted, and a moment longer.
func TestFitting(t *testing.T) {
	t.Setenv("GOMAXPROCS", "")
	synctest.Test(t, func(t *testing.T) {
		before := runtime.GOMAXPROCS(0)
		defer runtime.GOMAXPROCS(before)
		if got, want := Serve(), max(1, before-1); got != want {
			t.Errorf("models may use %d of %d processors, want %d", got, before, want)
		}
		expect := func(when string, want int) {
			t.Helper()
			synctest.Wait()
			if got := runtime.GOMAXPROCS(0); got != want {
				t.Errorf("%s Go has %d processors, want %d", when, got, want)
			}
		}
		raised := 2*before + spare
		expect("without a model", before)
		first, second := Fitting(), Fitting()
		expect("with two models", raised)
		first()
		first() // once more does no harm
		time.Sleep(2 * calm)
		expect("with one model", raised)
		second()
		time.Sleep(calm / 2)
		expect("a moment after the last", raised)
		third := Fitting()
		time.Sleep(calm)
		expect("with another one", raised)
		third()
		time.Sleep(calm + 1)
		expect("after the last", before)
	})
	t.Setenv("GOMAXPROCS", "2")
	before := runtime.GOMAXPROCS(0)
	if done := Fitting(); runtime.GOMAXPROCS(0) != before {
		t.Error("what the environment says was changed")
	} else {
		done()
	}
}
