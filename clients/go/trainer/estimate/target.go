package estimate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Metric is one number of a [Utility].
type Metric int

// The metrics.
const (
	TrainLoss    Metric = iota // mean loss on the training examples
	TrainError                 // fraction of the training examples classified wrongly
	HeldOutLoss                // mean loss on the held-out examples
	HeldOutError               // fraction of the held-out examples classified wrongly
)

// String returns "train_loss" and so on.
func (m Metric) String() string {
	switch m {
	case TrainLoss:
		return "train_loss"
	case TrainError:
		return "train_error"
	case HeldOutLoss:
		return "held_out_loss"
	case HeldOutError:
		return "held_out_error"
	default:
		return fmt.Sprintf("metric %d", int(m))
	}
}

// Of returns the metric of an estimate.
func (m Metric) Of(e Estimate) Mean {
	return [...]Mean{e.Train.Loss, e.Train.Error, e.HeldOut.Loss, e.HeldOut.Error}[m]
}

// Single returns the metric of one model.
func (m Metric) Single(u Utility) float64 {
	return [...]float64{u.Train.Loss, u.Train.Error, u.HeldOut.Loss, u.HeldOut.Error}[m]
}

// Answer is an ε for a target.
type Answer struct {
	// Epsilon from which on the mean metric is at most the target, up to the upper end of
	// the range: the estimate of least ε that is enough. It is the lower end of the range
	// when the target is met there and everywhere.
	Epsilon float64
	// StandardError of Epsilon that the standard error of the mean metric causes, by its
	// slope; NaN at the lower end and for one draw.
	StandardError float64
	// Met reports that the target is met in the whole range: less than Epsilon may
	// suffice.
	Met bool
	// Lower and Upper are the least and the largest such ε of single draws. Lower is the
	// lower end of the range when some meet the target everywhere, and might be less
	// then; Upper is +Inf when some do not meet it at all. The ε of one more draw, such
	// as the next model, lies between them with probability (R − 1)/(R + 1) for R draws,
	// if both lie within the range, and up to the error of the method.
	Lower, Upper float64
	// Missed is the number of draws that do not meet the target at the upper end.
	Missed int
}

// UnreachableError says that a target is not reachable within the range of ε.
type UnreachableError struct {
	Metric  Metric
	Target  float64
	Value   float64 // at the upper end of the range
	Epsilon float64 // that end
}

// Error implements error.
func (e *UnreachableError) Error() string {
	return fmt.Sprintf("a mean %s of %v is not reachable: at ε = %v, the end of the range, it is %.6g", e.Metric, e.Target, e.Epsilon, e.Value)
}

const (
	scanned   = 24   // intervals of the range that are searched for a crossing
	precision = 1e-5 // relative, of the answer
)

// EpsilonFor returns the ε from which on a mean metric is at most a target; lower is
// better for all metrics. The paper's equation 17, with its sign corrected, follows
// a line without bound; here the curve of the estimator's method is searched
// between its Lower and Upper ε, from above. It returns *UnreachableError, an error if
// the target or the metric is not a number, and the errors of Curve.
func (e *Estimator) EpsilonFor(ctx context.Context, metric Metric, target float64) (Answer, error) {
	if metric < TrainLoss || metric > HeldOutError {
		return Answer{}, fmt.Errorf("metric %d is unknown", metric)
	}
	if math.IsNaN(target) {
		return Answer{}, errors.New("the target is not a number")
	}
	if metric >= HeldOutLoss && e.problem.HeldOut == nil {
		return Answer{}, fmt.Errorf("%s: there are no held-out examples", metric)
	}
	curve, err := e.Curve(ctx, Anchors(e.options.Lower, e.options.Upper, scanned+1))
	if err != nil {
		return Answer{}, err
	}
	excess := func(i int) float64 { return metric.Of(curve[i]).Value - target }
	if !(excess(scanned) <= 0) {
		return Answer{}, &UnreachableError{metric, target, metric.Of(curve[scanned]).Value, e.options.Upper}
	}
	// The least place from which on the mean meets the target.
	i := scanned
	for i > 0 && excess(i-1) <= 0 {
		i--
	}
	answer := Answer{Epsilon: e.options.Lower, StandardError: math.NaN(), Met: i == 0}
	if i > 0 {
		// The slope over some of the scanned intervals: within one it may be lost in the
		// steps of an error rate.
		a, b := curve[max(i-3, 0)], curve[min(i+2, scanned)]
		slope := (metric.Of(b).Value - metric.Of(a).Value) / (b.Epsilon - a.Epsilon)
		// Regula falsi in log ε, halving where it stands still.
		for halve := false; curve[i].Epsilon > curve[i-1].Epsilon*(1+precision); halve = !halve {
			lower, upper := math.Log(curve[i-1].Epsilon), math.Log(curve[i].Epsilon)
			middle := (lower + upper) / 2
			if part := excess(i-1) / (excess(i-1) - excess(i)); !halve {
				// Beyond the place where the line crosses, so that the bracket shrinks
				// from both sides.
				middle = lower + (upper-lower)*min(max(part+0.1*(0.5-part), 0.01), 0.99)
			}
			between, err := e.Curve(ctx, []float64{math.Exp(middle)})
			if err != nil {
				return Answer{}, err
			}
			curve = slices.Insert(curve, i, between[0])
			if excess(i) > 0 {
				i++
			}
		}
		answer.Epsilon = curve[i].Epsilon
		answer.StandardError = math.Abs(metric.Of(curve[i]).StandardError / slope)
	}
	e.single(&answer, curve, metric, target)
	return answer, nil
}

// single fills in the answers of single draws, by lines in log ε between the places that
// were searched.
func (e *Estimator) single(answer *Answer, curve []Estimate, metric Metric, target float64) {
	answer.Lower, answer.Upper = math.Inf(1), math.Inf(-1)
	for r := range e.paths {
		excess := func(i int) float64 { return metric.Single(curve[i].Draws[r]) - target }
		i := len(curve) - 1
		if !(excess(i) <= 0) {
			answer.Missed++
			answer.Upper = math.Inf(1)
			continue
		}
		for i > 0 && excess(i-1) <= 0 {
			i--
		}
		epsilon := curve[i].Epsilon
		if i > 0 {
			part := excess(i) / (excess(i) - excess(i-1))
			epsilon *= math.Pow(curve[i-1].Epsilon/epsilon, part)
		}
		answer.Lower, answer.Upper = min(answer.Lower, epsilon), max(answer.Upper, epsilon)
	}
}
