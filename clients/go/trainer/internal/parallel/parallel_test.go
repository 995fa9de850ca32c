package parallel

import (
	"sync/atomic"
	"testing"
)

func TestDoCallsEveryTaskOnce(t *testing.T) {
	for _, workers := range []int{1, 2, 5} {
		pool := New(workers)
		for _, tasks := range []int{0, 1, 2, 3, 100} {
			calls := make([]atomic.Int32, tasks)
			pool.Do(tasks, func(i int) { calls[i].Add(1) })
			for i := range calls {
				if n := calls[i].Load(); n != 1 {
					t.Errorf("%d workers: task %d of %d was called %d times", workers, i, tasks, n)
				}
			}
		}
		pool.Close()
	}
}

// Workers do work at the same time: each task waits for the other.
func TestDoIsConcurrent(*testing.T) {
	pool := New(2)
	defer pool.Close()
	meet := make(chan struct{})
	pool.Do(2, func(i int) {
		if i == 0 {
			meet <- struct{}{}
		} else {
			<-meet
		}
	})
}

func TestDoDoesNotAllocate(t *testing.T) {
	pool := New(3)
	defer pool.Close()
	var sum atomic.Int64
	body := func(i int) { sum.Add(int64(i)) }
	if n := testing.AllocsPerRun(50, func() { pool.Do(20, body) }); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}
