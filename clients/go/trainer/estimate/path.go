package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/floats"
)

// Path is the model as a function of ε for one unit noise: exact, or an estimate.
// Paths are not safe for concurrent use.
type Path interface {
	// Model returns the weights at ε, one per feature.
	Model(ctx context.Context, epsilon float64) ([]float64, error)
	// Utility returns the utility of the model at ε. Losses may be more accurate than the
	// estimated model, and are at least 0; error rates are measured on Model.
	Utility(ctx context.Context, epsilon float64) (Utility, error)
}

// possible returns the nearest mean loss that a model can have to an estimate: a tangent or a cubic
// may fall below 0, no [linear.Loss] does. NaN stays.
func possible(loss float64) float64 { return max(loss, 0) }

// RangeError says that an ε is outside of the range of a path: it does not extrapolate.
type RangeError struct {
	Epsilon, Lower, Upper float64
}

// Error implements error.
func (e *RangeError) Error() string {
	return fmt.Sprintf("ε = %v is outside of the anchors, %v to %v: nothing is estimated there", e.Epsilon, e.Lower, e.Upper)
}

// newton solves for every ε.
type newton struct {
	problem Problem
	u       []float64
	last    []*Solution // the last two, the later one at the end
	steps   int
}

// Newton returns the exact path of a unit noise: every ε is solved for, starting where
// the last two models point to. Calls in decreasing or increasing order of ε take the
// fewest steps.
func (p Problem) Newton(u []float64) Path { return &newton{problem: p, u: u} }

// Model implements Path.
func (n *newton) Model(ctx context.Context, epsilon float64) ([]float64, error) {
	s, err := n.problem.Solve(ctx, n.u, epsilon, n.start(epsilon))
	if err != nil {
		return nil, err
	}
	n.steps += s.Iterations
	n.last = append(n.last, s)
	n.last = n.last[max(0, len(n.last)-2):]
	return slices.Clone(s.Theta), nil
}

// start returns a guess of the model at ε, from the line through the last two models in
// 1/ε, which the model is almost linear in while the noise is small. It is not followed
// further than the two are apart.
func (n *newton) start(epsilon float64) []float64 {
	if len(n.last) == 0 {
		return nil
	}
	b := n.last[len(n.last)-1]
	if len(n.last) == 1 {
		return b.Theta
	}
	a := n.last[0]
	t := (1/epsilon - 1/b.Epsilon) / (1/b.Epsilon - 1/a.Epsilon)
	if !(math.Abs(t) <= 2) {
		return b.Theta
	}
	guess := slices.Clone(b.Theta)
	floats.AddScaled(guess, t, b.Theta)
	floats.AddScaled(guess, -t, a.Theta)
	return guess
}

// Utility implements Path.
func (n *newton) Utility(ctx context.Context, epsilon float64) (Utility, error) {
	theta, err := n.Model(ctx, epsilon)
	if err != nil {
		return Utility{}, err
	}
	return n.problem.Evaluate(theta), nil
}

// line is Taylor's expansion of first order in ε.
type line struct {
	problem     Problem
	solution    *Solution
	utility     Utility
	derivatives Derivatives
}

// Line trains one model and returns the lines in ε through its losses (equation 9 of
// the paper) and its weights (equation 18, with the factor ε′ − ε that is missing
// there). They extrapolate without bound, a loss down to 0, but are useful only within a few
// percent of ε.
// A line ends at the discontinuity of privacy.Chaudhuri, with a *DiscontinuityError.
func (p Problem) Line(ctx context.Context, u []float64, epsilon float64) (Path, error) {
	s, err := p.Solve(ctx, u, epsilon, nil)
	if err != nil {
		return nil, err
	}
	d, err := p.Derivatives(u, s)
	if err != nil {
		return nil, err
	}
	return &line{p, s, p.Evaluate(s.Theta), d}, nil
}

// Model implements Path.
func (l *line) Model(_ context.Context, epsilon float64) ([]float64, error) {
	if err := l.problem.checkExpansion(l.solution.Epsilon, epsilon); err != nil {
		return nil, err
	}
	theta := slices.Clone(l.solution.Theta)
	floats.AddScaled(theta, epsilon-l.solution.Epsilon, l.derivatives.Theta)
	return theta, nil
}

// Utility implements Path.
func (l *line) Utility(ctx context.Context, epsilon float64) (Utility, error) {
	theta, err := l.Model(ctx, epsilon)
	if err != nil {
		return Utility{}, err
	}
	u := l.problem.Evaluate(theta)
	u.Train.Loss = possible(l.utility.Train.Loss + l.derivatives.Loss*(epsilon-l.solution.Epsilon))
	u.HeldOut.Loss = possible(l.utility.HeldOut.Loss + l.derivatives.HeldOut*(epsilon-l.solution.Epsilon))
	return u, nil
}

// checkExpansion returns an error unless an expansion at one ε is valid at another.
func (p Problem) checkExpansion(from, to float64) error {
	if err := p.Mechanism(to).Validate(); err != nil {
		return err
	}
	return checkInterval(p.Mechanism(from), from, to)
}

// hermite interpolates between anchors in log ε.
type hermite struct {
	problem        Problem
	train, heldOut *Interpolant
	anchors        []anchor // in increasing order of ε, as the nodes
}

// anchor is a model with its slopes in log ε on either side.
type anchor struct {
	epsilon            float64
	theta, left, right []float64
}

// Anchors returns k values of ε from lower to upper, at equal distances of log ε. It
// panics unless 0 < lower < upper, both finite, and k >= 2.
func Anchors(lower, upper float64, k int) []float64 {
	if !(0 < lower && lower < upper && !math.IsInf(upper, 1) && k >= 2) {
		panic("estimate: anchors want 0 < lower < upper and at least two")
	}
	anchors := floats.LogSpan(make([]float64, k), lower, upper)
	anchors[0], anchors[k-1] = lower, upper // without rounding
	return anchors
}

// Hermite trains models at the anchors, in decreasing order, and returns the cubic
// interpolation of losses and weights in log ε, with the exact slopes of Theorem 1, for
// losses limited as by [Interpolant.Monotone]. If the branches of the calibration meet
// between anchors, an anchor is added there. Paths end at the anchors (*RangeError) and
// must not cross the discontinuity of privacy.Chaudhuri (*DiscontinuityError).
func (p Problem) Hermite(ctx context.Context, u []float64, anchors []float64) (Path, error) {
	anchors = slices.Clone(anchors)
	slices.Sort(anchors)
	anchors = slices.Compact(anchors)
	if len(anchors) == 0 {
		return nil, errors.New("no anchors")
	}
	lower, upper := anchors[0], anchors[len(anchors)-1]
	for _, epsilon := range []float64{lower, upper} {
		if err := p.checkExpansion(lower, epsilon); err != nil {
			return nil, err
		}
	}
	// A path of privacy.Chaudhuri from above its boundary on has no other branch.
	boundary, _ := Boundary(p.Mechanism(lower))
	if i, found := slices.BinarySearch(anchors, boundary); !found && lower < boundary && boundary < upper {
		anchors = slices.Insert(anchors, i, boundary)
	}
	h := &hermite{problem: p, anchors: make([]anchor, len(anchors))}
	train, heldOut := make([]Node, len(anchors)), make([]Node, len(anchors))
	var start []float64
	for i := len(anchors) - 1; i >= 0; i-- {
		epsilon := anchors[i]
		s, err := p.Solve(ctx, u, epsilon, start)
		if err != nil {
			return nil, err
		}
		start = s.Theta
		left, err := p.derivatives(u, s, epsilon > boundary)
		if err != nil {
			return nil, err
		}
		right := left
		if epsilon == boundary && epsilon < upper {
			if right, err = p.derivatives(u, s, true); err != nil {
				return nil, err
			}
		}
		utility := p.Evaluate(s.Theta)
		x := math.Log(epsilon)
		train[i] = Node{x, utility.Train.Loss, epsilon * left.Loss, epsilon * right.Loss}
		heldOut[i] = Node{x, utility.HeldOut.Loss, epsilon * left.HeldOut, epsilon * right.HeldOut}
		floats.Scale(epsilon, left.Theta)
		if epsilon == boundary && epsilon < upper {
			floats.Scale(epsilon, right.Theta)
		}
		h.anchors[i] = anchor{epsilon, s.Theta, left.Theta, right.Theta}
	}
	h.train, h.heldOut = NewInterpolant(train).Monotone(), NewInterpolant(heldOut).Monotone()
	return h, nil
}

// Model implements Path.
func (h *hermite) Model(_ context.Context, epsilon float64) ([]float64, error) {
	i, w := h.train.weights(math.Log(epsilon))
	if i < 0 {
		return nil, &RangeError{epsilon, h.anchors[0].epsilon, h.anchors[len(h.anchors)-1].epsilon}
	}
	theta := make([]float64, len(h.anchors[i].theta))
	floats.AddScaled(theta, w.value[0], h.anchors[i].theta)
	floats.AddScaled(theta, w.slope[0], h.anchors[i].right)
	if w.value[1] != 0 {
		floats.AddScaled(theta, w.value[1], h.anchors[i+1].theta)
		floats.AddScaled(theta, w.slope[1], h.anchors[i+1].left)
	}
	return theta, nil
}

// Utility implements Path.
func (h *hermite) Utility(ctx context.Context, epsilon float64) (Utility, error) {
	theta, err := h.Model(ctx, epsilon)
	if err != nil {
		return Utility{}, err
	}
	u := h.problem.Evaluate(theta)
	u.Train.Loss = possible(h.train.At(math.Log(epsilon)))
	u.HeldOut.Loss = possible(h.heldOut.At(math.Log(epsilon)))
	return u, nil
}
