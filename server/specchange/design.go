package specchange

import (
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// DesignDifferences returns the paths of the fields of two specs that differ, except for those known
// to leave the design as it is. For the reasons see docs/fixed-in-advance.md.
func DesignDifferences(before, after *dparetov1.StudySpec) []string {
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
