package engine

import (
	"context"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/study"
)

// SuggestTrials implements StudyService. In one transaction it hands out existing trials, and new
// ones of a design that needs no history. The queue creates the rest.
func (e *Engine) SuggestTrials(ctx context.Context, req *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	id, err := resource.ParseStudyName("parent", req.GetParent())
	if err != nil {
		return nil, err
	}
	var fields invalid.Fields
	if n := req.GetCount(); n < 0 || n > study.MaxSuggestions {
		fields.Addf("count", "must be in [0, %d], is %d", study.MaxSuggestions, n)
	}
	fields.CheckID("worker_id", req.GetWorkerId(), study.MaxWorkerID)
	if err := fields.Err(); err != nil {
		return nil, err
	}
	if err := e.studies.Assess(ctx, id, req.GetWorkerId(), resumes(req)); err != nil {
		return nil, err
	}
	resp := new(dparetov1.SuggestTrialsResponse)
	r, err := study.NewRequest(req, resp)
	if err != nil {
		return nil, err
	}
	var uid string
	var got progress
	err = e.studies.Change(ctx, id, r, func(c *study.Change) error {
		uid = c.Study.GetStudy().GetUid()
		got, err = e.handOut(ctx, c, r, req, resp)
		return err
	})
	if err != nil {
		return nil, err
	}
	if resp.GetEndReason() == dparetov1.EndReason_END_REASON_PREPARING {
		e.studies.Preparations().TakeOver(id, uid) //nolint:contextcheck // it outlives the call
	}
	if r.Repeated || got.missing == 0 {
		return resp, nil
	}
	// If this fails, the worker keeps the trials so far and gets them when it asks again.
	return e.suggest(ctx, id, uid, &demand{ctx: ctx, request: r, worker: req.GetWorkerId(), progress: got})
}

// progress is how far a call of SuggestTrials has got.
type progress struct {
	response *dparetov1.SuggestTrialsResponse // with the trials so far
	missing  int                              // trials still to be created
	wanted   *conditions                      // nil without conditions
}

// handOut fills in the response to a call as far as one transaction can, unless an earlier call with
// the same request id got a part of its trials.
func (e *Engine) handOut(ctx context.Context, c *study.Change, r *study.Request, req *dparetov1.SuggestTrialsRequest, resp *dparetov1.SuggestTrialsResponse) (progress, error) {
	principal, worker := auth.FromContext(ctx).Name, req.GetWorkerId()
	if err := c.CheckWorker(principal, worker); err != nil {
		return progress{}, err
	}
	count := max(1, int(req.GetCount()))
	if c.Policy.Traits().Hidden {
		count = 1 // one that asks for many would learn how many there are
	}
	wanted, err := conditionsOf(c.Policy.Traits(), c.Compiled, req, count)
	if err != nil {
		return progress{}, err
	}
	c.Tx.AfterCommit(func() { e.cacheOf(c.Cached).prepared.wanted(e.now()) })
	if r.Resumed {
		wanted = wanted.fulfilledBy(resp.GetTrials())
	} else if resp.Trials, err = c.HandOutExisting(worker, count, resumes(req), wanted); err != nil {
		return progress{}, err
	}
	missing := count - len(resp.GetTrials())
	c.Explain(resp, missing)
	if !isEnd(resp) && missing > 0 && wanted == nil {
		drawn, err := e.drawAtOnce(ctx, c, worker, missing)
		if err != nil {
			return progress{}, err
		}
		missing = drawn.complete(c, resp, missing)
	}
	if isEnd(resp) {
		missing = 0
	}
	wanted.sort(resp)
	r.Effect = effectOf(resp, missing)
	if len(resp.GetTrials()) > 0 || missing > 0 { // idle workers poll: an id that gets nothing is not kept
		err = c.KeepWorker(principal, worker)
	}
	return progress{resp, missing, wanted}, err
}

// resumes reports whether a worker takes back the trials that it has.
func resumes(req *dparetov1.SuggestTrialsRequest) bool { return req.Resume == nil || req.GetResume() }

// isEnd reports whether a response says why there are no more trials.
func isEnd(resp *dparetov1.SuggestTrialsResponse) bool {
	return resp.GetEndReason() != dparetov1.EndReason_END_REASON_UNSPECIFIED
}

// effectOf returns the effect of a call with some trials still missing. A response without trials is
// not stored: idle workers poll, and each would cost a write.
func effectOf(resp *dparetov1.SuggestTrialsResponse, missing int) study.Effect {
	switch {
	case len(resp.GetTrials()) == 0:
		return study.EffectNone
	case missing == 0:
		return study.EffectAll
	default:
		return study.EffectPart
	}
}
