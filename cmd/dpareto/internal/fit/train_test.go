package fit

import (
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/table"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestUnit(t *testing.T) {
	spec := func(perUser string) *dparetov1.StudySpec {
		privacy := &dparetov1.PrivacySpec{Mechanism: &dparetov1.PrivacySpec_DpSgd{DpSgd: &dparetov1.DpSgdMechanism{RecordsPerUser: perUser}}}
		return &dparetov1.StudySpec{Metrics: []*dparetov1.MetricSpec{{Source: &dparetov1.MetricSpec_Computed{Computed: &dparetov1.ComputedSource{
			Function: &dparetov1.ComputedSource_Privacy{Privacy: privacy},
		}}}}}
	}
	for want, got := range map[string]string{
		"one row": unit(spec(""), &table.Schema{}),
		`one row, and larger for an id in column "id" with several`: unit(spec(""), &table.Schema{Group: "id"}),
		"all training rows of a user, if these are at most 3":       unit(spec("3"), &table.Schema{Group: "id"}),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
