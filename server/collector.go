package server

import (
	"os"
	"runtime/debug"
)

// collectorPercent is GOGC for servers. They retain a few megabytes, and their calls allocate
// hundreds per second: with Go's default of 100, garbage collection takes a fifth of the time.
const collectorPercent = 400

// SetCollector tunes Go's garbage collector for a server process, unless the environment variable
// GOGC is set.
func SetCollector() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(collectorPercent)
	}
}
