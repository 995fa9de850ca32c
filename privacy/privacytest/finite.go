package privacytest

import (
	"math"
	"math/rand/v2"
	"slices"
)

// FiniteMechanism has finitely many outputs; p and q are their probabilities on two data sets.
type FiniteMechanism struct{ P, Q []float64 }

// Reversed swaps the data sets.
func (m FiniteMechanism) Reversed() FiniteMechanism { return FiniteMechanism{m.Q, m.P} }

// MostAdaptive returns δ(ε) of the worst of all searches that choose the next mechanism from the
// outputs so far among those that admits allows, as often as depth. path holds the mechanisms used.
func MostAdaptive(mechanisms []FiniteMechanism, epsilon, loss float64, depth int, path []int, admits func([]int) bool) float64 {
	worst := math.Max(0, -math.Expm1(epsilon-loss))
	if depth == 0 {
		return worst
	}
	for i, m := range mechanisms {
		next := append(slices.Clone(path), i)
		if !admits(next) {
			continue
		}
		var delta float64
		for o, p := range m.P {
			if p > 0 {
				delta += p * MostAdaptive(mechanisms, epsilon, loss+math.Log(p/m.Q[o]), depth-1, next, admits)
			}
		}
		worst = math.Max(worst, delta)
	}
	return worst
}

// ComposedDelta returns δ(ε) of mechanisms fixed in advance.
func ComposedDelta(mechanisms []FiniteMechanism, path []int, epsilon, loss float64) float64 {
	if len(path) == 0 {
		return math.Max(0, -math.Expm1(epsilon-loss))
	}
	var delta float64
	m := mechanisms[path[0]]
	for o, p := range m.P {
		if p > 0 {
			delta += p * ComposedDelta(mechanisms, path[1:], epsilon, loss+math.Log(p/m.Q[o]))
		}
	}
	return delta
}

// RandomMechanisms returns mechanisms whose probabilities differ a little between the data sets.
func RandomMechanisms(rng *rand.Rand, n int) []FiniteMechanism {
	var mechanisms []FiniteMechanism
	for range n {
		outputs := 2 + rng.IntN(3)
		p, q := RandomOutputs(rng, outputs), make([]float64, outputs)
		scale, sum := 0.1+rng.Float64(), 0.0
		for i := range q {
			q[i] = p[i] * math.Exp(scale*rng.NormFloat64())
			sum += q[i]
		}
		for i := range q {
			q[i] /= sum
		}
		mechanisms = append(mechanisms, FiniteMechanism{p, q})
	}
	return mechanisms
}

// HockeyStick returns Σ [p − e^ε·q]₊.
func HockeyStick(p, q []float64, epsilon float64) float64 {
	var sum float64
	for i := range p {
		sum += math.Max(0, p[i]-math.Exp(epsilon)*q[i])
	}
	return sum
}

// RandomOutputs returns a random distribution, some of whose masses are 0 or tiny.
func RandomOutputs(rng *rand.Rand, n int) []float64 {
	p := make([]float64, n)
	var sum float64
	for i := range p {
		p[i] = math.Exp(rng.NormFloat64() * 2)
		if rng.IntN(12) == 0 {
			p[i] = 0
		}
		sum += p[i]
	}
	if sum == 0 {
		p[0], sum = 1, 1
	}
	for i := range p {
		p[i] /= sum
	}
	return p
}
