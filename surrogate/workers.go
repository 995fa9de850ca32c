package surrogate

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// Workers says how much work runs in parallel and where. It changes how long a
// computation takes and never its result. The zero value is ready to use.
type Workers struct {
	// Max is the largest number of goroutines at once; 1 is the caller's. 0 or less means GOMAXPROCS.
	Max int

	// Run calls fn and returns when fn has returned, for example on a thread of low
	// priority. fn does not panic. Nil means to call fn directly.
	Run func(fn func())
}

// Share divides the indices 0 to n-1 among goroutines and returns when all are done.
// Each goroutine calls start once and passes each of its indices to the function that
// start returns. A panic in one of them becomes a panic of the caller.
func (w Workers) Share(n int, start func() (work func(i int))) {
	goroutines := w.Max
	if goroutines < 1 {
		goroutines = runtime.GOMAXPROCS(0)
	}
	goroutines = min(goroutines, n)
	run := w.Run
	if run == nil {
		run = func(fn func()) { fn() }
	}
	var next atomic.Int64
	panics := make(chan any, goroutines)
	share := func() {
		defer func() {
			if r := recover(); r != nil {
				panics <- r
			}
		}()
		work := start()
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			work(i)
		}
	}
	if goroutines == 1 { // on the caller's thread, whose priority it may have chosen
		run(share)
	} else {
		var group sync.WaitGroup
		for range goroutines {
			group.Go(func() { run(share) })
		}
		group.Wait()
	}
	select {
	case r := <-panics:
		panic(r)
	default:
	}
}
