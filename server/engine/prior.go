package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strings"

	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
)

const (
	// maxPriorEvaluations bounds the evaluations of prior studies that a model is given.
	maxPriorEvaluations = 1000
)

// priorCache keeps the evaluations of the prior studies of a study: of each what was
// converted already, so that only trials that it has completed since are read.
type priorCache struct {
	key         string // the trials of the studies that evaluations are of
	evaluations []suggest.Evaluation
	studies     map[string]*historyCache // by version; their own locks are not used
}

// versionOf identifies a study with its spec: as long as that is the same, trials that
// are complete do not change.
func versionOf(study *dparetov1.Study) string { return study.GetUid() + "/" + study.GetEtag() }

// priorRuns is the distance between the numbers of the runs of two prior studies, and
// between those of the study itself and of the first: more than any number of a trial.
const priorRuns = 1 << 32

// read returns the evaluations of the prior studies. A study that is gone, or has been
// replaced by another of its name that is not comparable, is passed over with a warning.
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
			fmt.Fprintf(&key, "%s %v;", versionOf(record.GetStudy()), settledKey(record))
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
			reason = "it does not exist any more"
		} else {
			reason = study.Incompatibility(compiled.Spec, record.GetStudy().GetSpec())
		}
		if reason != "" {
			logger.WarnContext(ctx, "prior study passed over", "prior_study", names[i], "reason", reason)
			continue
		}
		prior := record.GetStudy()
		h := p.studies[versionOf(prior)]
		if h == nil {
			h = &historyCache{otherSteps: prior.GetSpec().GetCheckpointParameter() != compiled.Spec.GetCheckpointParameter()}
		}
		studies[versionOf(prior)] = h
		id := strings.TrimPrefix(prior.GetName(), resource.StudyName(""))
		history, err := h.read(tx, id, record, compiled, checkpoints)
		if err != nil {
			return nil, err
		}
		for _, e := range history.Evaluations {
			if e.Run != 0 { // their runs are not those of the study itself
				e.Run += int64(i+1) * priorRuns
			}
			evaluations = append(evaluations, e)
		}
	}
	p.key, p.studies = key.String(), studies
	p.evaluations = thin(evaluations, maxPriorEvaluations, maxPriorEvaluations)
	return p.evaluations, nil
}

// size returns the number of evaluations that are kept.
func (p *priorCache) size() int {
	size := len(p.evaluations)
	for _, h := range p.studies {
		size += len(h.evaluations)
	}
	return size
}

// thin returns at most n of the evaluations: of evenly spaced runs the last checkpoint
// and at most each-1 others, spaced evenly in the logarithm of their number.
func thin(all []suggest.Evaluation, n, each int) []suggest.Evaluation {
	if len(all) <= min(n, each) {
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
	each = min(each, n/kept)
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
