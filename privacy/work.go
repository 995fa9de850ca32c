package privacy

import "fmt"

// Work counts and limits the operations of accountants: see [Within]. An operation is about one
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

// WorkError is the error of accounting that would take more operations than its limit. Stages
// whose size is known in advance do not begin.
type WorkError struct {
	Needed int64 // a lower bound
	Limit  int64
}

// Error implements error.
func (e *WorkError) Error() string {
	return fmt.Sprintf("accounting takes at least %d operations, more than %d", e.Needed, e.Limit)
}

// Done returns the number of operations so far.
func (w *Work) Done() int64 { return w.done }

// Admits returns a *WorkError if a number of further operations would exceed the limit.
func (w *Work) Admits(further int64) error {
	if needed := w.done + further; w.Limit > 0 && needed > w.Limit {
		return &WorkError{Needed: needed, Limit: w.Limit}
	}
	return nil
}

// stop is what add panics with. untilStopped recovers it.
type stop struct{ err error }

// admit ends the accounting if further operations would exceed the limit.
func (w *Work) admit(further float64) {
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

// add counts operations.
func (w *Work) add(operations int) {
	if w == nil {
		return
	}
	w.done += int64(operations)
	if w.err == nil && w.Pause != nil && w.done-w.paused >= pauseEvery {
		w.paused = w.done
		w.err = w.Pause()
	}
	w.admit(0)
}

// Within returns an accountant with the results of a whose curves count their work in w, and fail
// with its error once it ends. A curve of it is not safe for concurrent use. [GDP] and [Pure] have
// closed forms, which count as nothing.
func Within(a Accountant, w *Work) Accountant { return limited{a, w} }

type limited struct {
	Accountant

	work *Work
}

// Curve implements Accountant.
func (l limited) Curve(m Mechanism) (Curve, error) {
	c, err := l.Accountant.Curve(m)
	if err != nil {
		return nil, err
	}
	countIn(c, l.work)
	return &limitedCurve{c}, nil
}

type limitedCurve struct{ Curve }

// Epsilon implements Curve.
func (c *limitedCurve) Epsilon(steps int64, delta float64) (g Guarantee, err error) {
	err = untilStopped(func() error {
		g, err = c.Curve.Epsilon(steps, delta)
		return err
	})
	return g, err
}

// untilStopped runs f, which counts work, and returns its error or the one that ends the work.
func untilStopped(f func() error) (err error) {
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
type worker interface{ countIn(w *Work) }

// countIn has a curve count its work in w, if it does any.
func countIn(curve any, w *Work) {
	if c, ok := curve.(worker); ok {
		c.countIn(w)
	}
}
