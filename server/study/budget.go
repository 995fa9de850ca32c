package study

import (
	"strconv"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// retryAfter is how long a worker waits when other workers hold all remaining trials.
const retryAfter = time.Second

// State returns the current state of a study and the reason for it. An active study whose budget is
// spent is complete once its last trial is.
func (s *Studies) State(record *storev1.StudyRecord) (dparetov1.StudyState, string) {
	study := record.GetStudy()
	if study.GetState() == dparetov1.StudyState_STUDY_STATE_ACTIVE && OpenTrials(study.GetTrialCounts()) == 0 {
		if _, reason := spent(s, record); reason != "" {
			return dparetov1.StudyState_STUDY_STATE_COMPLETED, reason
		}
	}
	return study.GetState(), study.GetStateReason()
}

// spent returns why a study may create no more trials, or "" if it may.
func spent(s *Studies, record *storev1.StudyRecord) (end dparetov1.EndReason, reason string) {
	study := record.GetStudy()
	if a := s.Policy(study.GetSpec()).Allowance(record); a.Trials <= 0 {
		return a.End, a.Reason
	}
	budget := study.GetSpec().GetBudget()
	if n := budget.GetMaxTrials(); n > 0 && record.GetNextTrialNumber() > n {
		return dparetov1.EndReason_END_REASON_BUDGET_SPENT, "the budget of " + strconv.FormatInt(n, 10) + " trials is spent"
	}
	if d := budget.GetMaxDuration(); d != nil && s.times.wall().Sub(study.GetCreateTime().AsTime()) >= d.AsDuration() {
		return dparetov1.EndReason_END_REASON_BUDGET_SPENT, "the budget of " + d.AsDuration().String() + " is spent"
	}
	return dparetov1.EndReason_END_REASON_STAGNANT, stagnant(record)
}

// Creatable returns how many of count trials the budget lets the study create now.
func (s *Studies) Creatable(record *storev1.StudyRecord, count int) int {
	study := record.GetStudy()
	policy := s.Policy(study.GetSpec())
	if _, reason := spent(s, record); reason != "" || study.GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED || isUnprepared(policy, record) {
		return 0
	}
	budget := study.GetSpec().GetBudget()
	allowed := min(int64(count), policy.Allowance(record).Trials)
	if n := budget.GetMaxTrials(); n > 0 {
		allowed = min(allowed, n-record.GetNextTrialNumber()+1)
	}
	if n := budget.GetMaxParallelTrials(); n > 0 {
		counts := study.GetTrialCounts()
		allowed = min(allowed, n-counts.GetActive()-counts.GetStopping())
	}
	return int(max(0, allowed))
}

// OpenTrials returns the number of trials that are not yet in a terminal state.
func OpenTrials(counts *dparetov1.TrialCounts) int64 {
	return counts.GetQueued() + counts.GetActive() + counts.GetStopping()
}

// SettledTrials returns the number of trials in a terminal state.
func SettledTrials(counts *dparetov1.TrialCounts) int64 {
	return counts.GetSucceeded() + counts.GetInfeasible() + counts.GetFailed()
}

// Explain sets the state of the study in a response and, if trials are missing, why no more can be
// created.
func (c *Change) Explain(resp *dparetov1.SuggestTrialsResponse, missing int) {
	resp.StudyState, _ = c.studies.State(c.Study)
	if missing == 0 {
		return
	}
	counts := c.Study.GetStudy().GetTrialCounts()
	held := counts.GetActive() + counts.GetStopping()
	limit := c.Study.GetStudy().GetSpec().GetBudget().GetMaxParallelTrials()
	end, reason := spent(c.studies, c.Study)
	switch {
	case resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_PAUSED:
		resp.EndReason = dparetov1.EndReason_END_REASON_PAUSED
	case resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_PREPARING:
		resp.EndReason = dparetov1.EndReason_END_REASON_PREPARING
		resp.RetryAfter = durationpb.New(retryAfter)
	case c.Policy.Traits().Hidden && resp.GetStudyState() == dparetov1.StudyState_STUDY_STATE_ACTIVE && reason != "":
		ExplainParallelism(resp) // that no trial follows tells how many there are
	case reason != "":
		resp.EndReason = end
		if held > int64(len(resp.GetTrials())) {
			resp.RetryAfter = durationpb.New(retryAfter) // one of them may be released, or change the answer
		}
	case limit > 0 && held >= limit:
		ExplainParallelism(resp)
	}
}

// ExplainParallelism says that other workers hold as many trials as may run at a time.
func ExplainParallelism(resp *dparetov1.SuggestTrialsResponse) {
	resp.EndReason = dparetov1.EndReason_END_REASON_PARALLELISM
	resp.RetryAfter = durationpb.New(retryAfter)
}
