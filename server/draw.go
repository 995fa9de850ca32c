package server

import (
	"context"

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
func drawsAtOnce(designer suggest.Designer, study *spec.Study) bool {
	if study.IsPrivate() {
		return false // what is allowed depends on what is spent
	}
	switch designer.Name() {
	case suggest.NewRandom().Name(), suggest.NewQuasiRandom().Name():
		return study.Problem.Allowed == nil && len(study.Problem.Constraints) == 0 && study.ComputesAtOnce()
	default:
		return false
	}
}

// drawAtOnce creates what is missing of a worker's trials where that is at most one pass
// and the designer allows it. It returns whether the answer is complete.
func (s *Server) drawAtOnce(ctx context.Context, c *change, worker string, missing int, resp *dparetov1.SuggestTrialsResponse) (bool, error) {
	designer := s.designerFor(c.study, c.compiled)
	if missing > maxBatch || !drawsAtOnce(designer, c.compiled) {
		return false, nil
	}
	from := &snapshot{record: c.study, cached: c.cached, compiled: c.compiled, history: new(suggest.History)}
	suggestions, exhausted, err := s.design(ctx, designer, from, c.study.GetNextTrialNumber(), s.creatable(c.study, missing))
	if err != nil {
		return false, err
	}
	revision := c.study.GetStudy().GetRevision()
	for _, suggestion := range suggestions {
		record, err := c.create(suggestion.Point, dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED, func(record *storev1.TrialRecord) error {
			record.Trial.Provenance = s.provenance(from, designer, suggestion)
			record.Trial.Provenance.StudyRevision = revision
			return c.handOut(record, worker)
		})
		if err != nil {
			return false, err
		}
		resp.Trials = append(resp.Trials, record.GetTrial())
	}
	s.explain(c, resp, missing-len(suggestions))
	if exhausted && resp.GetEndReason() == dparetov1.EndReason_END_REASON_UNSPECIFIED {
		resp.EndReason = dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED
	}
	return true, nil
}
