package server

import (
	"runtime"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// tickEvery is the time between two ticks, and so about the longest for which a call waits
	// for a processor that a fit has.
	tickEvery = 500 * time.Microsecond
	// tickSlice is the slice of threads that tick. They need none, and a shorter one than that of
	// others lets them run at once (Linux 6.12; before, a thread that has slept mostly does).
	tickSlice = 100 * time.Microsecond
	// lastTicks is how many ticks follow the last fit: the next one often comes at once.
	lastTicks = 50
)

// ticks are threads that do nothing but wake up on the processors of fits, for Linux to
// choose anew who runs there. It chooses when a thread wakes up, and it may choose the fit then,
// whose turn it is when others have had more than their share; else only with its clock, often
// every 4 ms, for all of which a call, which is one in a dozen of short turns, would wait. Where
// fits leave a processor idle calls go there, and nothing needs to tick.
type ticks struct {
	mu   sync.Mutex
	fits int
	busy int         // this many fits keep all processors busy
	left map[int]int // how many ticks are left, by processor that has any
}

// ticking is of the process, like the processors.
var ticking = ticks{left: make(map[int]int)}

// begin starts to tick on processors, with a call of start for each that has none, if there are
// as many fits as processors. done is to be called at the end of a fit.
func (t *ticks) begin(processors []int, start func(processor int)) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fits++
	t.busy = len(processors)
	if t.fits >= t.busy {
		for _, p := range processors {
			if t.left[p] == 0 {
				start(p)
			}
			t.left[p] = lastTicks
		}
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.fits--
	}
}

// next reports whether another tick on a processor is to follow. If not, a begin may start anew.
func (t *ticks) next(processor int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fits >= t.busy {
		return true
	}
	if t.left[processor]--; t.left[processor] > 0 {
		return true
	}
	delete(t.left, processor)
	return false
}

// tickOn wakes up on a processor again and again.
func tickOn(t *ticks, processor int) {
	runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
	var only unix.CPUSet
	only.Set(processor)
	// Whatever is refused, what follows does no harm.
	_ = unix.SchedSetaffinity(0, &only)
	if attr, err := unix.SchedGetAttr(0, 0); err == nil {
		attr.Runtime = uint64(tickSlice) // and the priority of calls, whatever that is
		_ = unix.SchedSetAttr(0, attr, 0)
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	pause := unix.NsecToTimespec(tickEvery.Nanoseconds())
	for t.next(processor) {
		_ = unix.Nanosleep(&pause, nil)
	}
}
