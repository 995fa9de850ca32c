package server

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// results are what was measured in a study.
type results struct {
	fronts         *Fronts
	study          *dparetov1.Study
	finalOnly      bool // without the measurements on the way
	cached         *Cached
	compiled       *spec.Study
	measurements   []measured      // in the order of the completion of trials and of their steps
	configurations []configuration // in the order of their first measurement
	byPoint        map[string]int  // indices of configurations
}

// measured is a measurement of a configuration.
type measured struct {
	trial         *dparetov1.Trial
	measurement   *dparetov1.Measurement
	evaluation    suggest.Evaluation // of the configuration with the checkpoint parameter set to the step
	configuration int                // index
	last          bool               // of its trial
}

// configuration is a configuration with all its measurements, of one trial or several.
type configuration struct {
	point        space.Point
	measurements []int // indices
	runs         int
}

// results reads what was measured in a study.
func (f *Fronts) results(ctx context.Context, id string, finalOnly bool) (*results, error) {
	r := &results{fronts: f, finalOnly: finalOnly, byPoint: make(map[string]int)}
	var trials []*storev1.TrialRecord // succeeded
	err := f.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		r.study = f.studies.Present(record)
		if r.cached, err = f.studies.Get(r.study); err != nil {
			return err
		}
		r.compiled = r.cached.compiled
		return tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
			if t.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
				trials = append(trials, t)
			}
			return true, nil
		})
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(trials, func(a, b *storev1.TrialRecord) int {
		return cmp.Compare(a.GetCompletionOrder(), b.GetCompletionOrder())
	})
	for _, t := range trials {
		if err := r.addTrial(t.GetTrial()); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addTrial adds the measurements of a trial: the final one, and, if each is an evaluation
// of its own, those on the way, in the order of their steps.
func (r *results) addTrial(trial *dparetov1.Trial) error {
	point, err := r.compiled.Point("trial.parameters", trial.GetParameters())
	if err != nil {
		return fmt.Errorf("%s: %w", trial.GetName(), err)
	}
	measurements := []*dparetov1.Measurement{trial.GetFinalMeasurement()}
	if r.compiled.Checkpoints() && !r.finalOnly {
		measurements = withFinal(trial)
	}
	for _, m := range measurements {
		r.add(trial, point, m)
	}
	r.measurements[len(r.measurements)-1].last = true
	return nil
}

// add adds a measurement of a trial with the configuration at point.
func (r *results) add(trial *dparetov1.Trial, point space.Point, m *dparetov1.Measurement) {
	evaluation := r.compiled.Evaluation(point, m)
	evaluation.Run = trial.GetNumber()
	key := pointKey(evaluation.Point)
	c, ok := r.byPoint[key]
	if !ok {
		c = len(r.configurations)
		r.byPoint[key] = c
		r.configurations = append(r.configurations, configuration{point: evaluation.Point})
	}
	r.configurations[c].measurements = append(r.configurations[c].measurements, len(r.measurements))
	r.configurations[c].runs += evaluation.Runs
	r.measurements = append(r.measurements, measured{trial: trial, measurement: m, evaluation: evaluation, configuration: c})
}

// pointKey returns a point as a map key.
func pointKey(point space.Point) string {
	key := make([]byte, 0, 8*len(point))
	for _, v := range point {
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(v))
	}
	return string(key)
}

// values returns the objectives of every configuration by which a kind of front other
// than the posterior one is chosen; NaN where its measurements violate a constraint.
func (r *results) values(kind dparetov1.FrontKind) [][]float64 {
	values := make([][]float64, len(r.configurations))
	for i := range r.configurations {
		values[i] = r.value(r.configurations[i].measurements, kind)
	}
	return values
}

// value returns the objectives of a configuration with the given measurements, of which
// there is at least one.
func (r *results) value(measurements []int, kind dparetov1.FrontKind) []float64 {
	if !r.allowed(measurements) {
		return slices.Repeat([]float64{math.NaN()}, len(r.compiled.Problem.Objectives))
	}
	statistic := statisticOf(kind)
	pooled := r.compiled.ObjectiveValues(r.measurements[measurements[0]].measurement, statistic)
	runs := float64(r.measurements[measurements[0]].evaluation.Runs)
	for _, k := range measurements[1:] {
		m := &r.measurements[k]
		more := float64(m.evaluation.Runs)
		runs += more
		for j, v := range r.compiled.ObjectiveValues(m.measurement, statistic) {
			o := &r.compiled.Problem.Objectives[j]
			switch {
			case o.Known != nil: // the same for all
			case statistic == spec.Mean:
				pooled[j] += (v - pooled[j]) * more / runs
			case (statistic == spec.Best) == (o.Goal == suggest.Minimize):
				pooled[j] = min(pooled[j], v)
			default:
				pooled[j] = max(pooled[j], v)
			}
		}
	}
	return pooled
}

// statisticOf returns which runs of a configuration stand for it in a kind of front.
func statisticOf(kind dparetov1.FrontKind) spec.Statistic {
	switch kind {
	case dparetov1.FrontKind_FRONT_KIND_BEST:
		return spec.Best
	case dparetov1.FrontKind_FRONT_KIND_WORST:
		return spec.Worst
	default:
		return spec.Mean
	}
}

// allowed reports whether the mean of measurements meets the study's constraints. Where
// one has no value it does not.
func (r *results) allowed(measurements []int) bool {
	sums, runs := make([]float64, len(r.compiled.Problem.Constraints)), 0.0
	for _, k := range measurements {
		m := &r.measurements[k]
		weight := float64(m.evaluation.Runs)
		for i, v := range r.compiled.ConstraintValues(m.measurement) {
			sums[i] += weight * v
		}
		runs += weight
	}
	for i, sum := range sums {
		mean := sum / runs
		if c := &r.compiled.Problem.Constraints[i]; !(c.Lower <= mean && mean <= c.Upper) || math.IsInf(mean, 0) {
			return false
		}
	}
	return true
}

// describe adds to the value of measured objective j what the runs of a configuration
// say of it.
func (r *results) describe(value *dparetov1.FrontValue, c *configuration, j int) {
	value.Observed = &r.value(c.measurements, dparetov1.FrontKind_FRONT_KIND_OBSERVED)[j]
	if se := r.standardError(c, j, value.GetObserved()); !math.IsNaN(se) {
		value.StandardError = &se
	}
	objective := r.compiled.Objectives()[j]
	for _, k := range c.measurements {
		m := &r.measurements[k]
		if metric := m.measurement.GetMetrics()[objective]; metric.Min == nil {
			return // its runs are not known
		}
	}
	value.Best = &r.value(c.measurements, dparetov1.FrontKind_FRONT_KIND_BEST)[j]
	value.Worst = &r.value(c.measurements, dparetov1.FrontKind_FRONT_KIND_WORST)[j]
}

// standardError returns the standard error of the mean of objective j over all runs of
// a configuration, from the sums of squares within and between its measurements; NaN if
// it is not known.
func (r *results) standardError(c *configuration, j int, mean float64) float64 {
	if len(c.measurements) == 1 {
		return r.measurements[c.measurements[0]].evaluation.StdErrors[j]
	}
	squares := 0.0
	for _, k := range c.measurements {
		e := &r.measurements[k].evaluation
		n := float64(e.Runs)
		if e.Runs > 1 {
			squares += e.StdErrors[j] * e.StdErrors[j] * n * (n - 1)
		}
		squares += n * (e.Values[j] - mean) * (e.Values[j] - mean)
	}
	n := float64(c.runs)
	return math.Sqrt(squares / (n - 1) / n)
}

// cost returns values with the sign of objectives to maximise turned.
func (r *results) cost(values []float64) []float64 {
	costs := slices.Clone(values)
	for i := range costs {
		if r.compiled.Problem.Objectives[i].Goal == suggest.Maximize {
			costs[i] = -costs[i]
		}
	}
	return costs
}

// costs returns the costs of many values.
func (r *results) costs(values [][]float64) [][]float64 {
	costs := make([][]float64, len(values))
	for i, v := range values {
		costs[i] = r.cost(v)
	}
	return costs
}

// reference returns the reference values as costs.
func (r *results) reference() []float64 {
	reference := make([]float64, len(r.compiled.Problem.Objectives))
	for i := range reference {
		reference[i] = r.compiled.Problem.Objectives[i].Reference
	}
	return r.cost(reference)
}
