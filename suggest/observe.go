package suggest

import (
	"math"

	"gonum.org/v1/gonum/mathext"

	"github.com/dpareto/dpareto/suggest/acquisition"
	"github.com/dpareto/dpareto/suggest/space"
)

// configuration is all that a history knows of one point.
type configuration struct {
	point       space.Point
	evaluations []int     // indices into History.Evaluations
	values      []float64 // means over all runs, own units
	stdErrors   []float64 // of the values, NaN if unknown
	runs        int
}

// pool joins those of the given evaluations that have equal points, in order of
// first appearance. It keeps the slice of their indices.
func pool(h *History, evaluations []int, metrics int) []configuration {
	index := make(map[string]int, len(evaluations))
	pooled := make([]configuration, 0, len(evaluations))
	for at, i := range evaluations {
		k := key(h.Evaluations[i].Point)
		if c, ok := index[k]; ok {
			pooled[c].evaluations = append(pooled[c].evaluations, i)
			continue
		}
		index[k] = len(pooled)
		pooled = append(pooled, configuration{point: h.Evaluations[i].Point, evaluations: evaluations[at : at+1 : at+1]})
	}
	memory := make([]float64, 2*metrics*len(pooled))
	for c := range pooled {
		q := &pooled[c]
		q.values, memory = memory[:metrics:metrics], memory[metrics:]
		q.stdErrors, memory = memory[:metrics:metrics], memory[metrics:]
		for _, i := range q.evaluations {
			q.runs += h.Evaluations[i].runs()
		}
		for j := range metrics {
			q.values[j], q.stdErrors[j] = poolObjective(h, q.evaluations, j, q.runs)
		}
	}
	return pooled
}

// indices returns the indices of all evaluations.
func (h *History) indices() []int {
	indices := make([]int, len(h.Evaluations))
	for i := range indices {
		indices[i] = i
	}
	return indices
}

// poolObjective returns the mean of objective j over all runs of the given
// evaluations, and its standard error from the sums of squares within and
// between them.
func poolObjective(h *History, evaluations []int, j, runs int) (mean, stdError float64) {
	if len(evaluations) == 1 {
		e := &h.Evaluations[evaluations[0]]
		return e.Values[j], e.stdError(j)
	}
	for _, i := range evaluations {
		e := &h.Evaluations[i]
		mean += e.Values[j] * float64(e.runs()) / float64(runs)
	}
	squares := 0.0
	for _, i := range evaluations {
		e := &h.Evaluations[i]
		r := float64(e.runs())
		if e.runs() > 1 {
			s := e.stdError(j)
			squares += s * s * r * (r - 1)
		}
		d := e.Values[j] - mean
		squares += r * d * d
	}
	r := float64(runs)
	return mean, math.Sqrt(squares / (r - 1) / r)
}

func (e *Evaluation) runs() int { return max(e.Runs, 1) }

func (e *Evaluation) stdError(j int) float64 {
	if e.StdErrors == nil {
		return math.NaN()
	}
	return e.StdErrors[j]
}

// Without a sample size, fractions are kept this far from 0 and 1 before the
// logit: closer ones would be outliers of several units on the surrogate's
// scale for a difference that few measurements resolve.
const minFraction = 1e-3

// A count of successes or failures below smallCount has a sample variance that
// says little; its noise is that of the Jeffreys posterior instead.
const smallCount = 5

// latent returns the value of o on its surrogate's scale for v, the finite mean
// of the given number of runs with standard error se (NaN if unknown), and the
// variance of its noise (NaN if unknown).
//
// With a sample size m the logit is that of p = (k + 1/2) / (N + 1), with k
// successes in N = runs·m records, whose noise variance is s²/(runs p² (1-p)²)
// by the delta method, s² being the variance between runs, at least 1/(4m²).
// If k or N - k is below 5 it is ψ₁(k + 1/2) + ψ₁(N - k + 1/2), the variance of
// the logit of a fraction under Jeffreys' posterior.
//
// A value with Noise added is no count: its logit is that of the value itself, kept at
// least the noise away from 0 and 1, where the variance by the delta method is about 1.
func (o *Objective) latent(v, se float64, runs int) (z, variance float64) {
	// The spread of a few noisy values can be less than their noise.
	se = math.Max(se, o.Noise/math.Sqrt(float64(runs)))
	switch o.Transform {
	case Log:
		clipped := math.Max(v, o.floor())
		return math.Log(clipped), se * se / (clipped * clipped)
	case Logit:
		v = math.Min(math.Max(v, 0), 1)
		if o.Noise > 0 {
			margin := math.Min(o.Noise, 0.5)
			p := math.Min(math.Max(v, margin), 1-margin)
			slope := 1 / (p * (1 - p))
			return logit(p), se * se * slope * slope
		}
		if o.SampleSize == 0 {
			p := math.Min(math.Max(v, minFraction), 1-minFraction)
			slope := 1 / (p * (1 - p))
			return logit(p), se * se * slope * slope
		}
		n := float64(runs) * o.SampleSize
		k := v * n
		p := (k + 0.5) / (n + 1)
		if math.IsNaN(se) {
			return logit(p), math.NaN()
		}
		return logit(p), fractionNoise(k, n, p, se, float64(runs), o.SampleSize)
	default:
		return math.Min(math.Max(v, -largest), largest), se * se
	}
}

// largest is the magnitude beyond which values without a transform are cut off: their
// squares must be finite.
const largest = 1e100

// fractionNoise is the noise variance of the logit of a fraction; see latent.
func fractionNoise(k, n, p, se, runs, sampleSize float64) float64 {
	if k < smallCount || n-k < smallCount {
		return trigamma(k+0.5) + trigamma(n-k+0.5)
	}
	return deltaNoise(p, se, runs, sampleSize)
}

func deltaNoise(p, se, runs, sampleSize float64) float64 {
	between := math.Max(se*se*runs, 1/(4*sampleSize*sampleSize))
	slope := 1 / (p * (1 - p))
	return between / runs * slope * slope
}

func logit(p float64) float64 { return math.Log(p) - math.Log1p(-p) }

// trigamma is ψ₁(x) = ζ(2, x), x > 0.
func trigamma(x float64) float64 { return mathext.Zeta(2, x) }

// cost maps a value in o's own unit to one that is minimised, by a map that
// keeps lengths.
func (o *Objective) cost(v float64) float64 {
	switch {
	case o.Goal == Minimize:
		return v
	case o.Transform == Logit:
		return 1 - v
	default:
		return -v
	}
}

// known returns the cost of the exact value at q. A value that is not finite
// never improves.
func (o *Objective) known(q space.Point) acquisition.Law {
	c := o.cost(o.Known(q))
	if math.IsNaN(c) || math.IsInf(c, 0) {
		c = math.Inf(1)
	}
	return acquisition.Law{Mean: c}
}

// law returns the law of o's cost where its surrogate predicts N(mean, variance).
func (o *Objective) law(mean, variance float64) acquisition.Law {
	l := acquisition.Law{Mean: mean, StdDev: math.Sqrt(math.Max(variance, 0))}
	switch o.Transform {
	case Log:
		l.Family = acquisition.LogNormal
		if o.Goal == Maximize {
			l.Family = acquisition.NegatedLogNormal
		}
		return l
	case Logit:
		l.Family = acquisition.LogitNormal
	default:
	}
	if o.Goal == Maximize {
		l.Mean = -mean
	}
	return l
}

// intervalZ is the 95 % quantile of the standard Gaussian: the half width of a
// central 90 % interval.
const intervalZ = 1.6448536269514722

// prediction turns the law of a cost into one of the objective's own value.
func (o *Objective) prediction(l acquisition.Law) Prediction {
	own := func(z float64) float64 {
		v := l.Quantile(z)
		switch {
		case o.Goal == Minimize:
			return v
		case o.Transform == Logit:
			return 1 - v
		default:
			return -v
		}
	}
	a, b := own(-intervalZ), own(intervalZ)
	return Prediction{Median: own(0), Lower: math.Min(a, b), Upper: math.Max(a, b)}
}

// isBad reports whether an infinite value is worse than every finite one.
func (o *Objective) isBad(v float64) bool {
	return math.IsInf(v, 1) && o.Goal == Minimize || math.IsInf(v, -1) && o.Goal == Maximize
}

// worst returns the worse of two latent values.
func (o *Objective) worst(a, b float64) float64 {
	if o.Goal == Minimize {
		return math.Max(a, b)
	}
	return math.Min(a, b)
}
