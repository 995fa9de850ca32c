package specchange_test

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/fieldmaskpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/specchange"
)

// What trials depend on stays. Some policies fix more.
func TestCheck(t *testing.T) {
	for name, tc := range map[string]struct {
		change          func(*dparetov1.StudySpec)
		ordinary, fixed string // what is refused, "" for nothing
	}{
		"budget": {func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxTrials: 1} }, "", ""},
		"lease":  {func(s *dparetov1.StudySpec) { s.Lease = new(dparetov1.LeasePolicy) }, "", ""},
		"early stopping": {
			func(s *dparetov1.StudySpec) { s.DisableEarlyStopping = !s.GetDisableEarlyStopping() }, "", "",
		},
		"unit": {func(s *dparetov1.StudySpec) { s.Metrics[0].Unit = "s" }, "", ""},
		"growing": {
			func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max++ },
			"", "study.spec.parameters[0].double_domain.max: cannot be changed",
		},
		"shrinking": {
			func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max /= 2 },
			"study.spec.parameters[0].double_domain.max: must be at least 1, is 0.5: a domain can only grow",
			"study.spec.parameters[0].double_domain.max: must be at least 1, is 0.5: a domain can only grow",
		},
		"ledger": {
			func(s *dparetov1.StudySpec) { s.TestLedger = "ledgers/l" },
			"", "study.spec.test_ledger: cannot be changed",
		},
		"goal": {
			func(s *dparetov1.StudySpec) { s.Metrics[1].Goal = dparetov1.Goal_GOAL_MAXIMIZE },
			"study.spec.metrics[1].goal: cannot be changed", "study.spec.metrics[1].goal: cannot be changed",
		},
	} {
		before := enginetest.RunSpec()
		after := proto.CloneOf(before)
		tc.change(after)
		for fixed, want := range map[specchange.Fixed]string{{}: tc.ordinary, {Domains: true, Ledgers: true}: tc.fixed} {
			got := specchange.Check(before, after, fixed)
			if want == "" && got != nil || want != "" && !strings.HasPrefix(violation(got), want) {
				t.Errorf("%s, %+v: %v, want %q", name, fixed, got, want)
			}
		}
	}
	before := enginetest.RunSpec()
	before.TestLedger = "ledgers/l"
	if err := specchange.Check(before, enginetest.RunSpec(), specchange.Fixed{}); violation(err) != "study.spec.test_ledger: cannot be changed: the trials so far depend on it" {
		t.Errorf("without its ledger: %v", err)
	}
}

// A mask names what is copied, and nothing else is.
func TestApplyMask(t *testing.T) {
	src := &dparetov1.Study{DisplayName: "new", Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: 2, MaxParallelTrials: 1}}}
	allowed := []string{"display_name", "description", "spec"}
	for paths, want := range map[string]*dparetov1.Study{
		"display_name":           {DisplayName: "new", Description: "old"},
		"description":            {DisplayName: "old"},
		"spec.budget.max_trials": {DisplayName: "old", Description: "old", Spec: &dparetov1.StudySpec{Budget: &dparetov1.Budget{MaxTrials: 2}}},
		"spec.lease.duration":    {DisplayName: "old", Description: "old", Spec: new(dparetov1.StudySpec)},
		"*":                      src,
	} {
		dst := &dparetov1.Study{DisplayName: "old", Description: "old"}
		err := specchange.ApplyMask(dst, src, &fieldmaskpb.FieldMask{Paths: strings.Split(paths, ",")}, allowed)
		if err != nil || !proto.Equal(dst, want) {
			t.Errorf("%s: %v, %v, want %v", paths, dst, err, want)
		}
	}
	for path, want := range map[string]string{
		"nonsense":             `"nonsense" is not a field`,
		"state":                `"state" cannot be changed, only display_name, description, spec can`,
		"spec.parameters.id":   `"spec.parameters.id" is below spec.parameters, which is set as a whole`,
		"spec.budget.nonsense": `"spec.budget.nonsense" is not a field`,
	} {
		err := specchange.ApplyMask(new(dparetov1.Study), src, &fieldmaskpb.FieldMask{Paths: []string{path}}, allowed)
		if got := violation(err); got != "update_mask: "+want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
	if err := specchange.ApplyMask(new(dparetov1.Study), src, nil, allowed); violation(err) != "update_mask: must name the fields to change" {
		t.Errorf("without a mask: %v", err)
	}
}

// The design of a study is what its trials will be, not how long they may take.
func TestDesignDifferences(t *testing.T) {
	for want, change := range map[string]func(*dparetov1.StudySpec){
		"": func(s *dparetov1.StudySpec) {
			s.Budget = &dparetov1.Budget{MaxParallelTrials: 3}
			s.Lease, s.DisableEarlyStopping, s.TestLedger = new(dparetov1.LeasePolicy), true, "ledgers/l"
			s.Metrics[0].Unit = "s"
		},
		"budget.max_trials":               func(s *dparetov1.StudySpec) { s.Budget = &dparetov1.Budget{MaxTrials: 3} },
		"parameters[0].double_domain.max": func(s *dparetov1.StudySpec) { s.Parameters[0].GetDoubleDomain().Max++ },
	} {
		before := enginetest.RunSpec()
		after := proto.CloneOf(before)
		change(after)
		if got := strings.Join(specchange.DesignDifferences(before, after), ","); got != want {
			t.Errorf("differences %q, want %q", got, want)
		}
	}
}
