package runs

import (
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// Profiles are the profiles of a number of runs of a mechanism.
type Profiles struct {
	Curve any // what counts its work
	Runs  int64
	Exact *composition.Losses // of the base if Exact is precise, or nil
	// Directions give ε for log δ, of the two orders of the data sets or of both at once.
	Directions []func(logDelta float64) (epsilon float64, err error)
}

// New takes the profiles from Exact, each order of the data sets by itself, where it
// is precise, and otherwise from Tightest.
func New(base privacy.Mechanism, runs int64) (Profiles, error) {
	losses, err := privacy.Losses(base)
	if err == nil && !losses.ByPure {
		p := Profiles{Curve: losses, Runs: runs, Exact: losses}
		for _, direction := range losses.UpperDirections() {
			p.Directions = append(p.Directions, func(logDelta float64) (float64, error) {
				epsilon, _ := direction.Epsilon(float64(runs), logDelta, 1)
				if math.IsNaN(epsilon) { // beyond the range of floats
					epsilon = math.Inf(1)
				}
				return epsilon, nil
			})
		}
		return p, nil
	}
	curve, err := privacy.Tightest{}.Curve(base)
	if err != nil {
		return Profiles{}, err
	}
	return Profiles{Curve: curve, Runs: runs, Directions: []func(float64) (float64, error){func(logDelta float64) (float64, error) {
		g, err := curve.Epsilon(runs, math.Exp(logDelta))
		return g.Epsilon, err
	}}}, nil
}

// Down returns points of the profiles of both orders of the data sets, down to a δ.
func (p Profiles) Down(least float64) (forward, backward []profile.Point, err error) {
	known := make([][]profile.Point, len(p.Directions))
	for i, direction := range p.Directions {
		if known[i], err = profile.Points(direction, least, profile.Nodes); err != nil {
			return nil, nil, err
		}
	}
	return known[0], known[len(known)-1], nil
}

// QuicklyDown is down with points from one grid for each order of the data sets where possible. They are a
// little coarser, and take some milliseconds for DP-SGD.
func (p Profiles) QuicklyDown(least float64) (forward, backward []profile.Point, err error) {
	if p.Exact != nil {
		if known, ok := p.Exact.GridPoints(float64(p.Runs), math.Log(least)); ok {
			return known[0], known[len(known)-1], nil
		}
	}
	return p.Down(least)
}
