package meter

import (
	"fmt"
)

// Work counts and limits the operations of accountants: see [privacy.Within]. An operation is about one
// exponential of a sum, 10 to 20 ns. A Work is for one goroutine.
type Work struct {
	// Limit is the largest number of operations, 0 for no limit.
	Limit int64
	// Pause is called every few milliseconds, with a transform of a grid as the longest stage in
	// between, some 0.1 s. The accounting ends with its error. Nil for no pauses.
	Pause func() error

	done, paused int64
	err          error
}

// pauseEvery is the number of operations between pauses.
const pauseEvery = 1 << 16

// LimitError is the error of accounting that would take more operations than its limit. Stages
// whose size is known in advance do not begin.
type LimitError struct {
	Needed int64 // a lower bound
	Limit  int64
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("accounting takes at least %d operations, more than %d", e.Needed, e.Limit)
}

// Done returns the number of operations so far.
func (w *Work) Done() int64 { return w.done }

// Admits returns a *LimitError if a number of further operations would exceed the limit.
func (w *Work) Admits(further int64) error {
	if needed := w.done + further; w.Limit > 0 && needed > w.Limit {
		return &LimitError{Needed: needed, Limit: w.Limit}
	}
	return nil
}

// stop is what Add and Admit panic with. UntilStopped recovers it.
type stop struct{ err error }

// Admit ends the accounting if further operations would exceed the limit.
func (w *Work) Admit(further float64) {
	if w == nil {
		return
	}
	if w.err == nil {
		w.err = w.Admits(int64(min(further, 1<<62)))
	}
	if w.err != nil {
		panic(stop{w.err})
	}
}

// Add counts operations.
func (w *Work) Add(operations int) {
	if w == nil {
		return
	}
	w.done += int64(operations)
	if w.err == nil && w.Pause != nil && w.done-w.paused >= pauseEvery {
		w.paused = w.done
		w.err = w.Pause()
	}
	w.Admit(0)
}

// UntilStopped runs f, which counts work, and returns its error or the one that ends the work.
func UntilStopped(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			s, ok := r.(stop)
			if !ok {
				panic(r)
			}
			err = s.err
		}
	}()
	return f()
}

// worker is a curve, of any kind, that counts its work.
type worker interface{ CountIn(w *Work) }

// CountIn has a curve count its work in w, if it does any.
func CountIn(curve any, w *Work) {
	if c, ok := curve.(worker); ok {
		c.CountIn(w)
	}
}
