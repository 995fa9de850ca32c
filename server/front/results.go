package front

import (
	"cmp"
	"context"
	"math"
	"slices"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Results are the measurements of a study.
type Results struct {
	fronts         *Fronts
	Study          *dparetov1.Study
	finalOnly      bool // without intermediate measurements
	cached         *study.Cached
	Compiled       *spec.Study
	Measurements   []Measured      // in the order in which trials completed, then by step
	Configurations []Configuration // in the order of their first measurement
	byPoint        map[string]int  // index of a configuration by study.PointKey
}

// Measured is a measurement and its evaluation.
type Measured struct {
	trial         *dparetov1.Trial
	Measurement   *dparetov1.Measurement
	Evaluation    suggest.Evaluation // with the checkpoint parameter set to the step
	Configuration int                // index in Results.Configurations
	last          bool               // whether it is its trial's last
}

// Trial returns the name of the trial that was measured.
func (m *Measured) Trial() string { return m.trial.GetName() }

// Configuration is a configuration and its measurements, from one or more trials.
type Configuration struct {
	Point        space.Point
	Measurements []int // indices in Results.Measurements
	runs         int
}

// Results reads the measurements of a study. With finalOnly it leaves intermediate ones out. It
// returns NOT_FOUND if the study does not exist.
func (f *Fronts) Results(ctx context.Context, id string, finalOnly bool) (*Results, error) {
	r := &Results{fronts: f, finalOnly: finalOnly, byPoint: make(map[string]int)}
	var trials []*storev1.TrialRecord // succeeded
	err := f.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		r.Study = f.studies.Present(record)
		if r.cached, err = f.studies.Get(r.Study); err != nil {
			return err
		}
		r.Compiled = r.cached.Compiled
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

// addTrial adds the measurements of a trial in step order: the final one, and, if checkpoints are
// evaluations, the intermediate ones.
func (r *Results) addTrial(trial *dparetov1.Trial) error {
	point, err := study.PointOf(r.Compiled, trial)
	if err != nil {
		return err
	}
	measurements := []*dparetov1.Measurement{trial.GetFinalMeasurement()}
	if r.Compiled.Checkpoints() && !r.finalOnly {
		measurements = study.WithFinal(trial)
	}
	for _, m := range measurements {
		r.add(trial, point, m)
	}
	r.Measurements[len(r.Measurements)-1].last = true
	return nil
}

// add adds a measurement of a trial. point is the trial's configuration.
func (r *Results) add(trial *dparetov1.Trial, point space.Point, m *dparetov1.Measurement) {
	evaluation := r.Compiled.Evaluation(point, m)
	evaluation.Run = trial.GetNumber()
	key := evaluation.Point.Key()
	c, ok := r.byPoint[key]
	if !ok {
		c = len(r.Configurations)
		r.byPoint[key] = c
		r.Configurations = append(r.Configurations, Configuration{Point: evaluation.Point})
	}
	r.Configurations[c].Measurements = append(r.Configurations[c].Measurements, len(r.Measurements))
	r.Configurations[c].runs += evaluation.Runs
	r.Measurements = append(r.Measurements, Measured{trial: trial, Measurement: m, Evaluation: evaluation, Configuration: c})
}

// values returns the objective values of every configuration that decide a measured front of some
// kind. They are NaN where measurements violate a constraint.
func (r *Results) values(kind dparetov1.FrontKind) [][]float64 {
	values := make([][]float64, len(r.Configurations))
	for i := range r.Configurations {
		values[i] = r.value(r.Configurations[i].Measurements, kind)
	}
	return values
}

// value returns the objective values of a configuration from one or more of its measurements.
func (r *Results) value(measurements []int, kind dparetov1.FrontKind) []float64 {
	if !r.allowed(measurements) {
		return slices.Repeat([]float64{math.NaN()}, len(r.Compiled.Problem.Objectives))
	}
	statistic := statisticOf(kind)
	pooled := r.Compiled.ObjectiveValues(r.Measurements[measurements[0]].Measurement, statistic)
	runs := float64(r.Measurements[measurements[0]].Evaluation.Runs)
	for _, k := range measurements[1:] {
		m := &r.Measurements[k]
		more := float64(m.Evaluation.Runs)
		runs += more
		for j, v := range r.Compiled.ObjectiveValues(m.Measurement, statistic) {
			o := &r.Compiled.Problem.Objectives[j]
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

// statisticOf returns the statistic of a configuration's runs that decides a kind of front.
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

// allowed reports whether the mean of measurements meets the study's constraints. A missing value
// does not.
func (r *Results) allowed(measurements []int) bool {
	sums, runs := make([]float64, len(r.Compiled.Problem.Constraints)), 0.0
	for _, k := range measurements {
		m := &r.Measurements[k]
		weight := float64(m.Evaluation.Runs)
		for i, v := range r.Compiled.ConstraintValues(m.Measurement) {
			sums[i] += weight * v
		}
		runs += weight
	}
	for i, sum := range sums {
		mean := sum / runs
		if c := &r.Compiled.Problem.Constraints[i]; !c.Holds(mean) || math.IsInf(mean, 0) {
			return false
		}
	}
	return true
}

// describe adds the statistics of a configuration's runs to the value of measured objective j.
func (r *Results) describe(value *dparetov1.FrontValue, c *Configuration, j int) {
	value.Observed = &r.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_OBSERVED)[j]
	if se := r.standardError(c, j, value.GetObserved()); !math.IsNaN(se) {
		value.StandardError = &se
	}
	objective := r.Compiled.Objectives()[j]
	for _, k := range c.Measurements {
		m := &r.Measurements[k]
		if metric := m.Measurement.GetMetrics()[objective]; metric.Min == nil {
			return // single runs were not reported
		}
	}
	value.Best = &r.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_BEST)[j]
	value.Worst = &r.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_WORST)[j]
}

// standardError returns the standard error of the mean of objective j over all runs of a
// configuration, from the sums of squares within and between measurements. It is NaN if unknown.
func (r *Results) standardError(c *Configuration, j int, mean float64) float64 {
	if len(c.Measurements) == 1 {
		return r.Measurements[c.Measurements[0]].Evaluation.StdErrors[j]
	}
	squares := 0.0
	for _, k := range c.Measurements {
		e := &r.Measurements[k].Evaluation
		n := float64(e.Runs)
		if e.Runs > 1 {
			squares += e.StdErrors[j] * e.StdErrors[j] * n * (n - 1)
		}
		squares += n * (e.Values[j] - mean) * (e.Values[j] - mean)
	}
	n := float64(c.runs)
	return math.Sqrt(squares / (n - 1) / n)
}

// Cost returns objective values as costs, with maximised objectives negated.
func (r *Results) Cost(values []float64) []float64 {
	costs := slices.Clone(values)
	for i := range costs {
		if r.Compiled.Problem.Objectives[i].Goal == suggest.Maximize {
			costs[i] = -costs[i]
		}
	}
	return costs
}

// costs returns the costs of many configurations.
func (r *Results) costs(values [][]float64) [][]float64 {
	costs := make([][]float64, len(values))
	for i, v := range values {
		costs[i] = r.Cost(v)
	}
	return costs
}

// reference returns the reference values as costs.
func (r *Results) reference() []float64 {
	reference := make([]float64, len(r.Compiled.Problem.Objectives))
	for i := range reference {
		reference[i] = r.Compiled.Problem.Objectives[i].Reference
	}
	return r.Cost(reference)
}
