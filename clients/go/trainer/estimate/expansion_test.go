package estimate

import "context"

// Expansion is Taylor's, of the training loss of one unit noise around one ε. Its methods
// show what a single training gives, for comparison: unlike a [Path] of
// [Problem.Hermite], they extrapolate without bound.
type Expansion struct {
	Epsilon       float64
	Loss          float64 // L
	First, Second float64 // L′ and L″ in ε

	problem Problem
}

// Expand trains a model at ε and returns the expansion of its training loss.
func (p Problem) Expand(ctx context.Context, u []float64, epsilon float64) (Expansion, error) {
	s, err := p.Solve(ctx, u, epsilon, nil)
	if err != nil {
		return Expansion{}, err
	}
	d, err := p.Derivatives(u, s)
	if err != nil {
		return Expansion{}, err
	}
	return Expansion{epsilon, p.Risk.Value(s.Theta), d.Loss, d.Loss2, p}, nil
}

// Line returns the loss at ε by the expansion of first order in ε, the paper's equation
// 9. The error is a *DiscontinuityError, or says that ε is not positive and finite.
func (e Expansion) Line(epsilon float64) (float64, error) {
	return e.Loss + e.First*(epsilon-e.Epsilon), e.problem.checkExpansion(e.Epsilon, epsilon)
}

// Reciprocal returns the loss at ε by the expansion of an order, 1 or 2, in s = 1/ε, in
// which the model is almost linear while the noise is small: dL/ds = −ε²L′ and
// d²L/ds² = ε⁴L″ + 2ε³L′. It returns the errors of Line; it panics for other orders.
func (e Expansion) Reciprocal(order int, epsilon float64) (float64, error) {
	step := 1/epsilon - 1/e.Epsilon
	square := e.Epsilon * e.Epsilon
	loss := e.Loss - square*e.First*step
	switch order {
	case 1:
	case 2:
		loss += (square*square*e.Second + 2*square*e.Epsilon*e.First) * step * step / 2
	default:
		panic("estimate: order of the expansion is not 1 or 2")
	}
	return loss, e.problem.checkExpansion(e.Epsilon, epsilon)
}

// LineEpsilon returns where the line of [Expansion.Line] has a loss, equation 17 of the
// paper with its sign corrected: ε + (loss − L)/L′. It can be negative or far from any
// ε that has the loss; [Estimator.EpsilonFor] finds a true root.
func (e Expansion) LineEpsilon(loss float64) float64 {
	return e.Epsilon + (loss-e.Loss)/e.First
}
