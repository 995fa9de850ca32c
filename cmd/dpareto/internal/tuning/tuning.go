// Package tuning sets the Go runtime up for a server.
package tuning

import (
	"os"
	"runtime"
	"sync"
	"time"
)

const (
	// headroom is by how many bytes the heap may grow at least between two collections.
	// What a server keeps is often a few megabytes, and what its calls allocate is
	// short-lived: Go by itself would spend a fifth of the time with collecting again and
	// again.
	headroom = 64 << 20
	// spare is how many goroutines run at once besides models that use every processor twice.
	spare = 4
	// calm is the time without a model after which Go has as many processors as the machine.
	calm = time.Second
)

// ballast makes the heap seem larger than it is, which is what Go goes by. Nobody touches
// it, so that it takes addresses and no memory.
var ballast = sync.OnceValue(func() []byte { return make([]byte, headroom) })

// Serve sets the runtime up for a server and returns the number of processors that
// models may use at once: all but one, which is left to calls.
func Serve() (processors int) {
	ballast()
	return max(1, machine()-1)
}

// machine is the number of processors that Go had at first.
var machine = sync.OnceValue(func() int { return runtime.GOMAXPROCS(0) })

// fits counts the models that are being fitted.
var fits struct {
	sync.Mutex
	running int
	raised  bool
	calming *time.Timer
}

// Fitting gives Go more processors than the machine has until done is called. Both may be
// called while other models are fitted.
//
// Go lets a goroutine run for 10 ms before it looks for others, and a call passes through
// half a dozen of them: where models keep all of Go's processors busy every call takes a
// tenth of a second. With more of them calls always find one, and the operating system
// shares the real ones fairly. At other times it would harm: Go has idle ones collect
// garbage, and they take the place of calls on the real ones.
//
// What GOMAXPROCS says in the environment is left alone.
func Fitting() (done func()) {
	if os.Getenv("GOMAXPROCS") != "" {
		return func() {}
	}
	fits.Lock()
	defer fits.Unlock()
	fits.running++
	if fits.calming != nil {
		fits.calming.Stop()
	}
	if !fits.raised {
		fits.raised = true
		runtime.GOMAXPROCS(2*machine() + spare)
	}
	return sync.OnceFunc(func() {
		fits.Lock()
		defer fits.Unlock()
		if fits.running--; fits.running == 0 {
			fits.calming = time.AfterFunc(calm, lower)
		}
	})
}

// lower gives Go as many processors as the machine has.
func lower() {
	fits.Lock()
	defer fits.Unlock()
	if fits.running == 0 && fits.raised {
		fits.raised = false
		runtime.SetDefaultGOMAXPROCS()
	}
}
