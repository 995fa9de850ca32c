//go:build unix

package serve

import (
	"math"
	"syscall"
)

// openFiles returns how many files the process may have open, 0 if unknown. Go has raised the soft
// limit to the hard one.
func openFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 0
	}
	return int(min(limit.Cur, math.MaxInt32))
}
