package study

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/store"
)

const (
	// MaxSuggestions bounds the trials in one call.
	MaxSuggestions = 1000
	// MaxReturns bounds how often workers may give a trial back. Each attempt is a part of the
	// trial, with a reason, and GetTrial returns them all in one message.
	MaxReturns = 100
)

// Selection chooses among existing trials.
type Selection interface {
	// Takes reports whether a trial is wanted.
	Takes(trial *dparetov1.Trial) bool
	// Took notes that a trial was handed out.
	Took(trial *dparetov1.Trial)
}

// reasonUnaffordable is the state reason of a trial that the policy cannot afford to hand out.
const reasonUnaffordable = "the privacy budget does not cover handing it out (again)"

// NewToken returns a random fencing token of 128 bits, in hex.
func NewToken() string {
	var b [16]byte
	if _, err := rand.Read(b[:]); err != nil {
		panic(err) // crypto/rand does not fail (see its documentation)
	}
	return hex.EncodeToString(b[:])
}

// newProcess returns a random number that tells this process from others that served the store.
func newProcess() uint64 { return mathrand.Uint64() }

// LastToken returns the token of a trial's last lease, or "". The trial itself never has it.
func LastToken(record *storev1.TrialRecord) string {
	if tokens := record.GetLeaseTokens(); len(tokens) > 0 {
		return tokens[len(tokens)-1]
	}
	return ""
}

// HandedOut returns a copy of a trial for the worker that got it: with the token of its lease, and
// what else only that worker may see.
func (c *Change) HandedOut(record *storev1.TrialRecord) *dparetov1.Trial {
	trial := proto.CloneOf(record.GetTrial())
	trial.Lease.Token = LastToken(record)
	c.Policy.AddWorkerSecrets(c, trial)
	return trial
}

// IsHeld reports whether a trial is held under a token. An expired lease stays valid until another
// worker gets the trial.
func IsHeld(record *storev1.TrialRecord, token string) bool {
	return record.GetTrial().GetLease() != nil && token != "" && LastToken(record) == token
}

// checkHeld refuses a write under any token but the current lease's.
func checkHeld(record *storev1.TrialRecord, token string) error {
	if IsHeld(record, token) {
		return nil
	}
	trial := record.GetTrial()
	return status.Errorf(codes.FailedPrecondition,
		"this token does not hold the lease of %s; the trial is %s", trial.GetName(), trial.GetState())
}

// CheckWorker returns PERMISSION_DENIED if another principal uses a worker id in the study. With the
// id it would get that principal's trials, and their tokens.
func (c *Change) CheckWorker(principal, worker string) error {
	if principal == "" {
		return nil // the server has no credentials
	}
	owner, err := c.Tx.Worker(c.ID, worker)
	if err == nil && owner != "" && owner != principal {
		err = status.Errorf(codes.PermissionDenied, "worker_id %q belongs to another principal in %s; choose another", worker, c.Study.GetStudy().GetName())
	}
	return err
}

// KeepWorker notes the first principal that uses a worker id in the study. It fails if the study is
// too large to grow.
func (c *Change) KeepWorker(principal, worker string) error {
	owner, err := c.Tx.Worker(c.ID, worker)
	if err != nil || owner != "" || principal == "" {
		return err
	}
	if err := c.checkSize(); err != nil {
		return err
	}
	c.Tx.PutWorker(c.ID, worker, principal)
	return nil
}

// HandOut gives a trial to a worker under a new lease. An attempt that still holds it ends. It fails
// if the study is too large to grow, and if the policy cannot afford the trial: call Afford first.
func (c *Change) HandOut(record *storev1.TrialRecord, worker string) error {
	if err := c.checkSize(); err != nil {
		return err
	}
	tc := &trialChange{c, record}
	if err := tc.loseAttempt(worker); err != nil {
		return err
	}
	if err := c.Policy.Charge(c, record); err != nil {
		return err
	}
	trial := record.GetTrial()
	record.LeaseTokens = append(record.LeaseTokens, NewToken())
	trial.State = dparetov1.TrialState_TRIAL_STATE_ACTIVE
	trial.StateReason = ""
	trial.Attempt++
	trial.StartTime = timestamppb.New(c.Now)
	trial.WorkerId, trial.Lease = worker, &dparetov1.Lease{WorkerId: worker}
	tc.renew()
	return nil
}

// HandOutExisting hands a worker up to count existing trials that the selection takes: the worker's
// own if resume is set, then trials with expired leases, then queued ones. On the way it fails
// trials that were handed out too often, and completes stopping trials whose workers are gone.
func (c *Change) HandOutExisting(worker string, count int, resume bool, selection Selection) ([]*dparetov1.Trial, error) {
	open, err := findOpen(&c.Tx.ReadTx, c.ID, c.time, worker, resume)
	if err != nil {
		return nil, err
	}
	next := c.Study.GetNextTrialNumber()
	if err := settleAbandoned(c, open.stopped); err != nil {
		return nil, err
	}
	if c.Study.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_PAUSED {
		return nil, nil
	}
	var trials []*dparetov1.Trial
	counts := c.Study.GetStudy().GetTrialCounts()
	limit := c.Study.GetStudy().GetSpec().GetBudget().GetMaxParallelTrials()
	numbers := open.inTurn()
	for i, number := range numbers {
		isQueued := i >= len(numbers)-len(open.queued)
		if len(trials) == count || (isQueued && limit > 0 && counts.GetActive()+counts.GetStopping() >= limit) {
			break
		}
		tc, err := c.trial(number)
		if err != nil {
			return nil, err
		}
		record, trial := tc.record, tc.record.GetTrial()
		before := trial.GetState()
		if !selection.Takes(trial) {
			continue
		}
		affords := c.Policy.Afford(c, record)
		if affords == AffordableLater {
			continue
		}
		tc.noteExpiry()
		handedOut := false
		switch {
		case tc.attemptsSpent():
			tc.finish(dparetov1.TrialState_TRIAL_STATE_FAILED,
				fmt.Sprintf("handed out %d times without a result", trial.GetAttempt()))
		case affords == Unaffordable:
			tc.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, reasonUnaffordable)
		default:
			if err := c.HandOut(record, worker); err != nil {
				return nil, err
			}
			selection.Took(trial)
			handedOut = true
		}
		if err := tc.put(before); err != nil {
			return nil, err
		}
		if handedOut {
			trials = append(trials, c.HandedOut(record))
		}
	}
	if len(trials) < count && c.Study.GetNextTrialNumber() > next { // trials that failed here were followed by another
		more, err := c.HandOutExisting(worker, count-len(trials), false, selection)
		return append(trials, more...), err
	}
	return trials, nil
}

// openTrials are the numbers of a study's open trials that a worker may get, and of the stopping ones that end.
type openTrials struct{ own, expired, queued, stopped []int64 }

// inTurn returns the trials that a worker may get, the first ones first.
func (o openTrials) inTurn() []int64 { return slices.Concat(o.own, o.expired, o.queued) }

// findOpen returns the trials of a study that are open for a worker: its own only if it resumes.
func findOpen(tx *store.ReadTx, id string, now reading, worker string, resume bool) (open openTrials, err error) {
	err = tx.OpenTrials(id, func(number int64, entry *storev1.OpenTrialRecord) (bool, error) {
		isOwn := resume && entry.GetWorkerId() == worker
		isExpired := now.isExpired(entry.GetLeaseEnd())
		switch entry.GetState() {
		case dparetov1.TrialState_TRIAL_STATE_STOPPING:
			if isOwn || isExpired {
				open.stopped = append(open.stopped, number)
			}
		case dparetov1.TrialState_TRIAL_STATE_ACTIVE:
			if isOwn {
				open.own = append(open.own, number)
			} else if isExpired {
				open.expired = append(open.expired, number)
			}
		case dparetov1.TrialState_TRIAL_STATE_QUEUED:
			open.queued = append(open.queued, number)
		default:
			return false, fmt.Errorf("trial %d of study %s is in the index of open trials, but is %s", number, id, entry.GetState())
		}
		return true, nil
	})
	return open, err
}

// settleAbandoned completes stopping trials whose workers are gone.
func settleAbandoned(c *Change, numbers []int64) error {
	for _, number := range numbers {
		tc, err := c.trial(number)
		if err != nil {
			return err
		}
		tc.noteExpiry()
		tc.settleStopped()
		if err := tc.put(dparetov1.TrialState_TRIAL_STATE_STOPPING); err != nil {
			return err
		}
	}
	return nil
}

// renew extends the lease of the trial.
func (c *trialChange) renew() {
	record := c.record
	length := c.Compiled.LeaseDuration()
	record.Trial.Lease.ExpireTime = timestamppb.New(c.Now.Add(length))
	record.LeaseEnd = c.time.leaseEnd(length)
}

// noteExpiry counts the lease of the trial as expired if it has run out. It is called before the trial
// is handed out again, settled or given up.
func (c *trialChange) noteExpiry() {
	if c.record.GetTrial().GetLease() != nil && c.time.isExpired(c.record.GetLeaseEnd()) {
		c.events.Expired++
	}
}

// RenewLeases implements StudyService.
func (t *Trials) RenewLeases(ctx context.Context, req *dparetov1.RenewLeasesRequest) (*dparetov1.RenewLeasesResponse, error) {
	id, err := resource.ParseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	if n := len(req.GetLeaseTokens()); n < 1 || n > MaxSuggestions {
		return nil, invalid.Field("lease_tokens", "must hold 1 to %d tokens, holds %d", MaxSuggestions, n)
	}
	numbers := make(map[string]int64, len(req.GetLeaseTokens()))
	for name := range req.GetLeaseTokens() {
		study, number, err := resource.ParseTrialName(fmt.Sprintf("lease_tokens[%q]", name), name)
		if err != nil {
			return nil, err
		}
		if study != id {
			return nil, invalid.Field(fmt.Sprintf("lease_tokens[%q]", name), "is not a trial of %s", req.GetParent())
		}
		numbers[name] = number
	}
	return answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.RenewLeasesResponse) error {
		resp.Results = make(map[string]*dparetov1.RenewLeasesResponse_Result)
		for _, name := range slices.Sorted(maps.Keys(numbers)) {
			number := numbers[name]
			result := new(dparetov1.RenewLeasesResponse_Result)
			resp.Results[name] = result
			record, err := c.Tx.BareTrial(id, number)
			if errors.Is(err, store.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			tc, trial := &trialChange{c, record}, record.GetTrial()
			if !IsHeld(record, req.GetLeaseTokens()[name]) {
				continue
			}
			tc.renew()
			before := trial.GetState()
			tc.stopEarly(0)
			result.Held = true
			result.ShouldStop = trial.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING
			result.ExpireTime = trial.GetLease().GetExpireTime()
			if err := tc.put(before); err != nil {
				return err
			}
		}
		return c.skipAnswerIfFull()
	})
}

// ReleaseTrial implements StudyService.
func (t *Trials) ReleaseTrial(ctx context.Context, req *dparetov1.ReleaseTrialRequest) (*dparetov1.ReleaseTrialResponse, error) {
	id, number, err := resource.ParseTrialName("name", req.GetName())
	if err != nil {
		return nil, err
	}
	var fields invalid.Fields
	CheckReason("reason", req.GetReason(), false, &fields)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	return answer(ctx, t.studies, id, req, func(c *Change, resp *dparetov1.ReleaseTrialResponse) error {
		tc, err := c.heldTrial(c.Tx.Trial, number, req.GetLeaseToken())
		if err != nil {
			return err
		}
		record, trial := tc.record, tc.record.GetTrial()
		resp.Trial = trial
		if wasReturned(record, req.GetLeaseToken()) {
			return c.skipAnswerIfFull() // a retry: the response was lost
		}
		if err := checkHeld(record, req.GetLeaseToken()); err != nil {
			return err
		}
		before := trial.GetState()
		switch {
		case before == dparetov1.TrialState_TRIAL_STATE_STOPPING:
			tc.settleStopped()
		case c.Policy.Traits().Hidden:
			tc.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, c.reason(req.GetReason()))
		default:
			if err := tc.requeue(dparetov1.AttemptOutcome_ATTEMPT_OUTCOME_RELEASED, c.reason(req.GetReason())); err != nil {
				return err
			}
			record.Releases++
		}
		return tc.put(before)
	})
}

// wasReturned reports whether a worker gave a trial back under a token, and not handed out since. The
// completion token may belong to an earlier attempt that failed.
func wasReturned(record *storev1.TrialRecord, token string) bool {
	completion := record.GetCompletionToken()
	return token != "" && LastToken(record) == token && record.GetTrial().GetLease() == nil &&
		(completion == "" || completion != token && record.GetTrial().GetState() == dparetov1.TrialState_TRIAL_STATE_QUEUED)
}

// attemptsSpent reports whether the trial has used up its attempts. Attempts that workers released do
// not count, but have a bound of their own. In a hidden study there is one: running a candidate again
// until it succeeds would draw it from another distribution, which may depend on the data.
func (c *trialChange) attemptsSpent() bool {
	if c.Policy.Traits().Hidden {
		return c.record.GetTrial().GetAttempt() > 0
	}
	releases := c.record.GetReleases()
	return int64(c.record.GetTrial().GetAttempt())-releases >= int64(c.Compiled.MaxAttempts()) || releases >= MaxReturns
}

// settleStopped completes the trial, a stopping one, whose worker is gone: with its last measurement, or as
// failed if it has none.
func (c *trialChange) settleStopped() {
	record := c.record
	record.CompletionToken, record.CompletionDigest = "", nil // from an earlier attempt that failed
	if len(record.GetTrial().GetMeasurements()) > 0 {
		c.finishWithLast()
		return
	}
	c.finish(dparetov1.TrialState_TRIAL_STATE_FAILED, record.GetTrial().GetStateReason())
}
