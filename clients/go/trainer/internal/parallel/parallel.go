// Package parallel divides loops among goroutines that live as long as a training run, so
// that the loops of a step allocate nothing.
package parallel

import (
	"sync"
	"sync/atomic"
)

// Pool runs loops. Its methods must be called from one goroutine at a time.
type Pool struct {
	workers int
	wake    chan struct{}
	waiting sync.WaitGroup

	// The loop that runs.
	body  func(int)
	tasks int
	next  atomic.Int64
}

// New returns a pool of the given number of workers, at least 1. The caller of Do is one
// of them; the others are goroutines until Close.
func New(workers int) *Pool {
	p := &Pool{workers: workers, wake: make(chan struct{})}
	for range workers - 1 {
		go func() {
			for range p.wake {
				p.work()
				p.waiting.Done()
			}
		}()
	}
	return p
}

// Close ends the goroutines. The pool must not be used afterwards.
func (p *Pool) Close() { close(p.wake) }

// Count is the number of workers.
func (p *Pool) Count() int { return p.workers }

// Do calls body with every number in [0, tasks), in any order and at the same time,
// and returns when all calls have.
func (p *Pool) Do(tasks int, body func(int)) {
	helpers := min(p.workers, tasks) - 1
	if helpers <= 0 {
		for i := range tasks {
			body(i)
		}
		return
	}
	p.body, p.tasks = body, tasks
	p.next.Store(0)
	p.waiting.Add(helpers)
	for range helpers {
		p.wake <- struct{}{}
	}
	p.work()
	p.waiting.Wait()
}

func (p *Pool) work() {
	for {
		i := int(p.next.Add(1)) - 1
		if i >= p.tasks {
			return
		}
		p.body(i)
	}
}
