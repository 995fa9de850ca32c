// Package tuning sets the Go runtime up for a server.
package tuning

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	// heapGrowth is by how much the heap may grow between two collections, in percent of
	// what is in use. What a server keeps is small, and what its calls allocate is
	// short-lived: with Go's 100 it spends a fifth of its time with collecting a few
	// megabytes again and again.
	heapGrowth = 400
	// spare is how many goroutines run at once besides models that use every processor twice.
	spare = 4
)

// Serve sets the runtime up for a server and returns the number of processors that
// models may use at once.
//
// Go lets a goroutine run for 10 ms before it looks for others, and a call passes through
// half a dozen of them: where models keep all of Go's processors busy every call takes a
// tenth of a second. With more of them than the machine has, calls always find one, and the
// operating system shares the real ones fairly.
//
// What GOMAXPROCS and GOGC say in the environment is left alone.
func Serve() (processors int) {
	processors = runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2*processors + spare)
	}
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(heapGrowth)
	}
	return processors
}
