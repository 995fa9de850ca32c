package server

import (
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// Only where fits keep all of their processors busy does anything tick, and for a while after.
func TestTicks(t *testing.T) {
	started := make(chan int, 4)
	start := func(_ *ticks, processor int) { started <- processor }
	mine := ticks{left: make(map[int]int)}
	processors := []int{1, 3}
	first := mine.begin(processors, start)
	if len(mine.left) != 0 {
		t.Errorf("beside one fit on two processors there are ticks: %v", mine.left)
	}
	second := mine.begin(processors, start)
	if got := []int{<-started, <-started}; !slices.Contains(got, 1) || !slices.Contains(got, 3) {
		t.Errorf("beside two fits there are ticks on %v, want %v", got, processors)
	}
	third := mine.begin(processors, start)
	third()
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
	if p := <-started; p != 1 {
		t.Errorf("ticks began anew on processor %d, want 1, since those on 3 went on", p)
	}
	if !mine.next(1) || !mine.next(3) {
		t.Error("the ticks of the next fit ended at once")
	}
	first()
	fourth()
	for _, p := range processors {
		for range lastTicks {
			mine.next(p)
		}
	}
	if len(started) != 0 || len(mine.left) != 0 {
		t.Errorf("%d were started besides, %v is left", len(started), mine.left)
	}
}

// The thread that ticks is on its processor alone, and in time.
func TestTickOn(t *testing.T) {
	var all unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	processor := list(&all)[all.Count()-1]
	var only unix.CPUSet
	var attr *unix.SchedAttr
	var slack int
	mine := ticks{left: make(map[int]int)}
	ended := make(chan struct{})
	done := mine.begin([]int{processor}, func(_ *ticks, p int) {
		defer close(ended)
		tickOn(&mine, p)
		err := unix.SchedGetaffinity(0, &only)
		if err == nil {
			attr, err = unix.SchedGetAttr(0, 0)
		}
		if err == nil {
			slack, err = unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
		}
		if err != nil {
			t.Error(err)
		}
	})
	done()
	<-ended
	if attr == nil {
		t.Fatal("the thread told nothing")
	}
	if got := list(&only); !slices.Equal(got, []int{processor}) || attr.Nice != 0 || slack != 1 {
		t.Errorf("on processors %v, nice %d, slack %d ns; want %d, 0, 1", got, attr.Nice, slack, processor)
	}
}
