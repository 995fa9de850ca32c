//go:build !unix

package bench

import "time"

// processorTime reports false: it is not measured on this platform.
func processorTime() (time.Duration, bool) { return 0, false }
