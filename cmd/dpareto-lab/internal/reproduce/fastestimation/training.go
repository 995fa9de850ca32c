package fastestimation

import (
	"context"
	"math"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy"
)

// training is a way to train privately.
type training struct {
	name    string
	summary string
	noise   noise
	rule    privacy.ObjectiveCalibration
	solver  solver
}

// trainings are all ways to train, the minimisers first.
var trainings = []*training{
	{
		name: "gamma", noise: gamma, rule: privacy.Chaudhuri, solver: exact,
		summary: "the mechanism that the paper states, with its calibration: noise of density ∝ exp(−β‖b‖₂), " +
			"the exact minimiser.",
	},
	{
		name: "rank-one", noise: gamma, rule: privacy.RankOne, solver: exact,
		summary: "the same with the calibration that dpareto uses, under which the same ε needs less noise.",
	},
	{
		name: "laplace", noise: laplace, rule: privacy.Chaudhuri, solver: exact,
		summary: "the noise of the paper's equations 10 to 13, Laplace for each coordinate, as in the proof " +
			"in one dimension only; the exact minimiser.",
	},
	{
		name: "steps", noise: laplace, rule: privacy.Chaudhuri, solver: steps,
		summary: "the paper's set-up read literally: its noise, drawn anew for every training, and 100 stochastic gradient " +
			"steps of 0.01 from zero (50 records each), far from any minimum. Neither the privacy proof nor equation 9 applies.",
	},
	{
		name: "passes", noise: laplace, rule: privacy.Chaudhuri, solver: passes,
		summary: "the same with 100 passes over the records in place of 100 steps.",
	},
}

// noise is a distribution of noise of rate 1.
type noise int

const (
	gamma   noise = iota // density ∝ e^{−‖u‖₂}
	laplace              // independent coordinates of density ∝ e^{−|u|}
)

// draw stores noise in dst.
func (n noise) draw(dst []float64, s *random.Stream) {
	if n == gamma {
		objectiveperturbation.UnitNoise(dst, s)
		return
	}
	for i := range dst {
		dst[i] = math.Copysign(s.Exponential(), s.Float64()-0.5)
	}
}

// solver is how an objective is minimised.
type solver int

const (
	exact  solver = iota // to the minimum
	steps                // by a number of stochastic gradient steps
	passes               // by a number of passes over the examples in such steps
)

// The paper's solver. The batch size comes from the code which the paper says it is
// based on (Iyengar and others, "Towards practical differentially private convex
// optimization", 2019).
const (
	iterations   = 100
	learningRate = 0.01
	batchSize    = 50
)

// regularization is the paper's λ. It has no effect: at these ε the calibrations decide
// on more.
const regularization = 1e-6

// estimation returns the problem of a training.
func (t *training) estimation(p *problem) estimate.Problem {
	return estimate.Problem{
		Risk:           p.train,
		HeldOut:        p.test.Examples,
		Regularization: regularization,
		Calibration:    t.rule,
	}
}

// point is what is measured of the model of one ε.
type point struct {
	loss    float64 // on the training examples, without regulariser and noise
	slope   float64 // of the line of equation 9, NaN unless it was asked for
	heldOut estimate.Measure
	spread  float64 // of means over draws: the standard deviation of loss, NaN for one draw
}

// The independent random streams of a draw.
const (
	streamNoise = 0x0fa5_0001 + iota
	streamOrder
)

// unit returns the noise of rate 1 of a draw: for one target, or for index −1,
// which all targets have in common.
func (t *training) unit(p *problem, seed uint64, draw, target int) []float64 {
	u := make([]float64, p.dim())
	t.noise.draw(u, random.New(seed, draw, streamNoise, target+1))
	return u
}

// path trains a model for every target, the draw-th time, and measures it. Some targets
// get the slope of their line.
func (t *training) path(ctx context.Context, p *problem, seed uint64, draw int, sloped func(target int) bool) (curve, error) {
	e := t.estimation(p)
	u := t.unit(p, seed, draw, -1)
	points := make(curve, len(targets))
	var start []float64
	for i, epsilon := range targets {
		var solution *estimate.Solution
		var err error
		if t.solver == exact {
			if solution, err = e.Solve(ctx, u, epsilon, start); err != nil {
				return nil, err
			}
			start = solution.Theta
		} else {
			u = t.unit(p, seed, draw, i)
			objective := objectiveperturbation.Objective(p.train, e.Mechanism(epsilon), u)
			solution = &estimate.Solution{
				Epsilon: epsilon,
				Theta:   descend(objective, t.solver, random.New(seed, draw, streamOrder, i)),
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
		}
		utility := e.Evaluate(solution.Theta)
		points[i] = point{loss: utility.Train.Loss, slope: math.NaN(), heldOut: utility.HeldOut}
		if sloped(i) {
			// Where the model is no minimiser this is equation 9 all the same, as in the paper.
			derivatives, err := e.Derivatives(u, solution)
			if err != nil {
				return nil, err
			}
			points[i].slope = derivatives.Loss
		}
	}
	return points, nil
}

// estimate returns what an estimator says of every target, for the noise of path.
func (t *training) estimate(ctx context.Context, p *problem, seed uint64, draw int, by estimator) (curve, error) {
	path, err := by.path(ctx, t.estimation(p), t.unit(p, seed, draw, -1))
	if err != nil {
		return nil, err
	}
	points := make(curve, len(targets))
	for i := len(targets) - 1; i >= 0; i-- { // against the order of path
		utility, err := path.Utility(ctx, targets[i])
		if err != nil {
			return nil, err
		}
		points[i] = point{loss: utility.Train.Loss, slope: math.NaN(), heldOut: utility.HeldOut}
	}
	return points, nil
}

// descend returns the model after the paper's number of iterations from zero. A step
// follows the gradient of the mean loss of a batch, and the exact one of the other terms.
func descend(o linear.Objective, by solver, s *random.Stream) []float64 {
	examples := o.Risk.Examples
	theta := make([]float64, examples.Dim())
	first := make([]float64, batchSize)
	step := func(batch []int32) {
		for k, i := range batch {
			first[k], _ = o.Risk.Loss.Derivatives(examples.Margin(int(i), theta))
		}
		floats.Scale(1-learningRate*o.Ridge, theta)
		floats.AddScaled(theta, -learningRate, o.Linear)
		for k, i := range batch {
			examples.AddScaled(theta, -learningRate*first[k]/float64(len(batch)), int(i))
		}
	}
	order := make([]int32, examples.Rows())
	for i := range order {
		order[i] = int32(i)
	}
	size := min(batchSize, len(order))
	for range iterations {
		if by == steps {
			s.Lot(order, size)
			step(order[:size])
			continue
		}
		s.Shuffle(order)
		for from := 0; from < len(order); from += size {
			step(order[from:min(from+size, len(order))])
		}
	}
	return theta
}
