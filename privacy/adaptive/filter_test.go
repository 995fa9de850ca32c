package adaptive

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// What remains is admitted, and 1e-9 of it more is not; what is spent is the smaller of the
// two bounds of Whitehouse, Ramdas, Rogers and Wu (2023), with the δ that it takes.
func TestApproximateFilterRemaining(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		epsilon, delta := math.Exp(6*rng.Float64()-3), math.Exp(-20*rng.Float64()-1)
		f, err := NewApproximateFilter(epsilon, delta, delta/2, privacy.ReplaceOne)
		require.NoError(t, err)
		sum, squares, deltas := 0.0, 0.0, 0.0
		for range rng.IntN(200) {
			g := privacy.Guarantee{Epsilon: epsilon * rng.Float64() / 50, Delta: delta / 500 * rng.Float64(), Adjacency: privacy.ReplaceOne}
			ok, err := f.Spend(g, 1)
			require.NoError(t, err)
			if ok {
				sum, squares, deltas = sum+g.Epsilon, squares+g.Epsilon*g.Epsilon, deltas+g.Delta
			}
		}
		want := math.Min(sum, math.Sqrt(2*math.Log(2/delta)*squares)+squares/2)
		if want < sum {
			deltas += delta / 2
		}
		if s := f.Spent(); math.Abs(s.Epsilon-want) > 1e-9*epsilon || math.Abs(s.Delta-deltas) > 1e-9*delta {
			t.Fatalf("spent (%g, %g), want (%g, %g)", s.Epsilon, s.Delta, want, deltas)
		}
		left, leftDelta := f.Remaining()
		if ok, err := f.Spend(privacy.Guarantee{Epsilon: left*(1+1e-9) + 1e-9*epsilon, Adjacency: privacy.ReplaceOne}, 1); ok || err != nil {
			t.Fatalf("more than %g was admitted (%v)", left, err)
		}
		if ok, err := f.Spend(privacy.Guarantee{Delta: leftDelta + 1e-9*delta, Adjacency: privacy.ReplaceOne}, 1); ok || err != nil {
			t.Fatalf("δ above %g was admitted (%v)", leftDelta, err)
		}
		if ok, err := f.Spend(privacy.Guarantee{Epsilon: left, Delta: leftDelta * (1 - 1e-9), Adjacency: privacy.ReplaceOne}, 1); !ok || err != nil {
			t.Fatalf("what remains, (%g, %g), was refused (%v)", left, leftDelta, err)
		}
	}
}
