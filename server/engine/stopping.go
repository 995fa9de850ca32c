package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/earlystop"
	"github.com/dpareto/dpareto/suggest/model"
)

// maxFound bounds the steps in stopping.found. One study has fewer calls at a time.
const maxFound = 256

// maxOpen bounds the trials in stopping.useful and stopping.judged. Trials that end on another server stay
// there until all are forgotten.
const maxOpen = 4096

// stopping holds the state of running trials that may stop early.
type stopping struct {
	mu     sync.Mutex
	found  map[int64]int64   // last useful steps that no transaction has asked for yet, by trial number
	useful map[int64]int64   // last useful step, by number of an open trial
	judged map[int64]verdict // by trial number

	fitting sync.Mutex  // guards the fields below, and is held during a fit
	key     stoppingKey // of the history that the model was made of
	model   *model.Model
}

// stoppingKey changes when a trial of the study or of a prior study is completed or deleted.
type stoppingKey struct {
	settled [2]int64
	prior   string
}

// verdict is the model's judgement of a run.
type verdict struct {
	attempt     int32 // of the trial
	busy        bool  // a judgement is in progress
	reached     int64 // step of the last judgement
	unpromising bool
}

// stopsEarly reports whether runs of a study may stop early.
func stopsEarly(compiled *spec.Study) bool {
	return learnsFromCheckpoints(compiled) && !compiled.Spec.GetDisableEarlyStopping()
}

// ShouldStop implements study.Stopper. A run should stop past the last step at which it can be on
// the front, or if the model finds it unpromising.
func (e *Engine) ShouldStop(cached *study.Cached, trial *dparetov1.Trial, step int64) (reason string, later func(context.Context) error) {
	compiled := cached.Compiled
	if !stopsEarly(compiled) || trial.GetOrigin() != dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED {
		return "", nil
	}
	st := &e.cacheOf(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	if v := st.judged[trial.GetNumber()]; v.unpromising && v.attempt == trial.GetAttempt() {
		reason = "the model expects no later checkpoint of the run to extend the front"
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
		reason = fmt.Sprintf("no checkpoint with %s above %d is better than the reference in every computed objective", parameter, last)
		if last == 0 {
			reason = "no checkpoint of the run is better than the reference in every computed objective"
		}
	}
	return reason, nil
}

// lastUseful returns the last useful step of a trial, if it is known. The caller holds st.mu, in a
// transaction that found the trial open, so that forget follows.
func (st *stopping) lastUseful(number int64) (last int64, known bool) {
	if last, known = st.useful[number]; known {
		return last, true
	}
	if last, known = st.found[number]; !known {
		return 0, false
	}
	delete(st.found, number)
	if st.useful == nil || len(st.useful) == maxOpen {
		st.useful, st.judged = make(map[int64]int64), nil
	}
	st.useful[number] = last
	return last, true
}

// findUseful finds the last step at which a trial's run can be on the front. It computes exact
// values of the computed objectives, once for every trial. Meanwhile the trial may have ended, so
// the step goes to found until a transaction finds the trial open.
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

// leastJudging is the number of completed trials below which their model judges no run.
const leastJudging = 6

// judgeAfter is the factor by which a run must grow before it is judged again. A judgement costs
// more than an epoch of a fast trainer, and one epoch changes little.
const judgeAfter = 1.25

// judge lets the model judge a run with a new measurement, in the background, one judgement of a run
// at a time. The worker learns the verdict at its next call.
func (e *Engine) judge(cached *study.Cached, of *dparetov1.Study, run study.Progress) {
	trial := run.Trial
	id := resource.StudyID(of.GetName())
	v := verdict{attempt: trial.GetAttempt(), busy: true}
	st := &e.cacheOf(cached).stopping
	st.mu.Lock()
	defer st.mu.Unlock()
	last, known := st.useful[trial.GetNumber()]
	if !known {
		return // it never stops early
	}
	before := st.judged[trial.GetNumber()]
	if before.busy || before.attempt == v.attempt && float64(run.Step) < judgeAfter*float64(before.reached) {
		return
	}
	v.reached = run.Step
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
			if _, ok := st.judged[trial.GetNumber()]; ok { // the trial still runs
				st.judged[trial.GetNumber()] = v
			}
		}()
		var unpromising bool
		now, err := running(ctx, e.store, id, trial)
		if err == nil && now != nil {
			unpromising, err = e.isUnpromising(ctx, id, of.GetUid(), now, last)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, model.ErrNoData) {
			e.logger.WarnContext(ctx, "cannot tell whether a run is unpromising", "trial", trial.GetName(), "error", err)
		}
		v.unpromising = err == nil && unpromising
	})
}

// forget drops the state of a completed trial.
func (st *stopping) forget(number int64) {
	st.mu.Lock()
	defer st.mu.Unlock()
	delete(st.useful, number)
	delete(st.judged, number)
}

// running returns a trial whose run is judged with its measurements, nil if the attempt has ended.
func running(ctx context.Context, s *store.Store, id string, trial *dparetov1.Trial) (now *dparetov1.Trial, err error) {
	err = s.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Trial(id, trial.GetNumber())
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		if t := record.GetTrial(); t.GetLease() != nil && t.GetAttempt() == trial.GetAttempt() {
			now = t
		}
		return err
	})
	return now, err
}

// isUnpromising reports whether a run is not expected to extend the front, by the model of completed
// trials and the run's own measurements. No run is during the initial trials.
func (e *Engine) isUnpromising(ctx context.Context, id, uid string, trial *dparetov1.Trial, last int64) (bool, error) {
	from, err := e.snapshot(ctx, id, uid)
	if err != nil {
		return false, err
	}
	if from.record.GetStudy().GetTrialCounts().GetSucceeded() < int64(max(from.compiled.InitialTrials(), leastJudging)) {
		return false, nil
	}
	m, err := e.stoppingModel(ctx, from)
	if err != nil {
		return false, err
	}
	point, err := study.PointOf(from.compiled, trial)
	if err != nil {
		return false, err
	}
	var run []suggest.Evaluation
	for _, m := range trial.GetMeasurements() {
		run = append(run, from.compiled.Metrics.Evaluation(point, m))
	}
	reached := trial.GetMeasurements()[len(trial.GetMeasurements())-1].GetStep()
	var futile bool
	err = e.pool.Run(ctx, pool.Background, func(ctx context.Context) error {
		futile, err = earlystop.IsFutile(ctx, m, run, point, reached, last)
		return err
	})
	return futile, err
}

// stoppingModel returns the model of the completed trials. It makes one only if the trials have
// changed, and that needs no fit where the default designer has learned from the same trials: see [model.Cache].
// It waits for the pool with the lock held, and so outside of tasks.
func (e *Engine) stoppingModel(ctx context.Context, from *snapshot) (m *model.Model, err error) {
	st := &from.cache.stopping
	key := stoppingKey{settledKey(from.record), from.prior}
	st.fitting.Lock()
	defer st.fitting.Unlock()
	if st.model != nil && st.key == key {
		return st.model, nil
	}
	err = e.pool.Run(ctx, pool.Background, func(ctx context.Context) error {
		m, err = model.Fit(ctx, from.problem(), from.history, e.ModelOptions(from.record.GetStudy()))
		return err
	})
	if err != nil {
		return nil, err
	}
	st.key, st.model = key, m
	return m, nil
}

// settledKey changes whenever the set of completed trials does, also by a deletion.
func settledKey(record *storev1.StudyRecord) [2]int64 {
	return [2]int64{record.GetCompletedTrials(), study.SettledTrials(record.GetStudy().GetTrialCounts())}
}
