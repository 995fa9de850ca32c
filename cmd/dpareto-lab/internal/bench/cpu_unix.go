//go:build unix

package bench

import (
	"syscall"
	"time"
)

// ProcessorTime returns the processor time that this process has taken so far, user and
// system, on all processors, or 0 if it is not known.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
