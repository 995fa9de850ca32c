//go:build unix

package bench

import (
	"syscall"
	"time"
)

// processorTime returns the processor time that this process has taken so far, user and
// system, on all processors.
func processorTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
