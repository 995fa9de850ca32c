//go:build !unix

package bench

import "time"

// ProcessorTime reports false: this platform does not measure it.
func ProcessorTime() (time.Duration, bool) { return 0, false }
