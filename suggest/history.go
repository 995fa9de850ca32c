package suggest

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/suggest/space"
)

// Evaluation is the outcome of one configuration.
type Evaluation struct {
	Point space.Point

	// Values are the objectives, then the constraints, in their own units, one
	// each: means over Runs. A value that is not finite (an unbounded privacy
	// loss, a metric that was not reported) keeps the configuration off the front.
	Values []float64

	// StdErrors are the standard errors of Values, finite and at least 0, or NaN
	// if unknown. nil means that all are unknown.
	StdErrors []float64

	// Runs is the number of independent runs behind Values. 0 means 1.
	Runs int

	// Run identifies the run of a checkpoint. Evaluations with the same Run, other than 0,
	// share the noise of one run and differ in the checkpoint parameter only.
	Run int64

	// Cost is the measured cost of the run, positive, or 0 if unknown.
	Cost float64
}

// History holds the results of a study. Several evaluations of the same point are pooled as
// replicates. Runs are in order of completion, and the checkpoints of one run follow each
// other.
type History struct {
	Evaluations []Evaluation

	// Prior are evaluations of an earlier study of the same space. The model expects
	// their values until the study's own evaluations say otherwise. They are on no front.
	Prior []Evaluation

	// Infeasible are configurations that cannot work.
	Infeasible []space.Point

	// Pending are configurations that are being evaluated, in the order in
	// which they were suggested.
	Pending []space.Point
}

// Trials returns the number of runs that were evaluated. The checkpoints of a run count
// as one.
func (h *History) Trials() int {
	n := 0
	for i := range h.Evaluations {
		if run := h.Evaluations[i].Run; run == 0 || i == 0 || h.Evaluations[i-1].Run != run {
			n++
		}
	}
	return n
}

// Tried returns every configuration that h holds, in whatever state.
func (h *History) Tried() space.Set {
	s := make(space.Set, len(h.Evaluations)+len(h.Infeasible)+len(h.Pending))
	for i := range h.Evaluations {
		s.Add(h.Evaluations[i].Point)
	}
	for _, q := range h.Infeasible {
		s.Add(q)
	}
	for _, q := range h.Pending {
		s.Add(q)
	}
	return s
}

// RunCount returns the number of runs behind the values, at least 1.
func (e *Evaluation) RunCount() int { return max(e.Runs, 1) }

// StdError returns the standard error of metric j, NaN if it is unknown.
func (e *Evaluation) StdError(j int) float64 {
	if e.StdErrors == nil {
		return math.NaN()
	}
	return e.StdErrors[j]
}

// validate checks the shapes that designers and models rely on. Points may lie outside
// the bounds.
func (h *History) validate(p *Problem) error {
	var errs space.FieldErrors
	// Names are made only for violations: a history is long, and mostly right.
	point := func(list string, i int, suffix string, q space.Point) {
		if len(q) != len(p.Space.Parameters) {
			errs.Add(fmt.Sprintf("%s[%d]%s", list, i, suffix), fmt.Sprintf("must have %d values, has %d", len(p.Space.Parameters), len(q)))
			return
		}
		for _, v := range q {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				errs.Add(fmt.Sprintf("%s[%d]%s", list, i, suffix), "must be finite")
				return
			}
		}
	}
	metrics := len(p.Objectives) + len(p.Constraints)
	evaluation := func(list string, i int, e *Evaluation) {
		point(list, i, ".point", e.Point)
		add := func(field, format string, args ...any) {
			errs.Add(fmt.Sprintf("%s[%d].%s", list, i, field), fmt.Sprintf(format, args...))
		}
		if len(e.Values) != metrics {
			add("values", "must have %d values, has %d", metrics, len(e.Values))
		}
		if e.StdErrors != nil && len(e.StdErrors) != metrics {
			add("std_errors", "must have %d values, has %d", metrics, len(e.StdErrors))
		}
		for _, s := range e.StdErrors {
			if s < 0 || math.IsInf(s, 1) {
				add("std_errors", "must not be negative or infinite, is %g", s)
			}
		}
		if e.Runs < 0 {
			add("runs", "must not be negative, is %d", e.Runs)
		}
		if !(e.Cost >= 0) || math.IsInf(e.Cost, 1) {
			add("cost", "must be finite and not negative, is %g", e.Cost)
		}
	}
	for i := range h.Evaluations {
		evaluation("evaluations", i, &h.Evaluations[i])
	}
	for i := range h.Prior {
		evaluation("prior", i, &h.Prior[i])
	}
	for i, q := range h.Infeasible {
		point("infeasible", i, "", q)
	}
	for i, q := range h.Pending {
		point("pending", i, "", q)
	}
	return errs.Err()
}
