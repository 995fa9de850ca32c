package front

import (
	"context"
	"math"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Results are the measurements of a study at one revision, and what follows from them. Calls share all
// but Study: none of it may be modified.
type Results struct {
	*Data
	fronts *Fronts
	Study  *dparetov1.Study
	cached *study.Cached
}

// Data are the measurements of a study.
type Data struct {
	history.Trials
	id             string // of the study
	revision       int64
	finalOnly      bool // without intermediate measurements
	Compiled       *spec.Study
	problem        *suggest.Problem // the problem of Compiled, with the references that follow from the measurements
	Configurations []Configuration  // in the order of their first measurement
	completed      int64            // number of trials completed so far, in any state
}

// Configuration is a configuration and its measurements, from one or more trials.
type Configuration struct {
	Point        space.Point
	Measurements []int // indices in Data.Measurements
	runs         int
}

// Results returns the measurements of a study. With finalOnly it leaves intermediate ones out. It
// returns NOT_FOUND if the study does not exist.
func (f *Fronts) Results(ctx context.Context, id string, finalOnly bool) (*Results, error) {
	h, err := f.histories.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	r := &Results{fronts: f, Study: f.studies.Present(h.Record), cached: h.Cached}
	fits := r.fits(finalOnly)
	fits.mu.Lock()
	defer fits.mu.Unlock()
	if r.Data = fits.data; r.Data == nil || r.revision != r.Study.GetRevision() {
		r.Data = newData(id, h, finalOnly)
		fits.data = r.Data
	}
	return r, nil
}

// newData groups the measurements of a study by configuration.
func newData(id string, h *history.History, finalOnly bool) *Data {
	d := &Data{
		Trials: h.Trials, id: id, revision: h.Record.GetStudy().GetRevision(), finalOnly: finalOnly,
		Compiled: h.Cached.Compiled, completed: h.Record.GetCompletedTrials(),
	}
	if finalOnly && d.Compiled.Points.Checkpoints() {
		d.Evaluations, d.Measurements = nil, nil
		for i, m := range h.Measurements {
			if m.Final {
				m.Last = true
				d.Evaluations, d.Measurements = append(d.Evaluations, h.Evaluations[i]), append(d.Measurements, m)
			}
		}
	}
	index := make(map[int]int) // of a configuration, by its index in the history
	for i := range d.Measurements {
		m, e := &d.Measurements[i], &d.Evaluations[i]
		c, ok := index[m.Configuration]
		if !ok {
			c = len(d.Configurations)
			index[m.Configuration] = c
			d.Configurations = append(d.Configurations, Configuration{Point: e.Point})
		}
		if m.Configuration != c { // only where d.Measurements is a copy
			m.Configuration = c
		}
		d.Configurations[c].Measurements = append(d.Configurations[c].Measurements, i)
		d.Configurations[c].runs += e.Runs
	}
	d.problem = d.Compiled.Problem.Inferred(d.history(len(d.Evaluations)))
	return d
}

// history returns the first n measurements for models.
func (d *Data) history(n int) *suggest.History {
	return &suggest.History{Evaluations: d.Evaluations[:n:n]}
}

// TrialOf returns the name of a measurement's trial.
func (d *Data) TrialOf(m *history.Measurement) string { return resource.TrialName(d.id, m.Trial) }

// values returns the objective values of every configuration that decide a measured front of some
// kind. They are NaN where measurements violate a constraint.
func (d *Data) values(kind dparetov1.FrontKind) [][]float64 {
	values := make([][]float64, len(d.Configurations))
	for i := range d.Configurations {
		values[i] = d.value(d.Configurations[i].Measurements, kind)
	}
	return values
}

// value returns the objective values of a configuration from one or more of its measurements.
func (d *Data) value(measurements []int, kind dparetov1.FrontKind) []float64 {
	if !d.allowed(measurements) {
		return slices.Repeat([]float64{math.NaN()}, len(d.Compiled.Problem.Objectives))
	}
	statistic, objectives := statisticOf(kind), len(d.Compiled.Problem.Objectives)
	pooled := slices.Clone(d.Values(measurements[0], statistic, objectives))
	runs := float64(d.Evaluations[measurements[0]].Runs)
	for _, k := range measurements[1:] {
		more := float64(d.Evaluations[k].Runs)
		runs += more
		for j, v := range d.Values(k, statistic, objectives) {
			o := &d.Compiled.Problem.Objectives[j]
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
func (d *Data) allowed(measurements []int) bool {
	sums, runs := make([]float64, len(d.Compiled.Problem.Constraints)), 0.0
	for _, k := range measurements {
		weight := float64(d.Evaluations[k].Runs)
		for i, v := range d.Evaluations[k].Values[len(d.Compiled.Problem.Objectives):] {
			sums[i] += weight * v
		}
		runs += weight
	}
	for i, sum := range sums {
		mean := sum / runs
		if c := &d.Compiled.Problem.Constraints[i]; !c.Holds(mean) || math.IsInf(mean, 0) {
			return false
		}
	}
	return true
}

// describe adds the statistics of a configuration's runs to the value of measured objective j.
func (d *Data) describe(value *dparetov1.FrontValue, c *Configuration, j int) {
	value.Observed = &d.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_OBSERVED)[j]
	if se := d.standardError(c, j, value.GetObserved()); !math.IsNaN(se) {
		value.StandardError = &se
	}
	objective := d.Compiled.Objectives()[j]
	for _, k := range c.Measurements {
		if metric := d.Measurements[k].Message().GetMetrics()[objective]; metric.Min == nil {
			return // single runs were not reported
		}
	}
	value.Best = &d.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_BEST)[j]
	value.Worst = &d.value(c.Measurements, dparetov1.FrontKind_FRONT_KIND_WORST)[j]
}

// standardError returns the standard error of the mean of objective j over all runs of a
// configuration, from the sums of squares within and between measurements. It is NaN if unknown.
func (d *Data) standardError(c *Configuration, j int, mean float64) float64 {
	if len(c.Measurements) == 1 {
		return d.Evaluations[c.Measurements[0]].StdErrors[j]
	}
	squares := 0.0
	for _, k := range c.Measurements {
		e := &d.Evaluations[k]
		n := float64(e.Runs)
		if e.Runs > 1 {
			squares += e.StdErrors[j] * e.StdErrors[j] * n * (n - 1)
		}
		squares += n * (e.Values[j] - mean) * (e.Values[j] - mean)
	}
	n := float64(c.runs)
	return math.Sqrt(squares / (n - 1) / n)
}

// Cost returns objective values as costs.
func (d *Data) Cost(values []float64) []float64 { return d.problem.Costs(values) }

// costs returns the costs of many configurations.
func (d *Data) costs(values [][]float64) [][]float64 {
	costs := make([][]float64, len(values))
	for i, v := range values {
		costs[i] = d.Cost(v)
	}
	return costs
}

// measuredHypervolume returns the hypervolume of a measured front.
func (d *Data) measuredHypervolume(kind dparetov1.FrontKind) float64 {
	return d.problem.Hypervolume(d.costs(d.values(kind)))
}

// references returns the reference values by metric id.
func (d *Data) references() map[string]float64 {
	all := make(map[string]float64)
	for i, objective := range d.Compiled.Objectives() {
		all[objective] = d.problem.Objectives[i].Reference
	}
	return all
}
