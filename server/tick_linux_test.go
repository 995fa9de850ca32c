package server

import (
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// Only where fits keep all of their processors busy does anything tick, and for a while after.
func TestTicks(t *testing.T) {
	var started []int
	start := func(processor int) { started = append(started, processor) }
	mine := ticks{left: make(map[int]int)}
	processors := []int{1, 3}
	first := mine.begin(processors, start)
	if len(mine.left)+len(started) != 0 {
		t.Errorf("beside one fit on two processors there are ticks: %v, %v", started, mine.left)
	}
	second := mine.begin(processors, start)
	third := mine.begin(processors, start)
	third()
	if !slices.Equal(started, processors) {
		t.Errorf("beside fits on %v ticks were started on %v", processors, started)
	}
	for range 2 * lastTicks {
		if !mine.next(1) || !mine.next(3) {
			t.Fatal("the ticks ended before the fits")
		}
	}
	second()
	for i := range lastTicks - 1 {
		if !mine.next(1) || i < lastTicks/2 && !mine.next(3) {
			t.Fatalf("tick %d after the fit was the last", i)
		}
	}
	if mine.next(1) {
		t.Error("the ticks do not end")
	}
	fourth := mine.begin(processors, start)
	if want := []int{1, 3, 1}; !slices.Equal(started, want) {
		t.Errorf("ticks were started on %v, want %v, since those on 3 went on", started, want)
	}
	first()
	fourth()
	for _, p := range processors {
		for i := range lastTicks {
			if got, want := mine.next(p), i < lastTicks-1; got != want {
				t.Fatalf("tick %d on %d after the next fit: another is %t", i, p, got)
			}
		}
	}
	if len(mine.left) != 0 {
		t.Errorf("%v is left", mine.left)
	}
}

// Fits whose processors have changed tick if they keep those of the last one busy.
func TestTicksOfOtherProcessors(t *testing.T) {
	var started []int
	start := func(processor int) { started = append(started, processor) }
	mine := ticks{left: make(map[int]int)}
	one := mine.begin([]int{1}, start)
	three := mine.begin([]int{1, 2, 3}, start)
	for range lastTicks - 1 {
		if !mine.next(1) {
			t.Fatal("the last ticks were too few")
		}
	}
	if mine.next(1) {
		t.Error("two fits on three processors go on ticking")
	}
	one()
	two := mine.begin([]int{2, 4}, start)
	if want := []int{1, 2, 4}; !slices.Equal(started, want) {
		t.Errorf("ticks were started on %v, want %v", started, want)
	}
	two()
	three()
}

// The thread that ticks is on its processor alone, as important as others, in time, and waits.
func TestTickOn(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	processor := list(&all)[all.Count()-1]
	mine := ticks{left: make(map[int]int)}
	mine.begin([]int{processor}, func(int) {})()
	lockedThread(func() {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice()+4); err != nil { // as a server may have it
			t.Error(err)
		}
		own, slice, waits := nice(), threadSlice(t), threadWaits(t)
		tickOn(&mine, processor)
		if n := threadWaits(t) - waits; n < lastTicks/2 {
			t.Errorf("it waited %d times in %d ticks", n, lastTicks)
		}
		if got := nice(); got != own {
			t.Errorf("nice %d, want %d", got, own)
		}
		if got := threadSlice(t); slice != 0 && got != uint64(tickSlice) { // Linux told of none until 6.12
			t.Errorf("a slice of %d ns, want %d", got, tickSlice)
		}
		var only unix.CPUSet
		if err := unix.SchedGetaffinity(0, &only); err != nil || !slices.Equal(list(&only), []int{processor}) {
			t.Errorf("on processors %v, want %d: %v", list(&only), processor, err)
		}
		if slack, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0); err != nil || slack != 1 {
			t.Errorf("it wakes up to %d ns late: %v", slack, err)
		}
		runtime.UnlockOSThread() // what lockedThread has locked
		if !strings.Contains(string(debug.Stack()), "locked to thread") {
			t.Error("the thread would do other things afterwards")
		}
	})
	if len(mine.left) != 0 {
		t.Errorf("%v is left", mine.left)
	}
}

// threadSlice returns the slice of the calling thread, if the system tells.
func threadSlice(t *testing.T) uint64 {
	t.Helper()
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Error(err)
		return 0
	}
	return attr.Runtime
}

// threadWaits returns how many times the calling thread has waited for something.
func threadWaits(t *testing.T) int {
	t.Helper()
	var usage unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_THREAD, &usage); err != nil {
		t.Error(err)
	}
	return int(usage.Nvcsw)
}
