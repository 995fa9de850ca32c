package suggest

import (
	"math"

	"github.com/dpareto/dpareto/suggest/space"
)

// Configuration is one point of a history with its evaluations, pooled.
type Configuration struct {
	Point space.Point

	// Evaluations are the indices of its evaluations in the history.
	Evaluations []int

	// Values and StdErrors are the pooled measurements, in own units: means
	// over Runs, and their standard errors (NaN if unknown).
	Values, StdErrors []float64
	Runs              int
}

// Finite reports whether every metric has a finite value.
func (c *Configuration) Finite() bool {
	for _, v := range c.Values {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return false
		}
	}
	return true
}

// Configurations returns the different configurations that were evaluated, in order of
// their first evaluations.
func (h *History) Configurations() []Configuration {
	indices := make([]int, len(h.Evaluations))
	for i := range indices {
		indices[i] = i
	}
	return h.Pool(indices)
}

// Pool is Configurations for the evaluations with the given indices alone. It keeps the slice.
func (h *History) Pool(evaluations []int) []Configuration {
	index := make(map[string]int, len(evaluations))
	pooled := make([]Configuration, 0, len(evaluations))
	for at, i := range evaluations {
		k := h.Evaluations[i].Point.Key()
		if c, ok := index[k]; ok {
			pooled[c].Evaluations = append(pooled[c].Evaluations, i)
			continue
		}
		index[k] = len(pooled)
		pooled = append(pooled, Configuration{Point: h.Evaluations[i].Point, Evaluations: evaluations[at : at+1 : at+1]})
	}
	if len(pooled) == 0 {
		return pooled
	}
	metrics := len(h.Evaluations[evaluations[0]].Values)
	memory := make([]float64, 2*metrics*len(pooled))
	for c := range pooled {
		q := &pooled[c]
		q.Values, memory = memory[:metrics:metrics], memory[metrics:]
		q.StdErrors, memory = memory[:metrics:metrics], memory[metrics:]
		for _, i := range q.Evaluations {
			q.Runs += h.Evaluations[i].RunCount()
		}
		for j := range metrics {
			q.Values[j], q.StdErrors[j] = h.poolMetric(q.Evaluations, j, q.Runs)
		}
	}
	return pooled
}

// poolMetric returns the mean of metric j over all runs of the given
// evaluations, and its standard error from the sums of squares within and
// between them.
func (h *History) poolMetric(evaluations []int, j, runs int) (mean, stdError float64) {
	if len(evaluations) == 1 {
		e := &h.Evaluations[evaluations[0]]
		return e.Values[j], e.StdError(j)
	}
	for _, i := range evaluations {
		e := &h.Evaluations[i]
		mean += e.Values[j] * float64(e.RunCount()) / float64(runs)
	}
	squares := 0.0
	for _, i := range evaluations {
		e := &h.Evaluations[i]
		r := float64(e.RunCount())
		if e.RunCount() > 1 {
			s := e.StdError(j)
			squares += s * s * r * (r - 1)
		}
		d := e.Values[j] - mean
		squares += r * d * d
	}
	r := float64(runs)
	return mean, math.Sqrt(squares / (r - 1) / r)
}
