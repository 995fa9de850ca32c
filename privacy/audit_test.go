//go:build long

package privacy

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// An audit is a privacytest.Audit of a guarantee.
type audit struct {
	name string
	g    Guarantee
	// event reports whether the output on the first or the second data set lies in
	// the event.
	event func(rng *rand.Rand, second bool) bool
}

const auditRuns = 2_000_000

func laplaceNoise(rng *rand.Rand, scale float64) float64 {
	noise := scale * rng.ExpFloat64()
	if rng.IntN(2) == 0 {
		return -noise
	}
	return noise
}

// permuteAndFlip returns the candidate chosen for scores of sensitivity 1.
func permuteAndFlip(rng *rand.Rand, scores []float64, epsilon float64) int {
	best := math.Inf(-1)
	for _, s := range scores {
		best = math.Max(best, s)
	}
	for _, i := range rng.Perm(len(scores)) {
		if rng.Float64() < math.Exp(0.5*epsilon*(scores[i]-best)) {
			return i
		}
	}
	panic("the best candidate is always accepted")
}

// sparseVector returns the answers of one run with threshold ½, until bound ones
// are positive.
func sparseVector(rng *rand.Rand, m SparseVector, queries []float64) []bool {
	b1, b2 := m.Split()
	threshold := 0.5 + laplaceNoise(rng, b1)
	var answers []bool
	var positive int64
	for _, q := range queries {
		above := q+laplaceNoise(rng, b2) >= threshold
		answers = append(answers, above)
		if above {
			if positive++; positive == m.Cutoff {
				break
			}
		}
	}
	return answers
}

// perturbedMinimum returns the minimiser θ of Σ ℓ(θ·z_i) + nτ/2·θ² + b·θ for one
// feature, with the derivative ℓ' that is −1 up to 0 and rises from there to 0 at the
// rate of the curvature.
func perturbedMinimum(records []float64, curvature, tau, b float64) float64 {
	derivative := func(theta float64) float64 {
		sum := float64(len(records))*tau*theta + b
		for _, z := range records {
			sum += z * math.Min(0, curvature*math.Max(0, theta*z)-1)
		}
		return sum
	}
	hi := (1 + math.Abs(b)/float64(len(records))) / tau // |ℓ'| <= 1
	lo := -hi
	for range 40 {
		if mid := 0.5 * (lo + hi); derivative(mid) < 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// objectiveAudit: where θ is just above 0 the record +1 has the full curvature, the
// record −1 none, and the noise has to make up for gradients that differ by 2.
func objectiveAudit(name string, m ObjectivePerturbation, g Guarantee) audit {
	beta, tau := m.Calibrate()
	width := 0.2 / (beta * (m.Curvature + 2*tau))
	return audit{
		name: name, g: g,
		event: func(rng *rand.Rand, second bool) bool {
			records := []float64{1, -1}
			if second {
				records[0] = -1
			}
			theta := perturbedMinimum(records, m.Curvature, tau, laplaceNoise(rng, 1/beta))
			return theta > 0 && theta < width
		},
	}
}

func TestAudit(t *testing.T) {
	claim := func(a Accountant, m Mechanism, steps int64, delta float64) Guarantee {
		g, err := Epsilon(a, m, steps, delta)
		require.NoError(t, err)
		return g
	}
	const gaussianDelta = 1e-2
	gaussian := claim(GDP{}, Gaussian{1, 1, AddRemove}, 1, gaussianDelta)
	several := claim(Exact{}, Laplace{1, 4, AddRemove}, 10, gaussianDelta)
	svt := SparseVector{1, 4, ReplaceOne}
	const queries = 40
	audits := []audit{
		{
			// The best event for (ε, δ) is a loss above ε.
			name: "gaussian", g: gaussian,
			event: func(rng *rand.Rand, second bool) bool {
				x := rng.NormFloat64()
				if !second {
					x++
				}
				return x-0.5 > gaussian.Epsilon
			},
		},
		{
			name: "laplace", g: claim(Pure{}, Laplace{1, 1, AddRemove}, 1, 0),
			event: func(rng *rand.Rand, second bool) bool {
				x := laplaceNoise(rng, 1)
				if !second {
					x++
				}
				return x > 1
			},
		},
		{
			name: "ten laplace", g: several,
			event: func(rng *rand.Rand, second bool) bool {
				var loss float64
				for range 10 {
					x := laplaceNoise(rng, 4)
					if !second {
						x++
					}
					loss += (math.Abs(x) - math.Abs(x-1)) / 4
				}
				return loss > several.Epsilon
			},
		},
		{
			// One candidate gains where all others lose: the choice of another one.
			name: "permute-and-flip", g: claim(Pure{}, Selection{PermuteAndFlip, 1, ReplaceOne}, 1, 0),
			event: func(rng *rand.Rand, second bool) bool {
				scores := make([]float64, 20)
				scores[0] = 9 // becomes one better, and the other ones worse
				if second {
					scores[0] = 10
				} else {
					for i := 1; i < len(scores); i++ {
						scores[i] = 1
					}
				}
				return permuteAndFlip(rng, scores, 1) != 0
			},
		},
		{
			// Negative answers of queries that fall and a positive one that rises.
			name: "sparse vector", g: claim(Pure{}, svt, 1, 0),
			event: func(rng *rand.Rand, second bool) bool {
				values := make([]float64, queries)
				for i := range values {
					if second == (i < queries-1) {
						values[i] = 1
					}
				}
				answers := sparseVector(rng, svt, values)
				return len(answers) == queries && answers[queries-1]
			},
		},
	}
	for _, rule := range []struct {
		name string
		m    ObjectivePerturbation
	}{
		{"objective, rank one", ObjectivePerturbation{2, 0.01, 1, 2, RankOne, 0}},
		{"objective, rank one, curvature", ObjectivePerturbation{2, 0.01, 1, 2, RankOne, 0.6}},
		{"objective, original", ObjectivePerturbation{2, 1, 1, 2, Chaudhuri, 0}},
		{"objective, original, little curvature", ObjectivePerturbation{2, 10, 1, 2, Chaudhuri, 0}},
		{"objective, continuous", ObjectivePerturbation{2, 1, 1, 2, ContinuousChaudhuri, 0}},
	} {
		audits = append(audits, objectiveAudit(rule.name, rule.m, claim(Pure{}, rule.m, 1, 0)))
	}
	for i, a := range audits {
		t.Run(a.name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(61, uint64(i)))
			privacytest.Audit{
				Epsilon: a.g.Epsilon, Delta: a.g.Delta, Runs: auditRuns,
				Event: func(second bool) bool { return a.event(rng, second) },
			}.Check(t)
		})
	}
}
