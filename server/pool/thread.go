package pool

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// processors is the number of processors that Go uses before anybody sets another one.
var processors = runtime.GOMAXPROCS(0)

// onThread calls fn on a new thread, with low priority if the system supports that. A panic in fn
// becomes a panic of the caller.
func onThread(fn func()) {
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
