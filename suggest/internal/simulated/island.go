package simulated

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Island is a problem whose objectives are best where the constraint does not hold:
// far from the little island at (0.85, 0.8).
func Island() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Max: 1}, {Name: "y", Kind: space.Double, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "f1", Goal: suggest.Minimize, Reference: 3}, {Name: "f2", Goal: suggest.Minimize, Reference: 3},
		},
		Constraints: []suggest.Constraint{{Name: "distance", Lower: math.Inf(-1), Upper: 0.05}},
	}
}

// OnIsland evaluates a point of [Island] exactly.
func OnIsland(q space.Point) suggest.Evaluation {
	distance := math.Hypot(q[0]-0.85, q[1]-0.8)
	return suggest.Evaluation{Point: q, Values: []float64{q[0] + q[1]*q[1], (1 - q[0]) + q[1], distance}, StdErrors: make([]float64, 3)}
}
