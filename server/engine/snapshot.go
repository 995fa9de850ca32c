package engine

import (
	"context"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
)

// snapshot is the input of a suggestion.
type snapshot struct {
	record   *storev1.StudyRecord
	revision int64 // of the study that history is of
	policy   study.Policy
	compiled *spec.Study // the spec that history fits
	cache    *studyCache
	history  *suggest.History
	prior    string // identifies history.Prior
}

// problem returns what designers solve, with the references that follow from the history.
func (s *snapshot) problem() *suggest.Problem { return s.compiled.Problem.Inferred(s.history) }

// snapshot reads a study's history. It returns NOT_FOUND if the study was deleted, even if another
// study has its name now.
func (e *Engine) snapshot(ctx context.Context, id, uid string) (*snapshot, error) {
	defer e.phases.phase(ctx, metrics.PhaseHistory)()
	h, err := e.histories.Read(ctx, id)
	if err != nil {
		return nil, err
	}
	if h.Record.GetStudy().GetUid() != uid {
		return nil, resource.StudyNotFound(id)
	}
	s := &snapshot{
		record: h.Record, revision: h.Record.GetStudy().GetRevision(), policy: e.studies.Policy(h.Cached.Compiled.Spec),
		compiled: h.Cached.Compiled, cache: e.cacheOf(h.Cached),
		history: &suggest.History{Evaluations: evaluations(&h.Trials, h.Cached.Compiled), Infeasible: h.Infeasible, Pending: h.Pending},
	}
	s.history.Prior, s.prior, err = e.priorEvaluations(ctx, h.Cached)
	return s, err
}

// studyCache holds the engine's derived data of one study.
type studyCache struct {
	prior    priorCache
	stopping stopping
	prepared prepared
}

// cacheOf returns the engine's derived data of a study.
func (e *Engine) cacheOf(cached *study.Cached) *studyCache {
	return study.Derived(cached, func() *studyCache { return new(studyCache) })
}

// Drop cancels background work, when the study has changed or is evicted.
func (c *studyCache) Drop() { c.prepared.abandon() }
