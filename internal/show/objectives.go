package show

import (
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Objectives returns the metrics of a study that are coordinates of its front, in the order of the
// spec.
func Objectives(spec *dparetov1.StudySpec) []*dparetov1.MetricSpec {
	return slices.DeleteFunc(slices.Clone(spec.GetMetrics()), func(m *dparetov1.MetricSpec) bool {
		return m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE
	})
}
