package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"sync"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxPriorEvaluations bounds the evaluations of prior studies in a model.
	maxPriorEvaluations = 1000
)

// priorCache caches the evaluations of a study's prior studies.
type priorCache struct {
	mu          sync.Mutex
	key         string                     // identifies the trials behind evaluations
	evaluations []suggest.Evaluation       // of all prior studies, thinned
	readers     map[string]*history.Reader // by version
}

// evaluations returns the trials of a study as its designer sees them: every measurement, or complete
// runs only.
func evaluations(trials *history.Trials, compiled *spec.Study) []suggest.Evaluation {
	if learnsFromCheckpoints(compiled) {
		return trials.Evaluations
	}
	return trials.Runs()
}

// versionOf identifies a study, its spec and the import that it came by. While it stays the same, completed
// trials do not change.
func versionOf(r *storev1.StudyRecord) string {
	return fmt.Sprintf("%s/%s/%x", r.GetStudy().GetUid(), r.GetStudy().GetEtag(), r.GetLineage())
}

// priorRuns separates the run numbers of a study and its prior studies. It exceeds every trial
// number.
const priorRuns = 1 << 32

// priorEvaluations returns the evaluations of a study's prior studies, and a key that changes with
// them. It skips prior studies that are gone or no longer comparable, with a warning in the log.
func (e *Engine) priorEvaluations(ctx context.Context, cached *study.Cached) (found []suggest.Evaluation, key string, err error) {
	if len(cached.Compiled.Spec.GetPriorStudies()) == 0 {
		return nil, "", nil
	}
	// Views begin under the lock, so no view is older than the cache.
	p := &e.cacheOf(cached).prior
	p.mu.Lock()
	before := p.size()
	err = e.store.View(ctx, func(tx *store.ReadTx) error { return p.read(ctx, e.logger, tx, cached.Compiled) })
	found, key = p.evaluations, p.key
	after := p.size()
	p.mu.Unlock()
	e.studies.Grow(cached, after-before)
	return found, key, err
}

// read brings the cache up to date. The caller holds p.mu.
func (p *priorCache) read(ctx context.Context, logger *slog.Logger, tx *store.ReadTx, compiled *spec.Study) error {
	names := compiled.Spec.GetPriorStudies()
	var key strings.Builder
	priors := make([]*storev1.StudyRecord, len(names))
	for i, name := range names {
		id, err := resource.ParseStudyName("name", name)
		if err != nil {
			return err
		}
		record, err := tx.Study(id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if err == nil {
			priors[i] = record
			fmt.Fprintf(&key, "%s %v;", versionOf(record), settledKey(record))
		} else {
			key.WriteString("gone;")
		}
	}
	if p.key == key.String() {
		return nil
	}
	var all []suggest.Evaluation
	readers := make(map[string]*history.Reader)
	for i, record := range priors {
		var reason string
		if record == nil {
			reason = "it no longer exists"
		} else {
			reason = specchange.Incompatibility(compiled.Spec, record.GetStudy().GetSpec())
		}
		if reason != "" {
			logger.WarnContext(ctx, "skipped a prior study", "prior_study", names[i], "reason", reason)
			continue
		}
		prior := record.GetStudy()
		r := p.readers[versionOf(record)]
		if r == nil {
			r = &history.Reader{
				Compiled:   compiled,
				OtherSteps: prior.GetSpec().GetCheckpointParameter() != compiled.Spec.GetCheckpointParameter(),
				Values:     specchange.PriorValues(compiled.Spec, prior.GetSpec()),
			}
		}
		readers[versionOf(record)] = r
		trials, err := r.Read(ctx, tx, record)
		if err != nil {
			return err
		}
		for _, e := range evaluations(&trials, compiled) {
			if e.Run != 0 { // keep runs of different studies apart
				e.Run += int64(i+1) * priorRuns
			}
			all = append(all, e)
		}
	}
	p.key, p.readers = key.String(), readers
	p.evaluations = thin(all, maxPriorEvaluations)
	return nil
}

// size returns the number of cached measurements.
func (p *priorCache) size() int {
	size := len(p.evaluations)
	for _, r := range p.readers {
		size += r.Size()
	}
	return size
}

// thin returns at most n evaluations from evenly spaced runs. From each run it takes the last
// checkpoint and as many others as from each, evenly spaced in the logarithm of their index.
func thin(all []suggest.Evaluation, n int) []suggest.Evaluation {
	if len(all) <= n {
		return all
	}
	var runs [][]suggest.Evaluation
	for i := range all {
		if i == 0 || all[i].Run == 0 || all[i].Run != all[i-1].Run {
			runs = append(runs, nil)
		}
		last := len(runs) - 1
		runs[last] = append(runs[last], all[i])
	}
	kept := min(n, len(runs))
	each := n / kept
	var out []suggest.Evaluation
	for i := range kept {
		run := runs[(i+1)*len(runs)/kept-1]
		next := 0
		for j := range each {
			k := int(math.Round(math.Pow(float64(len(run)), float64(j+1)/float64(each)))) - 1
			if k >= next {
				out = append(out, run[k])
				next = k + 1
			}
		}
	}
	return out
}
