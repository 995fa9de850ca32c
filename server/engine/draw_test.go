package engine_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/servertest"
)

// Trials that are drawn at once, a few at a time, are those that one large demand gets,
// which is answered in passes.
func TestDrawnAtOnce(t *testing.T) {
	for _, algorithm := range []dparetov1.Algorithm{dparetov1.Algorithm_ALGORITHM_RANDOM, dparetov1.Algorithm_ALGORITHM_QUASI_RANDOM} {
		f := servertest.Start(t)
		spec := servertest.SVTSpec()
		spec.Algorithm.Name = algorithm
		few, many := f.Create("few", spec), f.Create("many", spec)
		const count = 40
		want := f.Ask(many, "worker", count).GetTrials()
		var got []*dparetov1.Trial
		for i := 0; len(got) < count; i++ {
			got = append(got, f.Ask(few, fmt.Sprintf("worker-%d", i), int32(min(3, count-len(got)))).GetTrials()...)
		}
		if diff := cmp.Diff(want, got, protocmp.Transform(),
			protocmp.IgnoreFields(&dparetov1.Trial{}, "name", "worker_id", "lease", "etag", "revision", "create_time", "start_time"),
			protocmp.IgnoreFields(&dparetov1.Provenance{}, "study_revision")); diff != "" {
			t.Errorf("%v: drawn at once (+got) and in passes (-want):\n%s", algorithm, diff)
		}
		for i, trial := range got {
			if trial.GetNumber() != int64(i+1) || trial.GetProvenance().GetStudyRevision() >= trial.GetRevision() {
				t.Errorf("%v: trial %d has number %d, revision %d and was made from revision %d", algorithm, i,
					trial.GetNumber(), trial.GetRevision(), trial.GetProvenance().GetStudyRevision())
			}
		}
	}
}

// What is drawn at once stays within the budget, and the answer says why it is short.
func TestDrawnAtOnceBudget(t *testing.T) {
	f := servertest.Start(t)
	spec := servertest.SVTSpec()
	spec.Budget = &dparetov1.Budget{MaxTrials: 5, MaxParallelTrials: 3}
	study := f.Create("a", spec)
	short := f.Ask(study, "first", 4)
	if n, reason := len(short.GetTrials()), short.GetEndReason(); n != 3 || reason != dparetov1.EndReason_END_REASON_PARALLELISM || short.GetRetryAfter() == nil {
		t.Errorf("%d trials, %v, again after %v; want 3 because of parallelism", n, reason, short.GetRetryAfter())
	}
	for _, trial := range short.GetTrials() {
		f.Tell(trial, 0.5)
	}
	last := f.Ask(study, "second", 3)
	if n, reason := len(last.GetTrials()), last.GetEndReason(); n != 2 || reason != dparetov1.EndReason_END_REASON_BUDGET_SPENT {
		t.Errorf("%d trials, %v; want 2, the last of the budget", n, reason)
	}
}
