package pool

import "golang.org/x/sys/unix"

// nicer is the increase of the nice value of a thread that runs a long computation.
const nicer = 10

// lowerPriority makes the calling thread nicer and keeps it off the first processor. Niceness alone
// is not enough: commits are slow while all processors are busy, even with nice threads. If the
// system refuses, calls are merely slower.
func lowerPriority() {
	if left, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 minus the nice value
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-left+nicer)
	}
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil || set.Count() < 2 {
		return
	}
	first := 0
	for !set.IsSet(first) {
		first++
	}
	set.Clear(first)
	_ = unix.SchedSetaffinity(0, &set)
}
