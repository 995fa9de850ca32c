//go:build !unix

package bench

import "time"

// ProcessorTime returns 0: it is not known here.
func ProcessorTime() time.Duration { return 0 }
