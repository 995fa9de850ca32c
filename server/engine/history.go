package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// Snapshot is what a suggestion is made from.
type Snapshot struct {
	record   *storev1.StudyRecord
	policy   study.Policy
	cached   *study.Cached
	Compiled *spec.Study
	known    *knowledge
	History  *suggest.History
	prior    string // identifies history.Prior
}

// snapshot reads a study's history. A study that was deleted, also if another has
// taken its name, is NOT_FOUND.
func (e *Engine) snapshot(ctx context.Context, id, uid string) (*Snapshot, error) {
	defer e.phase(ctx, metrics.PhaseHistory)()
	for {
		out, err := e.Read(ctx, id, uid)
		if !errors.Is(err, errGrown) {
			return out, err
		}
	}
}

// Read is snapshot. It fails with errGrown where the spec changes at the same time.
func (e *Engine) Read(ctx context.Context, id, uid string) (*Snapshot, error) {
	var cached *study.Cached
	err := e.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := study.FindStudy(tx, id)
		if err != nil {
			return err
		}
		cached, err = e.studies.Get(record.GetStudy())
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

// errGrown says that the space of a study has grown since its spec was compiled.
var errGrown = errors.New("the space of the study has grown")

// readHistory sets the record and the history of a snapshot, and returns how many
// evaluations are kept for it.
func (e *Engine) readHistory(ctx context.Context, id, uid string, out *Snapshot) (evaluations int, err error) {
	// Views begin under the lock, so that none is older than what is cached.
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
		if !cached.Compiles(record.GetStudy().GetSpec()) {
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

// historyCache keeps what designers learn from the trials of a study. A trial in a
// terminal state never changes, so that each is read and converted once; only a
// deletion has all of them read again.
type historyCache struct {
	mu          sync.Mutex
	evaluations []suggest.Evaluation // only ever appended to, or replaced
	infeasible  []space.Point        // likewise
	settled     int64                // number of trials in a terminal state
	next        int64                // the number of trials that were looked at is below
	open        map[int64]space.Point

	otherSteps bool // the steps of the trials are those of another study, and say nothing
}

// read returns the history in a view, which must not be older than that of an earlier
// call. The caller holds h.mu.
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
			// What is shared is not appended to.
			return &suggest.History{Evaluations: slices.Clip(h.evaluations), Infeasible: slices.Clip(h.infeasible), Pending: pending}, nil
		case h.settled < settled:
			h.forget()
			return nil, fmt.Errorf("study %s has %d completed trials, its counts say %d", id, h.settled, settled)
		default: // trials were deleted
			h.forget()
		}
	}
}

// forget has everything read again.
func (h *historyCache) forget() {
	h.evaluations, h.infeasible, h.settled, h.next, h.open = nil, nil, 0, 0, nil
}

// advance adds the trials that were completed since the last view, and returns the
// points of those that are open, by ascending number.
func (h *historyCache) advance(tx *store.ReadTx, id string, record *storev1.StudyRecord, compiled *spec.Study, checkpoints bool) ([]space.Point, error) {
	var pending []space.Point
	var completed []*storev1.TrialRecord
	open := make(map[int64]space.Point)
	look := func(t *storev1.TrialRecord) error {
		if study.IsTerminal(t.GetTrial().GetState()) {
			completed = append(completed, t)
			return nil
		}
		point, err := study.PointOf(compiled, t.GetTrial())
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
	for number := range h.open { // those that are not open any more
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

// add adds a trial in a terminal state. Failed trials teach nothing.
func (h *historyCache) add(compiled *spec.Study, trial *dparetov1.Trial, checkpoints bool) error {
	h.settled++
	point, err := study.PointOf(compiled, trial)
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

// appendEvaluations appends the evaluations that a completed trial is: its final
// measurement, and those on the way where they count, in the order of their steps. That
// of the final one need not be the last: a worker may choose the best.
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
