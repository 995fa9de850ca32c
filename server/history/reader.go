package history

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

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

// Reader reads the trials of one study again and again. It is not safe for concurrent use.
type Reader struct {
	// Compiled says which points and evaluations the trials are. It belongs to the study itself, or
	// to a study for which this one is a prior study.
	Compiled *spec.Study
	// Values are the values of parameters that the trials lack, by id.
	Values map[string]*dparetov1.Value
	// OtherSteps says that steps count another checkpoint parameter than the one of Compiled. Then
	// only final measurements are read, as complete runs.
	OtherSteps bool

	trials    Trials // but for Pending; append-only: views share it
	points    map[string]int
	open      map[int64]space.Point // by number
	revision  int64                 // of the study at the last view; 0 if there was none
	completed int64                 // trials completed until then, deleted ones included
	settled   int64                 // completed trials that were not deleted
}

// Size returns the number of measurements that the reader keeps.
func (r *Reader) Size() int { return len(r.trials.Evaluations) }

// Read returns the trials as of a view, which must not be older than the view of an earlier call.
// record is the study's, from the same view.
func (r *Reader) Read(ctx context.Context, tx *store.ReadTx, record *storev1.StudyRecord) (Trials, error) {
	if err := r.update(ctx, tx, record); err != nil {
		r.forget()
		return Trials{}, err
	}
	r.revision, r.completed = record.GetStudy().GetRevision(), record.GetCompletedTrials()
	// Clip: a caller that appends must not write to shared memory.
	out := Trials{
		Evaluations:  slices.Clip(r.trials.Evaluations),
		Measurements: slices.Clip(r.trials.Measurements),
		Infeasible:   slices.Clip(r.trials.Infeasible),
		Seeded:       r.trials.Seeded,
	}
	for _, number := range slices.Sorted(maps.Keys(r.open)) {
		out.Pending = append(out.Pending, r.open[number])
	}
	return out, nil
}

// forget drops all trials read.
func (r *Reader) forget() {
	*r = Reader{Compiled: r.Compiled, Values: r.Values, OtherSteps: r.OtherSteps}
}

// update reads what has changed since the last view, or everything if that is not enough.
func (r *Reader) update(ctx context.Context, tx *store.ReadTx, record *storev1.StudyRecord) error {
	id := strings.TrimPrefix(record.GetStudy().GetName(), resource.StudyName(""))
	switch r.revision {
	case record.GetStudy().GetRevision():
		return nil
	case 0:
	default:
		deleted, err := r.readChanges(ctx, tx, id)
		if err != nil || !deleted && r.agrees(record) {
			return err
		}
		r.forget()
	}
	if err := r.readAll(ctx, tx, id); err != nil {
		return err
	}
	if !r.agrees(record) {
		return fmt.Errorf("study %s has %d completed and %d open trials, but its counts say %v", id, r.settled, len(r.open), record.GetStudy().GetTrialCounts())
	}
	return nil
}

// agrees reports whether as many trials were read as a study has.
func (r *Reader) agrees(record *storev1.StudyRecord) bool {
	counts := record.GetStudy().GetTrialCounts()
	return r.settled == study.SettledTrials(counts) && int64(len(r.open)) == study.OpenTrials(counts)
}

// readAll reads all trials.
func (r *Reader) readAll(ctx context.Context, tx *store.ReadTx, id string) error {
	r.points, r.open = make(map[string]int), make(map[int64]space.Point)
	var completed []completion
	err := tx.Trials(id, 0, func(t *storev1.TrialRecord) (bool, error) {
		err := r.look(t, &completed)
		return ctx.Err() == nil, cmp.Or(err, ctx.Err())
	})
	if err != nil {
		return err
	}
	r.add(completed)
	return nil
}

// readChanges reads the trials that have changed since the last view. It stops at a completed trial
// that was deleted.
func (r *Reader) readChanges(ctx context.Context, tx *store.ReadTx, id string) (deleted bool, err error) {
	var completed []completion
	err = tx.Changes(id, r.revision, func(_ int64, change *storev1.RevisionRecord) (bool, error) {
		if number := change.GetDeletedTrial(); number > 0 {
			_, wasOpen := r.open[number]
			delete(r.open, number)
			deleted = deleted || !wasOpen
		}
		if deleted || change.GetTrial() == 0 {
			return !deleted, ctx.Err()
		}
		t, err := tx.BareTrial(id, change.GetTrial())
		if err != nil {
			return false, err
		}
		err = r.look(t, &completed)
		return true, cmp.Or(err, ctx.Err())
	})
	if err == nil && !deleted {
		r.add(completed)
	}
	return deleted, err
}

// completion is a trial that has completed since the last view.
type completion struct {
	order        int64 // among the completed trials
	infeasible   space.Point
	evaluations  []suggest.Evaluation
	measurements []Measurement
}

// look takes note of a trial that has changed. It appends trials that have completed.
func (r *Reader) look(record *storev1.TrialRecord, completed *[]completion) error {
	trial := record.GetTrial()
	number := trial.GetNumber()
	isOpen := !study.IsTerminal(trial.GetState())
	if _, known := r.open[number]; known && isOpen {
		return nil
	}
	succeeded := trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED
	r.trials.Seeded = r.trials.Seeded || succeeded && study.IsSeeded(trial)
	if !isOpen && r.revision > 0 && record.GetCompletionOrder() <= r.completed {
		return nil // its notes or labels have changed
	}
	if len(r.Values) > 0 {
		trial.Parameters = r.Compiled.Points.Complete(trial.GetParameters(), r.Values)
	}
	point, err := study.PointOf(r.Compiled, trial)
	if err != nil {
		return err
	}
	if isOpen {
		r.open[number] = point
		return nil
	}
	delete(r.open, number)
	c := completion{order: record.GetCompletionOrder()}
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		err = r.measure(&c, point, trial)
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		c.infeasible = point
	default: // failed: it says nothing about its configuration
	}
	*completed = append(*completed, c)
	return err
}

// measure sets the measurements of a successful trial in step order. The final one need not be the
// last: a worker may choose the best.
func (r *Reader) measure(c *completion, point space.Point, trial *dparetov1.Trial) error {
	final := trial.GetFinalMeasurement()
	measurements := []*dparetov1.Measurement{final}
	switch {
	case r.OtherSteps:
		final.Step = 0
	case r.Compiled.Points.Checkpoints():
		measurements = study.WithFinal(trial)
	}
	for i, message := range measurements {
		m := Measurement{Trial: trial.GetNumber(), Step: message.GetStep(), Final: message == final, Last: i == len(measurements)-1}
		mean := r.Compiled.Metrics.ObjectiveValues(message, spec.Mean)
		best, worst := r.Compiled.Metrics.ObjectiveValues(message, spec.Best), r.Compiled.Metrics.ObjectiveValues(message, spec.Worst)
		if !slices.Equal(best, mean) || !slices.Equal(worst, mean) {
			m.best, m.worst = best, worst
		}
		var err error
		if m.encoded, err = proto.Marshal(message); err != nil {
			return err
		}
		e := r.Compiled.Metrics.Evaluation(point, message)
		e.Run = trial.GetNumber()
		c.evaluations, c.measurements = append(c.evaluations, e), append(c.measurements, m)
	}
	return nil
}

// add adds trials in the order in which they completed.
func (r *Reader) add(completed []completion) {
	slices.SortFunc(completed, func(a, b completion) int { return cmp.Compare(a.order, b.order) })
	r.settled += int64(len(completed))
	for _, c := range completed {
		if c.infeasible != nil {
			r.trials.Infeasible = append(r.trials.Infeasible, c.infeasible)
		}
		for i, m := range c.measurements {
			m.Configuration = r.configuration(c.evaluations[i].Point)
			r.trials.Evaluations = append(r.trials.Evaluations, c.evaluations[i])
			r.trials.Measurements = append(r.trials.Measurements, m)
		}
	}
}

// configuration returns the index of a point among the distinct ones.
func (r *Reader) configuration(point space.Point) int {
	key := point.Key()
	c, ok := r.points[key]
	if !ok {
		c = len(r.points)
		r.points[key] = c
	}
	return c
}
