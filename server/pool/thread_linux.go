package pool

import "golang.org/x/sys/unix"

// nicer is the increase of the nice value of a thread that runs a long computation.
const nicer = 3

// lowerPriority makes the calling thread nicer. If the system refuses, calls are merely slower.
func lowerPriority() {
	if left, err := unix.Getpriority(unix.PRIO_PROCESS, 0); err == nil { // 20 minus the nice value
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-left+nicer)
	}
}
