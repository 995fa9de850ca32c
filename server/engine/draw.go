package engine

import (
	"context"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/restrict"
)

// drawsAtOnce reports whether new trials can be created in the transaction that found none to hand
// out. The designer must need no history, and constraints and computed metrics must be cheap. Then
// one transaction replaces three, and a long study costs no more than a new one.
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

// drawAtOnce creates a worker's missing trials, if the designer allows it and one pass is enough. It
// returns whether the response is complete.
func (e *Engine) drawAtOnce(ctx context.Context, c *study.Change, worker string, missing int, resp *dparetov1.SuggestTrialsResponse) (bool, error) {
	from := &snapshot{record: c.Study, policy: c.Policy, compiled: c.Compiled, history: new(suggest.History)}
	designer := e.designerFor(from, restrict.Condition{})
	if missing > maxBatch || !drawsAtOnce(designer, c.Compiled, c.Policy) {
		return false, nil
	}
	suggestions, exhausted, err := e.design(ctx, nil, designer, from, c.Study.GetNextTrialNumber(), e.studies.Creatable(c.Study, missing))
	if err != nil {
		return false, err
	}
	revision := c.Study.GetStudy().GetRevision()
	for _, suggestion := range suggestions {
		record, err := c.Create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
			record.Trial.Provenance = provenance(e.version, from, designer, suggestion)
			record.Trial.Provenance.StudyRevision = revision
			return c.HandOut(record, worker)
		})
		if err != nil {
			return false, err
		}
		resp.Trials = append(resp.Trials, c.HandedOut(record))
	}
	c.Explain(resp, missing-len(suggestions))
	if exhausted && resp.GetEndReason() == dparetov1.EndReason_END_REASON_UNSPECIFIED {
		resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
	}
	return true, nil
}
