package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Snapshot is the input of a suggestion.
type Snapshot struct {
	record   *storev1.StudyRecord
	policy   study.Policy
	cached   *study.Cached
	Compiled *spec.Study // the spec that History fits
	known    *knowledge
	History  *suggest.History
	prior    string // identifies history.Prior
}

// Problem returns what designers solve, with the references that follow from the history.
func (s *Snapshot) Problem() *suggest.Problem { return s.Compiled.Problem.Inferred(s.History) }

// snapshot reads a study's history. It returns NOT_FOUND if the study was deleted, even if another
// study has its name now.
func (e *Engine) snapshot(ctx context.Context, id, uid string) (*Snapshot, error) {
	defer e.phases.phase(ctx, metrics.PhaseHistory)()
	for {
		out, err := e.Read(ctx, id, uid)
		if !errors.Is(err, errGrown) {
			return out, err
		}
	}
}

// Read is snapshot, but fails with errGrown if the spec changes meanwhile.
func (e *Engine) Read(ctx context.Context, id, uid string) (*Snapshot, error) {
	var cached *study.Cached
	err := e.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		cached, err = e.studies.Get(record)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &Snapshot{cached: cached, Compiled: cached.Compiled, known: e.knowledge(cached), policy: e.studies.Policy(cached.Compiled.Spec)}
	evaluations, err := e.readHistory(ctx, id, uid, out)
	if err != nil {
		return nil, err
	}
	if e.studies.Holds(uid, cached) {
		e.memory.keep(out.known, evaluations)
	}
	return out, nil
}

// errGrown says that a study's spec has changed since it was compiled, or that the study was imported anew.
var errGrown = errors.New("the space of the study has grown")

// readHistory sets the record and the history of a snapshot. It returns the number of evaluations in
// the study's caches.
func (e *Engine) readHistory(ctx context.Context, id, uid string, out *Snapshot) (evaluations int, err error) {
	// Views begin under the lock, so no view is older than the cache.
	cached, known := out.cached, out.known
	h := &known.history
	h.mu.Lock()
	defer h.mu.Unlock()
	err = e.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		if record.GetStudy().GetUid() != uid {
			return resource.StudyNotFound(id)
		}
		if !cached.Compiles(record) {
			return errGrown
		}
		out.record = record
		checkpoints := learnsFromCheckpoints(cached.Compiled)
		if out.History, err = h.read(tx, id, record, cached.Compiled, checkpoints); err != nil {
			return err
		}
		out.History.Prior, err = known.prior.read(ctx, e.logger, tx, cached.Compiled, checkpoints)
		out.prior = known.prior.key
		return err
	})
	return len(h.evaluations) + known.prior.size(), err
}

// historyCache keeps what designers learn from the trials of a study. Terminal trials never change,
// so each is read and converted once. After a deletion all are read again.
type historyCache struct {
	mu          sync.Mutex
	evaluations []suggest.Evaluation // append-only: snapshots share it
	infeasible  []space.Point        // append-only: snapshots share it
	settled     int64                // number of terminal trials
	next        int64                // trials below this number have been read
	open        map[int64]space.Point

	otherSteps bool // steps count another checkpoint parameter: ignore them
	// values are the values of the parameters that a prior study lacks, by id.
	values map[string]*dparetov1.Value
}

// pointOf returns the configuration of a trial.
func (h *historyCache) pointOf(compiled *spec.Study, trial *dparetov1.Trial) (space.Point, error) {
	if len(h.values) > 0 {
		trial.Parameters = compiled.Complete(trial.GetParameters(), h.values)
	}
	return study.PointOf(compiled, trial)
}

// read returns the history as of a view, which must not be older than an earlier call's. The caller
// holds h.mu.
func (h *historyCache) read(tx *store.ReadTx, id string, record *storev1.StudyRecord, compiled *spec.Study, checkpoints bool) (*suggest.History, error) {
	for {
		pending, err := h.advance(tx, id, record, compiled, checkpoints)
		if err != nil {
			h.forget()
			return nil, err
		}
		counts := record.GetStudy().GetTrialCounts()
		switch settled := counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed(); {
		case h.settled == settled:
			// Clip: a caller that appends must not write to shared memory.
			return &suggest.History{Evaluations: slices.Clip(h.evaluations), Infeasible: slices.Clip(h.infeasible), Pending: pending}, nil
		case h.settled < settled:
			h.forget()
			return nil, fmt.Errorf("study %s has %d completed trials, but its counts say %d", id, h.settled, settled)
		default: // trials were deleted
			h.forget()
		}
	}
}

// forget empties the cache.
func (h *historyCache) forget() {
	h.evaluations, h.infeasible, h.settled, h.next, h.open = nil, nil, 0, 0, nil
}

// advance adds the trials completed since the last view, and returns the points of open trials by
// ascending number.
func (h *historyCache) advance(tx *store.ReadTx, id string, record *storev1.StudyRecord, compiled *spec.Study, checkpoints bool) ([]space.Point, error) {
	var pending []space.Point
	var completed []*storev1.TrialRecord
	open := make(map[int64]space.Point)
	look := func(t *storev1.TrialRecord) error {
		if study.IsTerminal(t.GetTrial().GetState()) {
			completed = append(completed, t)
			return nil
		}
		point, err := h.pointOf(compiled, t.GetTrial())
		open[t.GetTrial().GetNumber()] = point
		return err
	}
	err := tx.OpenTrials(id, func(number int64, _ *storev1.OpenTrialRecord) (bool, error) {
		if point, ok := h.open[number]; ok {
			open[number] = point
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	for number := range h.open { // no longer open
		if _, ok := open[number]; ok {
			continue
		}
		t, err := tx.Trial(id, number)
		if errors.Is(err, store.ErrNotFound) {
			continue
		}
		if err == nil {
			err = look(t)
		}
		if err != nil {
			return nil, err
		}
	}
	err = tx.Trials(id, max(0, h.next-1), func(t *storev1.TrialRecord) (bool, error) { return true, look(t) })
	if err != nil {
		return nil, err
	}
	slices.SortFunc(completed, func(a, b *storev1.TrialRecord) int {
		return cmp.Compare(a.GetCompletionOrder(), b.GetCompletionOrder())
	})
	for _, t := range completed {
		if err := h.add(compiled, t.GetTrial(), checkpoints); err != nil {
			return nil, err
		}
	}
	h.open, h.next = open, record.GetNextTrialNumber()
	for _, number := range slices.Sorted(maps.Keys(open)) {
		pending = append(pending, open[number])
	}
	return pending, nil
}

// add adds a terminal trial. Failed trials teach nothing.
func (h *historyCache) add(compiled *spec.Study, trial *dparetov1.Trial, checkpoints bool) error {
	h.settled++
	point, err := h.pointOf(compiled, trial)
	if err != nil {
		return err
	}
	switch trial.GetState() {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		if h.otherSteps {
			trial.Measurements = nil
			trial.FinalMeasurement.Step = 0
		}
		h.evaluations = appendEvaluations(h.evaluations, compiled, point, trial, checkpoints)
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		h.infeasible = append(h.infeasible, point)
	default:
	}
	return nil
}

// appendEvaluations appends the evaluations of a completed trial in step order: the final
// measurement, and intermediate ones if checkpoints count. The final one need not be the last: a
// worker may choose the best.
func appendEvaluations(dst []suggest.Evaluation, compiled *spec.Study, point space.Point, trial *dparetov1.Trial, checkpoints bool) []suggest.Evaluation {
	final := trial.GetFinalMeasurement()
	if !checkpoints || !compiled.Checkpoints() {
		return append(dst, compiled.Evaluation(point, final))
	}
	first := len(dst)
	for _, m := range study.WithFinal(trial) {
		dst = append(dst, compiled.Evaluation(point, m))
	}
	for i := first; i < len(dst); i++ {
		dst[i].Run = trial.GetNumber()
	}
	return dst
}
