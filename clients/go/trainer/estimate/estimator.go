package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
)

// Method is a way to estimate a path.
type Method int

const (
	// MethodHermite is [Problem.Hermite]. It is the default.
	MethodHermite Method = iota
	// MethodNewton is [Problem.Newton].
	MethodNewton
	// MethodLine is [Problem.Line].
	MethodLine
)

// Defaults of Options.
const (
	DefaultAnchors = 4
	DefaultDraws   = 10
)

// Options configure an estimator. Only Lower and Upper are required.
type Options struct {
	Method Method
	// Lower and Upper bound the values of ε: 0 < Lower < Upper, both finite. The anchors
	// lie between them.
	Lower, Upper float64
	// Anchors is the number of models that MethodHermite trains for each draw, at least
	// 2; 0 means DefaultAnchors.
	Anchors int
	// At is the ε of the model that MethodLine trains for each draw; 0 means the
	// geometric mean of Lower and Upper.
	At float64
	// Draws is the number of draws of the noise, at least 1; 0 means DefaultDraws.
	Draws int
	// Seed of the noise.
	Seed uint64
	// Progress, when not nil, is called with the number of models that have been trained
	// so far and the number that are known to be wanted. Calls may come from several
	// goroutines at once.
	Progress func(done, total int)
}

func (o Options) validate() error {
	switch {
	case !(0 < o.Lower && o.Lower < o.Upper && !math.IsInf(o.Upper, 1)):
		return fmt.Errorf("ε is to be from %v to %v, want two positive finite numbers in increasing order", o.Lower, o.Upper)
	case o.Method < MethodHermite || o.Method > MethodLine:
		return fmt.Errorf("method %d is unknown", o.Method)
	case o.Anchors == 1 || o.Anchors < 0:
		return fmt.Errorf("%d anchors, want at least 2", o.Anchors)
	case o.Draws < 0:
		return fmt.Errorf("%d draws, want at least 1", o.Draws)
	case o.At != 0 && !(o.At >= o.Lower && o.At <= o.Upper):
		return fmt.Errorf("the line is through ε = %v, which is not from %v to %v", o.At, o.Lower, o.Upper)
	}
	return nil
}

// Estimator estimates the mean utility over draws of the noise, as a function of ε. Its
// methods must be called from one goroutine at a time.
type Estimator struct {
	problem Problem
	options Options
	draws   [][]float64 // unit noises
	paths   []Path
	still   Path // without noise, for the control variate; nil for a single draw

	done, total atomic.Int64 // models
}

// streamNoise is the purpose of the random streams of the draws. It differs from every
// training's, so that no trained model has the noise of an estimate.
const streamNoise = 0x0e57_0001

// New draws the noise and trains the models that the method needs. It returns the errors
// of Validate and training, one for invalid options, and *DiscontinuityError.
func New(ctx context.Context, p Problem, o Options) (*Estimator, error) {
	if err := errors.Join(p.Validate(), o.validate()); err != nil {
		return nil, err
	}
	if o.Anchors == 0 {
		o.Anchors = DefaultAnchors
	}
	if o.Draws == 0 {
		o.Draws = DefaultDraws
	}
	if o.At == 0 {
		o.At = math.Sqrt(o.Lower * o.Upper)
	}
	e := &Estimator{options: o, draws: make([][]float64, o.Draws), paths: make([]Path, o.Draws)}
	p.trained = e.trained
	e.problem = p
	if o.Draws > 1 {
		e.still = p.Newton(nil)
	}
	switch o.Method {
	case MethodHermite:
		e.total.Store(int64(o.Draws * o.Anchors))
	case MethodLine:
		e.total.Store(int64(o.Draws))
	case MethodNewton: // trains when asked
	}
	_, err := experiment.Each(ctx, o.Draws, func(r int) (err error) {
		u := make([]float64, p.Risk.Examples.Dim())
		objectiveperturbation.UnitNoise(u, random.New(o.Seed, r, streamNoise, 0))
		e.draws[r] = u
		switch o.Method {
		case MethodNewton:
			e.paths[r] = p.Newton(u)
		case MethodLine:
			e.paths[r], err = p.Line(ctx, u, o.At)
		default:
			e.paths[r], err = p.Hermite(ctx, u, Anchors(o.Lower, o.Upper, o.Anchors))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Path returns the path of a draw, from 0 on. It must not be used while the estimator is.
func (e *Estimator) Path(draw int) Path { return e.paths[draw] }

// Noise returns the unit noise of a draw, from 0 on, which must not be changed.
func (e *Estimator) Noise(draw int) []float64 { return e.draws[draw] }

// trained reports that a model was trained.
func (e *Estimator) trained() {
	if done := e.done.Add(1); e.options.Progress != nil {
		e.options.Progress(int(done), int(max(done, e.total.Load())))
	}
}

// Mean is an average over draws of the noise.
type Mean struct {
	Value float64
	// StandardError of the value as an estimate of the mean over all noise; NaN for one
	// draw. It does not include the error of interpolation or a line.
	StandardError float64
	// Deviation is the standard deviation of single models, NaN for one draw.
	Deviation float64
}

// MeanMeasure is a Measure as an average.
type MeanMeasure struct{ Loss, Error Mean }

// Estimate is what models at an ε are worth.
type Estimate struct {
	Epsilon        float64
	Train, HeldOut MeanMeasure // HeldOut is NaN without held-out examples
	Draws          []Utility   // of single models, one of each draw
}

// Curve returns the estimates at values of ε, in their order. It returns the errors of
// training and of paths, such as *RangeError for an ε outside the anchors.
func (e *Estimator) Curve(ctx context.Context, epsilons []float64) ([]Estimate, error) {
	// In decreasing order, so that models start from close ones.
	order := make([]int, len(epsilons))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(i, j int) int {
		switch {
		case epsilons[i] > epsilons[j]:
			return -1
		case epsilons[i] < epsilons[j]:
			return 1
		default:
			return 0
		}
	})
	wanted := 0
	if e.options.Method == MethodNewton {
		wanted += len(e.paths)
	}
	if e.still != nil {
		wanted++
	}
	e.total.Store(e.done.Load() + int64(wanted*len(epsilons)))

	estimates := make([]Estimate, len(epsilons))
	for i, epsilon := range epsilons {
		estimates[i] = Estimate{Epsilon: epsilon, Draws: make([]Utility, len(e.paths))}
	}
	_, err := experiment.Each(ctx, len(e.paths), func(r int) (err error) {
		for _, i := range order {
			if err = ctx.Err(); err != nil {
				return err
			}
			if estimates[i].Draws[r], err = e.paths[r].Utility(ctx, epsilons[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, i := range order {
		if err := e.average(ctx, &estimates[i]); err != nil {
			return nil, err
		}
	}
	return estimates, nil
}

// average fills in the means.
func (e *Estimator) average(ctx context.Context, estimate *Estimate) error {
	values := func(f func(Utility) float64) []float64 {
		v := make([]float64, len(estimate.Draws))
		for r, u := range estimate.Draws {
			v[r] = f(u)
		}
		return v
	}
	train := values(func(u Utility) float64 { return u.Train.Loss })
	heldOut := values(func(u Utility) float64 { return u.HeldOut.Loss })
	estimate.Train.Error = plainMean(values(func(u Utility) float64 { return u.Train.Error }))
	estimate.HeldOut.Error = plainMean(values(func(u Utility) float64 { return u.HeldOut.Error }))
	if e.still == nil {
		estimate.Train.Loss, estimate.HeldOut.Loss = plainMean(train), plainMean(heldOut)
		return nil
	}
	theta, err := e.still.Model(ctx, estimate.Epsilon)
	if err != nil {
		return err
	}
	quadratic, err := e.problem.Quadratic(theta)
	if err != nil {
		return err
	}
	var c, h control
	for _, u := range e.draws {
		losses := quadratic.Draw(u)(estimate.Epsilon)
		c.draws, h.draws = append(c.draws, losses.Train), append(h.draws, losses.HeldOut)
	}
	still := quadratic.Mean(estimate.Epsilon, 0)
	mean := quadratic.Mean(estimate.Epsilon, float64(len(theta)+1))
	c.still, c.mean = still.Train, mean.Train
	h.still, h.mean = still.HeldOut, mean.HeldOut
	estimate.Train.Loss, estimate.HeldOut.Loss = c.average(train), h.average(heldOut)
	return nil
}

// plainMean averages values.
func plainMean(values []float64) Mean {
	mean, deviation := stat.MeanStdDev(values, nil)
	if len(values) == 1 {
		deviation = math.NaN()
	}
	return Mean{Value: mean, StandardError: deviation / math.Sqrt(float64(len(values))), Deviation: deviation}
}

// control is a control variate: another loss under the same noise, with known mean.
type control struct {
	draws []float64 // under every draw
	mean  float64   // over all noise
	still float64   // without noise
}

// regressionDraws is the number of draws from which on the coefficient of the control
// variate is a regression.
const regressionDraws = 6

// average returns the mean of values with the control variate: of value − k·(control −
// its mean). The coefficient k of a draw is chosen from the other draws, and so is
// independent of it: the mean is unbiased for any choice, and its standard error
// honest. From few draws the coefficient is the ratio of the losses that the noise has
// added, which is never far off; from more it is the regression of the values on the
// control, limited to [0, 3].
func (c control) average(values []float64) Mean {
	residuals := make([]float64, len(values))
	others := make([]float64, 0, len(values))
	controls := make([]float64, 0, len(values))
	for r, value := range values {
		others = append(append(others[:0], values[:r]...), values[r+1:]...)
		controls = append(append(controls[:0], c.draws[:r]...), c.draws[r+1:]...)
		var k float64
		if len(values) < regressionDraws {
			k = (stat.Mean(others, nil) - c.still) / (stat.Mean(controls, nil) - c.still)
		} else {
			k = stat.Covariance(others, controls, nil) / stat.Variance(controls, nil)
		}
		if k = min(max(k, 0), 3); math.IsNaN(k) {
			k = 0 // without variation there is nothing to take away
		}
		residuals[r] = value - k*(c.draws[r]-c.mean)
	}
	mean := plainMean(residuals)
	mean.Value = possible(mean.Value) // residuals of large noise can be negative
	mean.Deviation = plainMean(values).Deviation
	return mean
}
