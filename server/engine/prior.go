package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/specchange"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxPriorEvaluations bounds the evaluations of prior studies in a model.
	maxPriorEvaluations = 1000
)

// priorCache caches the evaluations of a study's prior studies. It keeps converted trials, so that
// only newly completed ones are read.
type priorCache struct {
	key         string                   // identifies the trials behind evaluations
	evaluations []suggest.Evaluation     // of all prior studies, thinned
	studies     map[string]*historyCache // by version; guarded by the caller's lock, not their own
}

// versionOf identifies a study, its spec and the import that it came by. While it stays the same, completed
// trials do not change.
func versionOf(r *storev1.StudyRecord) string {
	return fmt.Sprintf("%s/%s/%x", r.GetStudy().GetUid(), r.GetStudy().GetEtag(), r.GetLineage())
}

// priorRuns separates the run numbers of a study and its prior studies. It exceeds every trial
// number.
const priorRuns = 1 << 32

// read returns the evaluations of the prior studies. It skips prior studies that are gone or no
// longer comparable, with a warning in the log.
func (p *priorCache) read(ctx context.Context, logger *slog.Logger, tx *store.ReadTx, compiled *spec.Study, checkpoints bool) ([]suggest.Evaluation, error) {
	names := compiled.Spec.GetPriorStudies()
	if len(names) == 0 {
		return nil, nil
	}
	var key strings.Builder
	priors := make([]*storev1.StudyRecord, len(names))
	for i, name := range names {
		id, err := resource.ParseStudyName("name", name)
		if err != nil {
			return nil, err
		}
		record, err := tx.Study(id)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
		if err == nil {
			priors[i] = record
			fmt.Fprintf(&key, "%s %v;", versionOf(record), settledKey(record))
		} else {
			key.WriteString("gone;")
		}
	}
	if p.key == key.String() {
		return p.evaluations, nil
	}
	var evaluations []suggest.Evaluation
	studies := make(map[string]*historyCache)
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
		h := p.studies[versionOf(record)]
		if h == nil {
			h = &historyCache{
				otherSteps: prior.GetSpec().GetCheckpointParameter() != compiled.Spec.GetCheckpointParameter(),
				values:     specchange.PriorValues(compiled.Spec, prior.GetSpec()),
			}
		}
		studies[versionOf(record)] = h
		id := resource.StudyID(prior.GetName())
		history, err := h.read(tx, id, record, compiled, checkpoints)
		if err != nil {
			return nil, err
		}
		for _, e := range history.Evaluations {
			if e.Run != 0 { // keep runs of different studies apart
				e.Run += int64(i+1) * priorRuns
			}
			evaluations = append(evaluations, e)
		}
	}
	p.key, p.studies = key.String(), studies
	p.evaluations = thin(evaluations, maxPriorEvaluations)
	return p.evaluations, nil
}

// size returns the number of cached evaluations.
func (p *priorCache) size() int {
	size := len(p.evaluations)
	for _, h := range p.studies {
		size += len(h.evaluations)
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
