//go:build !unix

package bench

import "time"

// processorTime reports false: this platform does not measure it.
func processorTime() (time.Duration, bool) { return 0, false }
