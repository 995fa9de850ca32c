package suggest_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/space"
)

// Bisection finds what a scan finds.
func TestLastUseful(t *testing.T) {
	p := simulated.RateTraining()
	for _, least := range []float64{1, 5} {
		p.Space.Parameters[1].Min = least
		rng := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			// Rates up to 40 leave the reference in the first epoch.
			q := space.Point{math.Exp(6*rng.Float64() - 2), least + float64(rng.IntN(64-int(least)+1))}
			want := int64(0)
			for step := least; step <= q[1]; step++ {
				if q[0]*step < 32 {
					want = int64(step)
				}
			}
			if got := p.LastUseful(q); got != want {
				t.Fatalf("at %v, from %g: %d, want %d", q, least, got, want)
			}
		}
	}
	p.Constraints = []suggest.Constraint{{Name: "c", Lower: math.Inf(-1), Upper: 7, Known: func(q space.Point) float64 { return q[1] }}}
	if got := p.LastUseful(space.Point{0.1, 60}); got != 7 {
		t.Errorf("under a constraint: %d", got)
	}
	p.Constraints[0].Lower, p.Constraints[0].Upper = 50, math.Inf(1)
	if got := p.LastUseful(space.Point{0.1, 60}); got != 60 {
		t.Errorf("useful at the end only: %d", got)
	}
}

func TestUsefulLengthIsWhereTheReferenceIsReached(t *testing.T) {
	p := simulated.NoiseTraining(64)
	for _, tc := range []struct{ noise, want float64 }{
		{0.01, 64}, {1, 9}, {0.5, 19}, {0.3, 33}, {10.5, 1},
	} {
		if got := p.UsefulLength(space.Point{tc.noise, 1}); got != tc.want {
			t.Errorf("UsefulLength(noise %g) = %g, want %g", tc.noise, got, tc.want)
		}
	}
}
