package server

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What takes long leaves one of the processors to calls, where there are several, and lets
// every other thread go before it.
func TestYieldingThreads(t *testing.T) {
	var all, mine unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	New(Options{}).yielding(func() {
		if err := unix.SchedGetaffinity(0, &mine); err != nil {
			t.Error(err)
		}
		attr, err := unix.SchedGetAttr(0, 0)
		if err != nil || attr.Nice != fitNice {
			t.Errorf("scheduled as %+v, %v", attr, err)
		}
	})
	if want := max(1, all.Count()-1); mine.Count() != want {
		t.Errorf("%d of %d processors, want %d", mine.Count(), all.Count(), want)
	}
	for i := range 8 * len(mine) * 8 {
		if mine.IsSet(i) && !all.IsSet(i) {
			t.Errorf("processor %d was not this process's", i)
		}
	}
}
