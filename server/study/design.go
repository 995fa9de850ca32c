package study

import (
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// noteDesignChange notes that a new spec changes which trials the study will have, or which of them
// a release may choose, if it comes after the first trial was created. From then on a worker may
// know a result, before the server does. The first change stays noted: undoing it may depend on
// results, too.
func (c *Change) noteDesignChange(after *dparetov1.StudySpec) {
	study := c.Study.GetStudy()
	if c.Study.GetNextTrialNumber() == 1 || study.GetDesignChange() != nil || c.Policy.Traits().Prepaid {
		return
	}
	if fields := designDifferences(study.GetSpec(), after); len(fields) > 0 {
		study.DesignChange = &dparetov1.DesignChange{Fields: fields, Time: timestamppb.New(c.Now)}
	}
}

// designDifferences returns the paths of the fields of two specs that differ, except for those known
// to leave the design as it is. For the reasons see
// docs/fixed-in-advance.md.
func designDifferences(before, after *dparetov1.StudySpec) []string {
	before, after = proto.CloneOf(before), proto.CloneOf(after)
	for _, spec := range []*dparetov1.StudySpec{before, after} {
		if spec.GetBudget() == nil {
			spec.Budget = new(dparetov1.Budget)
		}
		spec.Budget.MaxDuration, spec.Budget.MaxParallelTrials = nil, 0
		spec.Lease, spec.DisableEarlyStopping, spec.TestLedger = nil, false, ""
		for _, m := range spec.GetMetrics() {
			m.Unit = ""
			if m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_CONSTRAINT {
				m.Source = nil // ReaccountStudy changes how ε is computed
			}
		}
	}
	return Differences(before, after)
}
