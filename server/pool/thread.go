package pool

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// processors is the number of processors that Go uses by default.
var processors = runtime.GOMAXPROCS(0)

// onThread calls fn on a new thread, with low priority if the system supports that. A panic in fn
// becomes a panic of the caller.
func onThread(fn func()) {
	running.add(1)
	defer running.add(-1)
	failed := make(chan any)
	go func() {
		defer close(failed)
		defer func() {
			if r := recover(); r != nil {
				failed <- fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
		}()
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		lowerPriority()
		fn()
	}()
	if r := <-failed; r != nil {
		panic(r)
	}
}

// running counts the running calls of onThread.
var running counter

type counter struct {
	mu    sync.Mutex
	count int
}

// add raises GOMAXPROCS while the count is not zero, unless the environment sets it. Go lets a
// goroutine run for 10 ms before the next one, and a call needs several turns. So calls need slots
// without a computation; the operating system shares the real processors. At other times the extra
// slots would do harm, because Go collects garbage in them.
func (c *counter) add(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.count
	c.count += n
	switch {
	case os.Getenv("GOMAXPROCS") != "":
	case before == 0:
		runtime.GOMAXPROCS(2*processors + 4)
	case c.count == 0:
		runtime.SetDefaultGOMAXPROCS()
	}
}
