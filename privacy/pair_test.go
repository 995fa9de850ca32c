package privacy_test

import (
	"math"
	"testing"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// coin is a mechanism that only this file knows: randomised response with two answers, by its losses.
type coin struct{ epsilon float64 }

func (coin) Name() string                      { return "coin" }
func (coin) Adjacency() privacy.Adjacency      { return privacy.ReplaceOne }
func (coin) Validate() error                   { return nil }
func (coin) Assumptions() []privacy.Assumption { return nil }

func (m coin) DominatingPairs() pld.Pairs {
	up := 1 / (1 + math.Exp(-m.epsilon))
	return pld.Attained(pld.NewAtoms([]float64{m.epsilon, -m.epsilon}, []float64{up, 1 - up}, 0))
}

// TestPairMechanism: dominating pairs are all that a mechanism needs to be accounted, alone and with others.
func TestPairMechanism(t *testing.T) {
	const epsilon, delta = 0.3, 1e-6
	known, own := privacy.RandomizedResponse{Epsilon: epsilon, Categories: 2}, coin{epsilon}
	noise := privacy.Part{Mechanism: privacy.Gaussian{Sensitivity: 1, StandardDeviation: 5, Neighbours: privacy.ReplaceOne}, Count: 2}
	for _, a := range []privacy.Accountant{privacy.Exact{}, privacy.PLD{}, privacy.Tightest{}} {
		for _, of := range []func(m privacy.Mechanism) privacy.Mechanism{
			func(m privacy.Mechanism) privacy.Mechanism { return m },
			func(m privacy.Mechanism) privacy.Mechanism {
				return privacy.Composition{{Mechanism: m, Count: 3}, noise}
			},
		} {
			for _, steps := range []int64{1, 20} {
				got, want := epsilonOf(t, a, of(own), steps, delta), epsilonOf(t, a, of(known), steps, delta)
				if math.Abs(got.Epsilon-want.Epsilon) > 1e-4*want.Epsilon || !(got.EpsilonLower > 0.9*want.EpsilonLower) {
					t.Errorf("%s, %d steps: epsilon %g to %g, want %g to %g", a.Name(), steps, got.EpsilonLower, got.Epsilon, want.EpsilonLower, want.Epsilon)
				}
			}
		}
	}
}
