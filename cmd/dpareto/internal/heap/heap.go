// Package heap sets how much memory a server trades for processor time.
package heap

import (
	"os"
	"runtime/debug"
)

// growth is by how much the heap may grow between two collections, in percent of what
// is in use. What a server keeps is small, and what its calls allocate is short-lived:
// with Go's 100 it spends a fifth of its time with collecting a few megabytes again and
// again.
const growth = 400

// Relax lets the heap grow further between collections, unless GOGC says how far.
func Relax() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(growth)
	}
}
