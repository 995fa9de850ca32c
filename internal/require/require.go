// Package require is for tests. It imports nothing.
package require

// TB is what tests, benchmarks, fuzz tests and properties of rapid have.
type TB interface {
	Helper()
	Fatal(args ...any)
}

// NoError ends a test with an error, unless there is none.
func NoError(t TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// ErrOf returns the error of a call.
func ErrOf[T any](_ T, err error) error { return err }
