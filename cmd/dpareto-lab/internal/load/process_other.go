//go:build !unix

package load

import "time"

// processorTime returns 0: it is not known here.
func processorTime() time.Duration { return 0 }
