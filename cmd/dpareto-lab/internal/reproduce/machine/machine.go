// Package machine has the candidates that methods of selection are compared on: linear
// support vector machines with the Huber loss on Adult, over a grid of their ridge penalty
// and of the width of the loss.
package machine

import (
	"context"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// Bounds of the hyperparameters, both on a logarithmic scale.
const (
	LeastPenalty = 1e-5
	MostPenalty  = 1.0
	LeastWidth   = 0.05
	MostWidth    = 2.0
)

// normBound is √14: none of the 14 attributes of a record of Adult is more than one feature,
// of value 1.
const normBound = 3.7416573867739413

// Candidate is a configuration.
type Candidate struct {
	Penalty, Width float64
	// X and Y are its place in the unit square.
	X, Y float64
}

// Grid returns side >= 2 values of each of the two hyperparameters, with each other.
func Grid(side int) []Candidate {
	all := make([]Candidate, 0, side*side)
	at := func(least, most, share float64) float64 { return least * math.Pow(most/least, share) }
	for i := range side {
		for j := range side {
			x, y := float64(i)/float64(side-1), float64(j)/float64(side-1)
			all = append(all, Candidate{at(LeastPenalty, MostPenalty, x), at(LeastWidth, MostWidth, y), x, y})
		}
	}
	return all
}

// Examples returns records of Adult as the machines take them.
func Examples(records *dataset.Dataset) (*linear.Examples, error) {
	return linear.NewExamples(records, normBound)
}

// Train returns the weights of a machine, to the given tolerance of the gradient. It fails if
// ctx is done or the training does not converge.
func (c Candidate) Train(ctx context.Context, examples *linear.Examples, tolerance float64) ([]float64, error) {
	objective := linear.Objective{Risk: linear.Risk{Examples: examples, Loss: linear.Huber{Width: c.Width}}, Ridge: c.Penalty}
	minimum, err := objective.Minimize(ctx, nil, tolerance)
	if err != nil {
		return nil, fmt.Errorf("penalty %g, width %g: %w", c.Penalty, c.Width, err)
	}
	return minimum.Theta, nil
}
