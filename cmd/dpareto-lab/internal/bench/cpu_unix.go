//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that this process has taken so far, user and
// system, on all processors.
func ProcessorTime() (time.Duration, bool) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, false
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), true
}
