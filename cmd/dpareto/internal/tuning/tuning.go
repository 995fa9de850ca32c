// Package tuning sets the Go runtime up for a server.
package tuning

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	// headroom is by how many bytes the heap may grow at least between two collections.
	// What a server keeps is often a few megabytes, and what its calls allocate is
	// short-lived: Go by itself would spend a fifth of the time with collecting again and
	// again.
	headroom = 64 << 20
	// fittingHeadroom is by how many more bytes it may grow while models are fitted. They
	// leave tens of megabytes per second behind, and a collection takes 10 to 30 ms of
	// processors that calls wait for: with one every second that is more than one call in
	// a hundred.
	fittingHeadroom = 128 << 20
	// spare is how many goroutines run at once besides models that use every processor twice.
	spare = 4
	// calm is the time without a model after which Go is as it was before.
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
	running    int
	processors bool // more than the machine has
	memory     bool // more than Go takes by default
	calming    *time.Timer
}

// Fitting gives Go more processors than the machine has, and more memory between two
// collections of garbage, until done is called. Both may be called while other models are
// fitted.
//
// Go lets a goroutine run for 10 ms before it looks for others, and a call passes through
// half a dozen of them: where models keep all of Go's processors busy every call takes a
// tenth of a second. With more of them calls always find one, and the operating system
// shares the real ones fairly. At other times it would harm: Go has idle ones collect
// garbage, and they take the place of calls on the real ones.
//
// What GOMAXPROCS and GOGC say in the environment is left alone, and GOMEMLIMIT is kept to.
func Fitting() (done func()) {
	fits.Lock()
	defer fits.Unlock()
	fits.running++
	if fits.calming != nil {
		fits.calming.Stop()
	}
	if !fits.processors && os.Getenv("GOMAXPROCS") == "" {
		fits.processors = true
		runtime.GOMAXPROCS(2*machine() + spare)
	}
	if os.Getenv("GOGC") == "" {
		grow()
	}
	return sync.OnceFunc(func() {
		fits.Lock()
		defer fits.Unlock()
		if fits.running--; fits.running == 0 {
			fits.calming = time.AfterFunc(calm, lower)
		}
	})
}

// grow lets the heap grow by fittingHeadroom more than by itself again, which is what Go
// does by default. What it is at the last collection is all that is known of it, so that
// this is to be called again and again; that takes less than a microsecond and stops nothing.
func grow() {
	live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(live)
	debug.SetGCPercent(percent(live[0].Value.Uint64()))
	fits.memory = true
}

// percent returns by how many percent a heap of so many bytes is to grow while models are
// fitted. Before the first collection it seems to be empty.
func percent(live uint64) int {
	return 100 + int(100*fittingHeadroom/max(live, headroom))
}

// lower takes back what Fitting gave.
func lower() {
	fits.Lock()
	defer fits.Unlock()
	if fits.running > 0 {
		return
	}
	if fits.processors {
		fits.processors = false
		runtime.SetDefaultGOMAXPROCS()
	}
	if fits.memory {
		fits.memory = false
		debug.SetGCPercent(100)
	}
}
