package study_test

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/status"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/enginetest"
)

// violation returns the first field that an error names, and what it says of it.
func violation(err error) string {
	for _, detail := range status.Convert(err).Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.GetFieldViolations()) > 0 {
			v := bad.GetFieldViolations()[0]
			return v.GetField() + ": " + v.GetDescription()
		}
	}
	return fmt.Sprint(err)
}

// A prior study must exist and mean the same.
func TestPriorStudiesAreChecked(t *testing.T) {
	s := enginetest.With(t, enginetest.Random())
	s.Runs(t, nil)
	for name, tc := range map[string]struct {
		change func(*dparetov1.StudySpec)
		want   string
	}{
		"missing":   {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/none"} }, "prior_studies[0]: studies/none does not exist"},
		"malformed": {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"none"} }, "prior_studies[0]: "},
		"twice":     {func(a *dparetov1.StudySpec) { a.PriorStudies = []string{"studies/runs", "studies/runs"} }, "prior_studies[1]: studies/runs is listed twice"},
		"domain":    {func(a *dparetov1.StudySpec) { a.Parameters[0].GetDoubleDomain().Max = 0.5 }, "parameter x is"},
		"extra parameter": {func(a *dparetov1.StudySpec) {
			a.Parameters = append(a.Parameters, &dparetov1.ParameterSpec{Id: "a", Scale: dparetov1.Scale_SCALE_LINEAR, Domain: a.GetParameters()[0].GetDomain()})
		}, "parameter a does not exist there"},
		"fewer objectives": {func(a *dparetov1.StudySpec) { a.Metrics = a.GetMetrics()[:1] }, "objective error does not exist here"},
		"transform":        {func(a *dparetov1.StudySpec) { a.Metrics[1].Transform = dparetov1.Transform_TRANSFORM_LOGIT }, "objective error is"},
	} {
		for _, validateOnly := range []bool{false, true} {
			asked := enginetest.RunSpec()
			asked.PriorStudies = []string{"studies/runs"}
			tc.change(asked)
			_, err := s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "next", Study: &dparetov1.Study{Spec: asked}, ValidateOnly: validateOnly})
			if got := violation(err); !strings.Contains(got, tc.want) || !strings.HasPrefix(got, "study.spec.prior_studies[") {
				t.Errorf("%s: %s, want %s", name, got, tc.want)
			}
		}
	}
}
