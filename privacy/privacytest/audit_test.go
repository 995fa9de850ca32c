package privacytest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/stat/distuv"
)

// TestLowerBound: the limits p and q put half of the error on the counts seen or more
// extreme ones, which is their definition.
func TestLowerBound(t *testing.T) {
	for _, tc := range []struct{ first, second, runs int }{{700, 200, 1000}, {1000, 3, 1000}, {30, 0, 40}, {9000, 4000, 20000}, {400, 0, 60000}, {2300, 5, 60000}} {
		n := float64(tc.runs)
		root := func(f func(p float64) float64) float64 { // of a rising function
			lo, hi := 0.0, 1.0
			for range 200 {
				if mid := 0.5 * (lo + hi); f(mid) < 0 {
					lo = mid
				} else {
					hi = mid
				}
			}
			return lo
		}
		atLeast := func(k int, p float64) float64 {
			if k == 0 {
				return 1
			}
			return 1 - distuv.Binomial{N: n, P: p}.CDF(float64(k-1))
		}
		p := root(func(p float64) float64 { return atLeast(tc.first, p) - ErrorProbability/2 })
		q := root(func(q float64) float64 {
			return ErrorProbability/2 - distuv.Binomial{N: n, P: q}.CDF(float64(tc.second))
		})
		for _, delta := range []float64{0, 0.01} {
			want := math.Log((p - delta) / q)
			if got := LowerBound(tc.first, tc.second, tc.runs, delta); math.Abs(got-want) > 1e-6 {
				t.Errorf("%+v, delta %g: %.9g, want %.9g", tc, delta, got, want)
			}
		}
	}
	for _, tc := range []struct {
		first, second int
		delta         float64
	}{{0, 0, 0}, {0, 100, 0}, {10, 100, 0}, {50, 0, 0.9}, {100, 100, 0}} {
		if got := LowerBound(tc.first, tc.second, 100, tc.delta); got != 0 {
			t.Errorf("%+v: %g, want 0", tc, got)
		}
	}
}

// recorder counts the errors of an audit instead of failing.
type recorder struct {
	testing.TB
	errors []string
}

func (*recorder) Helper()             {}
func (*recorder) Logf(string, ...any) {}
func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

// TestAuditFindsOut: randomised response of ε = 1 passes, claims that are too small,
// attacks without power and broken mechanisms that pass do not.
func TestAuditFindsOut(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	response := func(epsilon float64) func(second bool) bool {
		return func(second bool) bool {
			truth := rng.Float64() < 1/(1+math.Exp(-epsilon))
			return truth != second
		}
	}
	blind := func(bool) bool { return rng.IntN(2) == 0 }
	for _, tc := range []struct {
		name   string
		audit  Audit
		errors int
	}{
		{"right", Audit{Epsilon: 1, Event: response(1)}, 0},
		{"right, the broken one found", Audit{Epsilon: 1, Event: response(1), Broken: response(2)}, 0},
		{"right with delta", Audit{Epsilon: 1, Delta: 0.1, Event: response(1)}, 0},
		{"claim too small", Audit{Epsilon: 0.9, Event: response(1)}, 1},
		{"no power", Audit{Epsilon: 1, Event: blind}, 1},
		{"more power asked for", Audit{Epsilon: 1, Power: 0.999999, Event: response(1)}, 1},
		{"broken passes", Audit{Epsilon: 1, Event: response(1), Broken: response(1)}, 1},
	} {
		tc.audit.Runs = 20_000
		r := &recorder{TB: t}
		tc.audit.Check(r)
		if len(r.errors) != tc.errors {
			t.Errorf("%s: errors %q", tc.name, r.errors)
		}
	}
}
