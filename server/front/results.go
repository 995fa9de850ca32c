package front

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"

	"google.golang.org/protobuf/proto"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Results are the measurements of a study at one revision, and what follows from them. Calls share all
// but Study: none of it may be modified.
type Results struct {
	Data
	fronts *Fronts
	Study  *dparetov1.Study
	cached *study.Cached
}

// Data are the measurements of a study.
type Data struct {
	id             string // of the study
	revision       int64
	finalOnly      bool // without intermediate measurements
	Compiled       *spec.Study
	problem        *suggest.Problem // that of Compiled, with the references that follow from the measurements
	Measurements   []Measured       // in the order in which trials completed, then by step
	Configurations []Configuration  // in the order of their first measurement
	byPoint        map[string]int   // index of a configuration by study.PointKey
	completed      int64            // number of trials completed so far, in any state
	succeeded      int64            // number of trials that have succeeded
	seeded         bool             // whether a run was seeded
}

// Measured is a measurement and its evaluation.
type Measured struct {
	Evaluation    suggest.Evaluation // with the checkpoint parameter set to the step
	Configuration int                // index in Results.Configurations
	trial         int64              // number
	Step          int64
	encoded       []byte    // the message, which takes many times the memory once it is decoded
	best, worst   []float64 // of its runs, by objective; nil if they equal the mean
	last          bool      // whether it is its trial's last
}

// Measurement decodes the measurement.
func (m *Measured) Measurement() *dparetov1.Measurement {
	message := new(dparetov1.Measurement)
	if err := proto.Unmarshal(m.encoded, message); err != nil {
		panic(err) // measuredAt has encoded it
	}
	return message
}

// values returns a statistic of the objectives.
func (m *Measured) values(statistic spec.Statistic, objectives int) []float64 {
	switch {
	case statistic == spec.Best && m.best != nil:
		return m.best
	case statistic == spec.Worst && m.worst != nil:
		return m.worst
	default:
		return m.Evaluation.Values[:objectives]
	}
}

// Configuration is a configuration and its measurements, from one or more trials.
type Configuration struct {
	Point        space.Point
	Measurements []int // indices in Results.Measurements
	runs         int
}

// errOtherSpec says that a study has another spec since it was found.
var errOtherSpec = errors.New("the spec of the study has changed")

// Results returns the measurements of a study. With finalOnly it leaves intermediate ones out. It
// returns NOT_FOUND if the study does not exist.
func (f *Fronts) Results(ctx context.Context, id string, finalOnly bool) (*Results, error) {
	for {
		r, err := f.results(ctx, id, finalOnly)
		if !errors.Is(err, errOtherSpec) {
			return r, err
		}
	}
}

// results is Results, but fails with errOtherSpec if the study's spec changes meanwhile.
func (f *Fronts) results(ctx context.Context, id string, finalOnly bool) (*Results, error) {
	r := &Results{fronts: f, Data: Data{id: id, finalOnly: finalOnly}}
	find := func(tx *store.ReadTx) (completed int64, err error) {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return 0, err
		}
		r.Study = f.studies.Present(record)
		r.cached, err = f.studies.Get(record)
		return record.GetCompletedTrials(), err
	}
	err := f.store.View(ctx, func(tx *store.ReadTx) error {
		_, err := find(tx)
		return err
	})
	if err != nil {
		return nil, err
	}
	cached, fits := r.cached, r.kept()
	// Views begin under the lock, so no view is older than what is kept.
	fits.reading.Lock()
	defer fits.reading.Unlock()
	err = f.store.View(ctx, func(tx *store.ReadTx) error {
		completed, err := find(tx)
		if err != nil {
			return err
		}
		if r.cached != cached {
			return errOtherSpec
		}
		r.Compiled, r.revision, r.completed = cached.Compiled, r.Study.GetRevision(), completed
		r.succeeded = r.Study.GetTrialCounts().GetSucceeded()
		if fits.results == nil {
			return r.readAll(ctx, tx)
		}
		return r.read(ctx, tx, &fits.results.Data)
	})
	if err != nil {
		return nil, err
	}
	r.problem = r.Compiled.Problem.Inferred(r.history(len(r.Measurements)))
	fits.results = r
	f.memory.keep(fits, len(r.Measurements))
	return r, nil
}

// read adds the measurements since an earlier view. It reads all if something that was read earlier has
// changed.
func (d *Data) read(ctx context.Context, tx *store.ReadTx, before *Data) error {
	d.Measurements, d.Configurations, d.byPoint, d.seeded = before.Measurements, before.Configurations, before.byPoint, before.seeded
	if d.revision == before.revision {
		return nil
	}
	added, ok, err := d.changes(ctx, tx, before)
	if err != nil {
		return err
	}
	if !ok {
		return d.readAll(ctx, tx)
	}
	// What was appended to lies beyond what the earlier results see.
	d.Configurations, d.byPoint = slices.Clone(d.Configurations), maps.Clone(d.byPoint)
	d.add(added)
	return nil
}

// readAll sets the measurements as of a view.
func (d *Data) readAll(ctx context.Context, tx *store.ReadTx) error {
	var all []run
	err := tx.Trials(d.id, 0, func(t *storev1.TrialRecord) (bool, error) {
		if t.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			succeeded, err := d.runOf(t)
			if err != nil {
				return false, err
			}
			all = append(all, succeeded)
		}
		return true, ctx.Err()
	})
	if err != nil {
		return err
	}
	d.Measurements, d.Configurations, d.byPoint, d.seeded = nil, nil, make(map[string]int), false
	d.add(all)
	return nil
}

// changes returns the trials that have succeeded since an earlier view. ok is false if a trial was
// deleted, or changed after it had succeeded.
func (d *Data) changes(ctx context.Context, tx *store.ReadTx, before *Data) (added []run, ok bool, err error) {
	ok = true
	err = tx.Changes(d.id, before.revision, func(_ int64, change *storev1.RevisionRecord) (bool, error) {
		if change.GetDeletedTrial() > 0 {
			ok = false
		}
		if change.GetTrial() == 0 {
			return ok, ctx.Err()
		}
		t, err := tx.BareTrial(d.id, change.GetTrial())
		switch {
		case err != nil:
			return false, err
		case t.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		case t.GetCompletionOrder() <= before.completed:
			ok = false
		default:
			succeeded, err := d.runOf(t)
			if err != nil {
				return false, err
			}
			added = append(added, succeeded)
		}
		return ok, ctx.Err()
	})
	if before.succeeded+int64(len(added)) != d.succeeded {
		ok = false // the index has lost a change
	}
	return added, ok, err
}

// run is a trial that has succeeded.
type run struct {
	order        int64      // among the completed trials
	measurements []Measured // in step order, without configurations
	seeded       bool
}

// runOf returns the measurements of a trial: the final one, and, if checkpoints are evaluations, the
// intermediate ones.
func (d *Data) runOf(record *storev1.TrialRecord) (run, error) {
	trial := record.GetTrial()
	point, err := study.PointOf(d.Compiled, trial)
	if err != nil {
		return run{}, err
	}
	out := run{order: record.GetCompletionOrder(), seeded: study.IsSeeded(trial)}
	measurements := []*dparetov1.Measurement{trial.GetFinalMeasurement()}
	if d.Compiled.Checkpoints() && !d.finalOnly {
		measurements = study.WithFinal(trial)
	}
	for _, m := range measurements {
		measured, err := d.measuredAt(trial.GetNumber(), point, m)
		if err != nil {
			return run{}, err
		}
		out.measurements = append(out.measurements, measured)
	}
	out.measurements[len(out.measurements)-1].last = true
	return out, nil
}

// measuredAt returns a measurement of a trial at a point.
func (d *Data) measuredAt(trial int64, point space.Point, m *dparetov1.Measurement) (measured Measured, err error) {
	measured = Measured{Evaluation: d.Compiled.Evaluation(point, m), trial: trial, Step: m.GetStep()}
	measured.Evaluation.Run = trial
	mean := d.Compiled.ObjectiveValues(m, spec.Mean)
	best, worst := d.Compiled.ObjectiveValues(m, spec.Best), d.Compiled.ObjectiveValues(m, spec.Worst)
	if !slices.Equal(best, mean) || !slices.Equal(worst, mean) {
		measured.best, measured.worst = best, worst
	}
	measured.encoded, err = proto.Marshal(m)
	return measured, err
}

// add adds trials in the order in which they completed.
func (d *Data) add(runs []run) {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.order, b.order) })
	for i := range runs {
		d.seeded = d.seeded || runs[i].seeded
		for _, m := range runs[i].measurements {
			d.addMeasured(m)
		}
	}
}

// addMeasured adds a measurement to its configuration.
func (d *Data) addMeasured(m Measured) {
	key := m.Evaluation.Point.Key()
	c, ok := d.byPoint[key]
	if !ok {
		c = len(d.Configurations)
		d.byPoint[key] = c
		d.Configurations = append(d.Configurations, Configuration{Point: m.Evaluation.Point})
	}
	m.Configuration = c
	d.Configurations[c].Measurements = append(d.Configurations[c].Measurements, len(d.Measurements))
	d.Configurations[c].runs += m.Evaluation.Runs
	d.Measurements = append(d.Measurements, m)
}

// history returns the first n measurements for models.
func (d *Data) history(n int) *suggest.History {
	h := &suggest.History{Evaluations: make([]suggest.Evaluation, n)}
	for i := range h.Evaluations {
		h.Evaluations[i] = d.Measurements[i].Evaluation
	}
	return h
}

// TrialOf returns the name of a measurement's trial.
func (d *Data) TrialOf(m *Measured) string { return resource.TrialName(d.id, m.trial) }

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
	pooled := slices.Clone(d.Measurements[measurements[0]].values(statistic, objectives))
	runs := float64(d.Measurements[measurements[0]].Evaluation.Runs)
	for _, k := range measurements[1:] {
		m := &d.Measurements[k]
		more := float64(m.Evaluation.Runs)
		runs += more
		for j, v := range m.values(statistic, objectives) {
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
		m := &d.Measurements[k]
		weight := float64(m.Evaluation.Runs)
		for i, v := range m.Evaluation.Values[len(d.Compiled.Problem.Objectives):] {
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
		if metric := d.Measurements[k].Measurement().GetMetrics()[objective]; metric.Min == nil {
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
		return d.Measurements[c.Measurements[0]].Evaluation.StdErrors[j]
	}
	squares := 0.0
	for _, k := range c.Measurements {
		e := &d.Measurements[k].Evaluation
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
func (d *Data) Cost(values []float64) []float64 {
	costs := slices.Clone(values)
	for i := range costs {
		if d.Compiled.Problem.Objectives[i].Goal == suggest.Maximize {
			costs[i] = -costs[i]
		}
	}
	return costs
}

// costs returns the costs of many configurations.
func (d *Data) costs(values [][]float64) [][]float64 {
	costs := make([][]float64, len(values))
	for i, v := range values {
		costs[i] = d.Cost(v)
	}
	return costs
}

// constants returns the study's constant points as costs.
func (d *Data) constants() [][]float64 { return d.costs(d.Compiled.Problem.Constants) }

// references returns the reference values by metric id.
func (d *Data) references() map[string]float64 {
	all := make(map[string]float64)
	for i, objective := range d.Compiled.Objectives() {
		all[objective] = d.problem.Objectives[i].Reference
	}
	return all
}

// reference returns the reference values as costs.
func (d *Data) reference() []float64 {
	reference := make([]float64, len(d.Compiled.Problem.Objectives))
	for i := range reference {
		reference[i] = d.problem.Objectives[i].Reference
	}
	return d.Cost(reference)
}
