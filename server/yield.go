package server

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// yielding calls fn on a thread of its own that leaves the processor to all others, where
// the system has such threads. Fits of models are for this: they take seconds, and calls
// of other studies must not wait for them. A panic of fn becomes one of the caller.
func (s *Server) yielding(fn func()) {
	defer s.fitting()()
	done := make(chan any)
	go func() {
		defer func() {
			if r := recover(); r != nil {
				done <- fmt.Sprintf("%v\n%s", r, debug.Stack())
			}
			close(done)
		}()
		runtime.LockOSThread() // and never unlock: the thread ends with the goroutine
		defer giveWay()()
		fn()
	}()
	if r := <-done; r != nil {
		panic(r)
	}
}

// yieldingIf is yielding for what takes long, and calls fn as it is otherwise.
func (s *Server) yieldingIf(takesLong bool, fn func()) {
	if takesLong {
		s.yielding(fn)
	} else {
		fn()
	}
}
