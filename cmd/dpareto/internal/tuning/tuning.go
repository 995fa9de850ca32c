// Package tuning sets the Go runtime up for a server.
package tuning

import (
	"os"
	"runtime"
	"sync"
)

const (
	// headroom is by how many bytes the heap may grow at least between two collections.
	// What a server keeps is often a few megabytes, and what its calls allocate is
	// short-lived: Go by itself would spend a fifth of the time with collecting again and
	// again.
	headroom = 64 << 20
	// spare is how many goroutines run at once besides models that use every processor twice.
	spare = 4
)

// ballast makes the heap seem larger than it is, which is what Go goes by. Nobody touches
// it, so that it takes addresses and no memory.
var ballast = sync.OnceValue(func() []byte { return make([]byte, headroom) })

// Serve sets the runtime up for a server and returns the number of processors that
// models may use at once: all but one, which is left to calls. Only the first call in a
// process changes anything.
//
// Go lets a goroutine run for 10 ms before it looks for others, and a call passes through
// half a dozen of them: where models keep all of Go's processors busy every call takes a
// tenth of a second. With more of them than the machine has, calls always find one, and the
// operating system shares the real ones fairly.
//
// What GOMAXPROCS says in the environment is left alone.
func Serve() (processors int) {
	ballast()
	return models()
}

// models is the number of processors that models may use at once.
var models = sync.OnceValue(func() int {
	processors := runtime.GOMAXPROCS(0)
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2*processors + spare)
	}
	return max(1, processors-1)
})
