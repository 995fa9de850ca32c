package profile

import (
	"math"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// DiscretePair is a pair of distributions on finitely many losses, by the losses from the
// largest to the smallest. Index 0 stands for the loss +Inf, which only the upper one has.
type DiscretePair struct {
	Losses []float64
	Upper  []float64 // masses of the upper distribution
	U      []Split   // of the upper one: losses at least as large, not below what that is
	Beta   []Split   // of the lower one: β(u), not above it
}

// NewDiscretePair returns the pair whose profile is linear in e^ε between the points, forward
// for one order of the data sets and backward for the other: it dominates all pairs whose
// profiles lie below. Its profile for −ε is 1 − e^{−ε}·(1 − δ(ε)) with the backward δ.
func NewDiscretePair(forward, backward []Point) DiscretePair {
	forward, backward = LowerHull(forward), LowerHull(backward)
	f, b := joinAtZero(forward, backward)
	infinite := f[len(f)-1].Delta
	d := DiscretePair{[]float64{math.Inf(1)}, []float64{infinite}, []Split{{infinite, LeastRest(infinite)}}, []Split{{0, 1}}}
	// Losses above 0. The lower distribution has the mass fall beyond a point, the upper one
	// δ + e^ε·fall.
	beyond := 0.0 // e^ε·fall of the next point
	for i := len(f) - 1; i > 0; i-- {
		here, fall := fallTo(f[i-1], f[i]), FallBetween(f[i-1], f[i])
		u := math.Min(1, f[i].Delta+here)
		d.add(f[i].Epsilon, here-beyond, Split{u, LeastRest(u)}, Split{fall, MostRest(fall)})
		beyond = fallFrom(f[i-1], f[i])
	}
	// Losses below 0, where the upper one has the mass next below, and the lower one δ + e^ε·next.
	above := math.Max(0, 1-d.U[len(d.U)-1].Z)
	for i := range b {
		next, below := 0.0, b[i].Delta
		if i+1 < len(b) {
			next, below = FallBetween(b[i], b[i+1]), math.Min(1, below+fallFrom(b[i], b[i+1]))
		}
		d.add(-b[i].Epsilon, math.Max(0, above-next), Split{MostRest(next), next}, Split{LeastRest(below), below})
		above = next
	}
	return d
}

// joinAtZero gives both hulls the same first point at ε = 0, where they share δ: the smaller of
// theirs, or the least chord over 1 from a point of one to a point of the other. Bounds on profiles,
// unlike profiles, may not be convex there.
func joinAtZero(forward, backward []Point) (f, b []Point) {
	delta := math.Min(forward[0].deltaAtZero(), backward[0].deltaAtZero())
	for _, p := range backward {
		// δ at e^−ε is 1 − e^{−ε}(1 − δ_backward), at e^ε δ_forward.
		left := math.Exp(-p.Epsilon)
		atLeft := 1 - left*(1-p.Delta)
		for _, q := range forward {
			if right := math.Exp(q.Epsilon); right > left {
				delta = math.Min(delta, atLeft+(1-left)/(right-left)*(q.Delta-atLeft))
			}
		}
	}
	start := []Point{{0, 0, delta}}
	return LowerHull(append(start, forward...)), LowerHull(append(start, backward...))
}

// Pair returns the dominating pair.
func (d DiscretePair) Pair() pld.Pair { return pld.NewAtoms(d.Losses[1:], d.Upper[1:], d.Upper[0]) }

func (d *DiscretePair) add(loss, upper float64, u, beta Split) {
	d.Losses = append(d.Losses, loss)
	d.Upper = append(d.Upper, upper)
	d.U = append(d.U, u)
	d.Beta = append(d.Beta, beta)
}
