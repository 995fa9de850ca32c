package engine

import (
	"context"

	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/suggest"
)

// drawsAtOnce reports whether new trials of a study can be created in the transaction
// that finds none to hand out: the designer needs no history, so that there is nothing to
// read and nothing that could change meanwhile, and neither constraints nor computed
// metrics take long. One transaction takes the place of three, and a
// study of any length costs no more than a new one.
func drawsAtOnce(designer suggest.Designer, study *spec.Study, policy study.Policy) bool {
	if policy.Traits().OneByOne {
		return false
	}
	switch designer.Name() {
	case random.New().Name(), quasirandom.New().Name():
		return study.Problem.Allowed == nil && len(study.Problem.Constraints) == 0 && study.ComputesAtOnce()
	default:
		return false
	}
}

// drawAtOnce creates what is missing of a worker's trials where that is at most one pass
// and the designer allows it. It returns whether the answer is complete.
func (e *Engine) drawAtOnce(ctx context.Context, c *study.Change, worker string, missing int, resp *dparetov1.SuggestTrialsResponse) (bool, error) {
	from := &Snapshot{record: c.Study, policy: c.Policy, cached: c.Cached, Compiled: c.Compiled, History: new(suggest.History)}
	designer := e.designerFor(from, restrict.Condition{})
	if missing > maxBatch || !drawsAtOnce(designer, c.Compiled, c.Policy) {
		return false, nil
	}
	suggestions, exhausted, err := e.design(ctx, designer, from, c.Study.GetNextTrialNumber(), e.studies.Creatable(c.Study, missing))
	if err != nil {
		return false, err
	}
	revision := c.Study.GetStudy().GetRevision()
	for _, suggestion := range suggestions {
		record, err := c.Create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
			record.Trial.Provenance = e.provenance(from, designer, suggestion)
			record.Trial.Provenance.StudyRevision = revision
			return c.HandOut(record, worker)
		})
		if err != nil {
			return false, err
		}
		resp.Trials = append(resp.Trials, record.GetTrial())
	}
	c.Explain(resp, missing-len(suggestions))
	if exhausted && resp.GetEndReason() == dparetov1.EndReason_END_REASON_UNSPECIFIED {
		resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
	}
	return true, nil
}
