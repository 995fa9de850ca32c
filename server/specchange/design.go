package specchange

import (
	"crypto/sha256"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// DesignDifferences returns the paths of the fields of two specs that differ, except for those known
// to leave the design as it is. For the reasons see docs/explanation/fixed-in-advance.md.
func DesignDifferences(before, after *dparetov1.StudySpec) []string {
	return Differences(designOf(before), designOf(after))
}

// DesignDigest returns a digest that specs without DesignDifferences share.
func DesignDigest(spec *dparetov1.StudySpec) ([]byte, error) {
	design, err := proto.MarshalOptions{Deterministic: true}.Marshal(designOf(spec))
	digest := sha256.Sum256(design)
	return digest[:], err
}

// designOf returns a spec without the fields that leave the design as it is.
func designOf(spec *dparetov1.StudySpec) *dparetov1.StudySpec {
	spec = proto.CloneOf(spec)
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
	return spec
}
