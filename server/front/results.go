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

// Results are the measurements of a study at one revision. Calls share all but Study: none of it may
// be modified.
type Results struct {
	fronts         *Fronts
	id             string // of the study
	Study          *dparetov1.Study
	finalOnly      bool // without intermediate measurements
	cached         *study.Cached
	Compiled       *spec.Study
	Measurements   []Measured      // in the order in which trials completed, then by step
	Configurations []Configuration // in the order of their first measurement
	byPoint        map[string]int  // index of a configuration by study.PointKey
	completed      int64           // number of trials completed so far, in any state
	seeded         bool            // whether a run was seeded
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
	r := &Results{fronts: f, id: id, finalOnly: finalOnly}
	find := func(tx *store.ReadTx) (completed int64, err error) {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return 0, err
		}
		r.Study = f.studies.Present(record)
		r.cached, err = f.studies.Get(r.Study)
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
		r.Compiled = cached.Compiled
		return r.read(ctx, tx, fits.results, completed)
	})
	if err != nil {
		return nil, err
	}
	fits.results = r
	f.memory.keep(fits, len(r.Measurements))
	return r, nil
}

// read sets the measurements as of a view. It adds the new ones to those of an earlier view, or reads
// all if there is none, or if something that it has read has changed.
func (r *Results) read(ctx context.Context, tx *store.ReadTx, before *Results, completed int64) error {
	defer func() { r.completed = completed }()
	if before != nil {
		r.Measurements, r.Configurations, r.byPoint, r.seeded = before.Measurements, before.Configurations, before.byPoint, before.seeded
		if r.Study.GetRevision() == before.Study.GetRevision() {
			return nil
		}
		added, ok, err := r.changes(ctx, tx, before)
		if err != nil {
			return err
		}
		if ok {
			// What was appended to lies beyond what the earlier results see.
			r.Configurations, r.byPoint = slices.Clone(r.Configurations), maps.Clone(r.byPoint)
			r.add(added)
			return nil
		}
	}
	var all []run
	err := tx.Trials(r.id, 0, func(t *storev1.TrialRecord) (bool, error) {
		if t.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
			succeeded, err := r.runOf(t)
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
	r.Measurements, r.Configurations, r.byPoint, r.seeded = nil, nil, make(map[string]int), false
	r.add(all)
	return nil
}

// changes returns the trials that have succeeded since an earlier view. ok is false if a trial was
// deleted, or changed after it had succeeded.
func (r *Results) changes(ctx context.Context, tx *store.ReadTx, before *Results) (added []run, ok bool, err error) {
	ok = true
	err = tx.Changes(r.id, before.Study.GetRevision(), func(_ int64, change *storev1.RevisionRecord) (bool, error) {
		if change.GetDeletedTrial() > 0 {
			ok = false
		}
		if change.GetTrial() == 0 {
			return ok, ctx.Err()
		}
		t, err := tx.BareTrial(r.id, change.GetTrial())
		switch {
		case err != nil:
			return false, err
		case t.GetTrial().GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		case t.GetCompletionOrder() <= before.completed:
			ok = false
		default:
			succeeded, err := r.runOf(t)
			if err != nil {
				return false, err
			}
			added = append(added, succeeded)
		}
		return ok, ctx.Err()
	})
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
func (r *Results) runOf(record *storev1.TrialRecord) (run, error) {
	trial := record.GetTrial()
	point, err := study.PointOf(r.Compiled, trial)
	if err != nil {
		return run{}, err
	}
	out := run{order: record.GetCompletionOrder(), seeded: study.IsSeeded(trial)}
	measurements := []*dparetov1.Measurement{trial.GetFinalMeasurement()}
	if r.Compiled.Checkpoints() && !r.finalOnly {
		measurements = study.WithFinal(trial)
	}
	for _, m := range measurements {
		measured, err := r.measuredAt(trial.GetNumber(), point, m)
		if err != nil {
			return run{}, err
		}
		out.measurements = append(out.measurements, measured)
	}
	out.measurements[len(out.measurements)-1].last = true
	return out, nil
}

// measuredAt returns a measurement of a trial at a point.
func (r *Results) measuredAt(trial int64, point space.Point, m *dparetov1.Measurement) (measured Measured, err error) {
	measured = Measured{Evaluation: r.Compiled.Evaluation(point, m), trial: trial, Step: m.GetStep()}
	measured.Evaluation.Run = trial
	mean := r.Compiled.ObjectiveValues(m, spec.Mean)
	best, worst := r.Compiled.ObjectiveValues(m, spec.Best), r.Compiled.ObjectiveValues(m, spec.Worst)
	if !slices.Equal(best, mean) || !slices.Equal(worst, mean) {
		measured.best, measured.worst = best, worst
	}
	measured.encoded, err = proto.Marshal(m)
	return measured, err
}

// add adds trials in the order in which they completed.
func (r *Results) add(runs []run) {
	slices.SortFunc(runs, func(a, b run) int { return cmp.Compare(a.order, b.order) })
	for i := range runs {
		r.seeded = r.seeded || runs[i].seeded
		for _, m := range runs[i].measurements {
			r.addMeasured(m)
		}
	}
}

// addMeasured adds a measurement to its configuration.
func (r *Results) addMeasured(m Measured) {
	key := m.Evaluation.Point.Key()
	c, ok := r.byPoint[key]
	if !ok {
		c = len(r.Configurations)
		r.byPoint[key] = c
		r.Configurations = append(r.Configurations, Configuration{Point: m.Evaluation.Point})
	}
	m.Configuration = c
	r.Configurations[c].Measurements = append(r.Configurations[c].Measurements, len(r.Measurements))
	r.Configurations[c].runs += m.Evaluation.Runs
	r.Measurements = append(r.Measurements, m)
}

// TrialOf returns the name of a measurement's trial.
func (r *Results) TrialOf(m *Measured) string { return resource.TrialName(r.id, m.trial) }

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
	statistic, objectives := statisticOf(kind), len(r.Compiled.Problem.Objectives)
	pooled := slices.Clone(r.Measurements[measurements[0]].values(statistic, objectives))
	runs := float64(r.Measurements[measurements[0]].Evaluation.Runs)
	for _, k := range measurements[1:] {
		m := &r.Measurements[k]
		more := float64(m.Evaluation.Runs)
		runs += more
		for j, v := range m.values(statistic, objectives) {
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
		for i, v := range m.Evaluation.Values[len(r.Compiled.Problem.Objectives):] {
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
		if metric := r.Measurements[k].Measurement().GetMetrics()[objective]; metric.Min == nil {
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
