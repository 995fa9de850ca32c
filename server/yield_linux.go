package server

import (
	"time"

	"golang.org/x/sys/unix"
)

const (
	// fitNice is the nice value of threads that fit models, of at most 19: they get about a
	// tenth of what a normal thread gets, and all that is left over.
	fitNice = 10
	// fitSlice is for how long such a thread keeps a processor that a call waits for. Linux
	// has such slices since 6.12; before, and by default, they take about 3 ms, and a call
	// waits for half a dozen of them.
	fitSlice = 100 * time.Microsecond
)

// lowerPriority lowers the priority of the calling thread for good, and keeps it away from one
// processor. The priority is not enough: where all processors are busy, also with what gives
// way at once, a commit waits for the disk several times as long, above all in virtual machines.
func lowerPriority() {
	// It can always be lowered; if it were refused, fits would have the priority of calls.
	_ = unix.SchedSetAttr(0, &unix.SchedAttr{
		Size: unix.SizeofSchedAttr, Policy: unix.SCHED_NORMAL, Nice: fitNice, Runtime: uint64(fitSlice),
	}, 0)
	var processors unix.CPUSet
	if err := unix.SchedGetaffinity(0, &processors); err != nil || processors.Count() < 2 {
		return
	}
	for i := range processors {
		if processors[i] != 0 {
			processors[i] &= processors[i] - 1 // without the first, which serves most devices
			break
		}
	}
	_ = unix.SchedSetaffinity(0, &processors)
}
