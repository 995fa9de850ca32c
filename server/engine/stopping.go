package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/earlystop"
	"github.com/dpareto/dpareto/suggest/model"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/yield"
	"github.com/dpareto/dpareto/suggest"
)

// Sizes of the model that tells which runs to stop: checkpoints of one run say little
// beyond a few of them.
const (
	stopCheckpoints  = 6
	stopObservations = 600
)

// maxFound bounds the last useful steps that wait for a transaction: more than calls of one study
// compute at the same time.
const maxFound = 256

// stopping keeps what is known of the runs of a study that may be stopped early.
type stopping struct {
	mu     sync.Mutex
	found  map[int64]int64   // last useful steps that no transaction has asked for yet
	useful map[int64]int64   // the last useful step, by the number of the trial, which is open
	judged map[int64]verdict // by the number of the trial

	fitting sync.Mutex // guards what follows, and is held during a fit
	key     [2]int64   // trials completed and successful when the model was fitted
	model   *model.Model
}

// verdict is what the model says of a run.
type verdict struct {
	attempt  int32 // of the trial
	busy     bool  // it is being judged
	reached  int64 // the step at which it was judged last
	hopeless bool
}

// stopsEarly reports whether runs of a study may be stopped.
func stopsEarly(compiled *spec.Study) bool {
	return learnsFromCheckpoints(compiled) && !compiled.Spec.GetDisableEarlyStopping()
}

// ShouldStop implements Stopper: a run is of no further use when it has passed the last step at
// which it can be on a front, or when the model has given it up.
func (e *Engine) ShouldStop(cached *study.Cached, trial *dparetov1.Trial, step int64) (reason string, later func(context.Context) error) {
	compiled := cached.Compiled
	if !stopsEarly(compiled) || trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
		return "", nil
	}
	st := &e.knowledge(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	if v := st.judged[trial.GetNumber()]; v.hopeless && v.attempt == trial.GetAttempt() {
		reason = "the model expects that no further state of the run adds to the front"
	}
	if step == 0 {
		return reason, nil
	}
	last, known := st.lastUseful(trial.GetNumber())
	if !known {
		return "", func(context.Context) error { return st.findUseful(compiled, trial) }
	}
	parameter := compiled.Spec.GetCheckpointParameter()
	if step >= last && step < trial.GetParameters()[parameter].GetIntValue() {
		reason = fmt.Sprintf("no state of the run with %s above %d is better than the reference in every computed objective", parameter, last)
		if last == 0 {
			reason = "no state of the run is better than the reference in every computed objective"
		}
	}
	return reason, nil
}

// lastUseful returns the last useful step of a trial, if it is known. The caller holds st.mu, and
// is in a transaction that found the trial open: forget follows when it ends.
func (st *stopping) lastUseful(number int64) (last int64, known bool) {
	if last, known = st.useful[number]; known {
		return last, true
	}
	if last, known = st.found[number]; !known {
		return 0, false
	}
	delete(st.found, number)
	if st.useful == nil {
		st.useful = make(map[int64]int64)
	}
	st.useful[number] = last
	return last, true
}

// findUseful finds the last step at which the run of a trial can be on a front. It takes as long
// as exact values of the known objectives do, once for every trial. When it is done the trial may
// have ended: what is found waits, among a few, for a transaction that finds the trial open.
func (st *stopping) findUseful(compiled *spec.Study, trial *dparetov1.Trial) error {
	point, err := study.PointOf(compiled, trial)
	if err != nil {
		return err
	}
	last := compiled.Problem.LastUseful(point)
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.found == nil || len(st.found) == maxFound {
		st.found = make(map[int64]int64)
	}
	st.found[trial.GetNumber()] = last
	return nil
}

// judgeAfter is the factor by which a run must have grown since it was judged before it
// is judged again: a judgement costs more than an epoch of a fast trainer, and one epoch
// changes little.
const judgeAfter = 1.25

// judge has the model look at a run that was just measured, in the background: its
// verdict goes out with the next answer. A run that is being judged is not judged again
// at the same time.
func (e *Engine) judge(cached *study.Cached, of *dparetov1.Study, trial *dparetov1.Trial) {
	id := strings.TrimPrefix(of.GetName(), resource.StudyName(""))
	v := verdict{attempt: trial.GetAttempt(), busy: true}
	st := &e.knowledge(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	last, known := st.useful[trial.GetNumber()]
	if !known {
		return // it is not stopped early
	}
	reached := study.LatestStep(trial)
	before := st.judged[trial.GetNumber()]
	if before.busy || before.attempt == v.attempt && float64(reached) < judgeAfter*float64(before.reached) {
		return
	}
	v.reached = reached
	if st.judged == nil {
		st.judged = make(map[int64]verdict)
	}
	st.judged[trial.GetNumber()] = v
	ctx := e.background.Context()
	e.background.Go(func() {
		v.busy = false
		defer func() {
			st.mu.Lock()
			defer st.mu.Unlock()
			if _, ok := st.judged[trial.GetNumber()]; ok { // the trial is not complete
				st.judged[trial.GetNumber()] = v
			}
		}()
		var hopeless bool
		var err error
		yield.Run(func() { hopeless, err = e.isHopeless(ctx, id, of.GetUid(), trial, last) })
		if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrNoData) {
			e.logger.WarnContext(ctx, "cannot tell whether a run is hopeless", "trial", trial.GetName(), "error", err)
		}
		v.hopeless = err == nil && hopeless
	})
}

// forget drops what is known of a trial that is complete.
func (st *stopping) forget(number int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.useful, number)
	delete(st.judged, number)
}

// isHopeless reports whether a run cannot add to the front any more, by the model of the
// completed trials and its own measurements. There is none during the initial trials.
func (e *Engine) isHopeless(ctx context.Context, id, uid string, trial *dparetov1.Trial, last int64) (bool, error) {
	from, err := e.snapshot(ctx, id, uid)
	if err != nil {
		return false, err
	}
	if from.record.GetStudy().GetTrialCounts().GetSucceeded() < int64(from.Compiled.InitialTrials()) {
		return false, nil
	}
	m, err := from.known.stopping.fit(ctx, from, e.ModelOptions(from.record.GetStudy()))
	if err != nil {
		return false, err
	}
	point, err := study.PointOf(from.Compiled, trial)
	if err != nil {
		return false, err
	}
	var run []suggest.Evaluation
	for _, m := range trial.GetMeasurements() {
		run = append(run, from.Compiled.Evaluation(point, m))
	}
	reached := trial.GetMeasurements()[len(trial.GetMeasurements())-1].GetStep()
	return earlystop.IsFutile(m, run, point, reached, last)
}

// fit returns the model of the completed trials, from an earlier call if none was
// completed since.
func (st *stopping) fit(ctx context.Context, from *Snapshot, o model.Options) (*model.Model, error) {
	key := settledKey(from.record)
	st.fitting.Lock()
	defer st.fitting.Unlock()
	if st.model != nil && st.key == key {
		return st.model, nil
	}
	history := &suggest.History{Evaluations: thin(from.History.Evaluations, stopObservations, stopCheckpoints), Infeasible: from.History.Infeasible}
	m, err := model.Fit(ctx, from.Compiled.Problem, history, o)
	if err != nil {
		return nil, err
	}
	st.key, st.model = key, m
	return m, nil
}

// settledKey changes whenever the completed trials do: none ever changes, but it can be
// deleted.
func settledKey(record *storev1.StudyRecord) [2]int64 {
	counts := record.GetStudy().GetTrialCounts()
	return [2]int64{record.GetCompletedTrials(), counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed()}
}
