package pool

import (
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A computation has a thread with a lower priority, which leaves one processor to calls and
// ends with the computation.
func TestRunOnThread(t *testing.T) {
	var all, own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var thread int
	onThread(func() {
		thread = unix.Gettid()
		if !strings.Contains(string(debug.Stack()), "locked to thread") {
			t.Error("the goroutine may move to another thread")
		}
		attr, err := unix.SchedGetAttr(0, 0)
		if want := min(19, before.Nice+nicer); err != nil || attr.Nice != want {
			t.Errorf("scheduled as %+v, %v, want nice %d", attr, err, want)
		}
		if err := unix.SchedGetaffinity(0, &own); err != nil {
			t.Error(err)
		}
	})
	for p := range 64 * len(all) {
		if own.IsSet(p) && !all.IsSet(p) {
			t.Errorf("processor %d is not the process's", p)
		}
	}
	if want := max(1, all.Count()-1); own.Count() != want {
		t.Errorf("%d of %d processors, want %d", own.Count(), all.Count(), want)
	}
	if thread == os.Getpid() { // the first thread, which Go keeps and does not use again
		onThread(func() { thread = unix.Gettid() })
	}
	folder := "/proc/self/task/" + strconv.Itoa(thread)
	for range 1000 {
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("thread %d goes on", thread)
}

// The priority is lowered from what it is, and a single processor is kept.
func TestLowerPriorityOfOne(t *testing.T) {
	var all, one, own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		t.Fatal(err)
	}
	for p := range 64 * len(all) {
		if all.IsSet(p) {
			one.Zero()
			one.Set(p) // the last
		}
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		before, err := unix.SchedGetAttr(0, 0)
		if err != nil {
			t.Error(err)
			return
		}
		before.Nice = min(19, before.Nice+4)
		if err := errors.Join(unix.SchedSetAttr(0, before, 0), unix.SchedSetaffinity(0, &one)); err != nil {
			t.Error(err)
			return
		}
		lowerPriority()
		attr, err := unix.SchedGetAttr(0, 0)
		if want := min(19, before.Nice+nicer); err != nil || attr.Nice != want {
			t.Errorf("scheduled as %+v, %v, want nice %d", attr, err, want)
		}
		if err := unix.SchedGetaffinity(0, &own); err != nil || own != one {
			t.Errorf("processors %v, %v, want %v", own, err, one)
		}
	}()
	<-done
}
