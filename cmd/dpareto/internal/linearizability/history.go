// Package linearizability searches for an order that explains what clients of a server were told.
package linearizability

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
	"google.golang.org/grpc"

	dpareto "github.com/dpareto/dpareto/clients/go"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// patience bounds the search for an order of the calls about one trial, study or ledger.
const patience = 30 * time.Second

// History is every answered call of some clients, in real time, by what it is about: trials, studies
// and ledgers. Calls about one of them must be explained by an order that real time allows.
//
// A call without an answer may have taken effect, or take it later. So an answer about a trial or a
// study may say more than the calls before it explain, but never less: a trial may have got further
// attempts, or an end, and a revision may have grown. All releases from a ledger are known in the
// end, so that its charges must be explained exactly.
type History struct {
	began time.Time

	mu     sync.Mutex
	calls  map[string][]porcupine.Operation
	client int
	first  map[string]time.Time // when a request with an id was first sent
}

// NewHistory returns a history without calls, which begins now.
func NewHistory() *History {
	return &History{began: time.Now(), calls: make(map[string][]porcupine.Operation), first: make(map[string]time.Time)}
}

// observed says what an answer tells of a trial, or of anything that only grows.
type observed struct {
	attempt  int32  // of a trial
	isNew    bool   // the attempt begins with this call
	isHeld   bool   // a worker's measurement was accepted
	end      string // how the trial ended, "" before
	revision int64  // of a study
	isRead   bool   // all earlier answers had at most this revision
}

// state is what answers so far said.
type state struct {
	attempt  int32
	end      string
	revision int64
}

// answers is the sequential behaviour of a trial or a study.
var answers = porcupine.Model{
	Init: func() any { return state{} },
	Step: func(before, _, output any) (bool, any) {
		s, o := before.(state), output.(observed)
		switch {
		case o.isRead && o.revision < s.revision,
			o.isNew && (s.end != "" || o.attempt <= s.attempt),
			o.isHeld && s.end != "",
			o.end != "" && s.end != "" && o.end != s.end,
			o.end == "" && s.end != "" && o.attempt > 0 && !o.isHeld && !o.isNew,
			o.attempt > 0 && o.attempt < s.attempt && !o.isNew:
			return false, s
		}
		return true, state{max(s.attempt, o.attempt), max(s.end, o.end), max(s.revision, o.revision)}
	},
}

// charge is what a call about a ledger tells.
type charge struct {
	release int64 // number of the release, which this call made; or
	charges int64 // number of charges
}

// charges is the sequential behaviour of a ledger that was charged so often before: releases have
// consecutive numbers.
func charges(before int64) porcupine.Model {
	return porcupine.Model{
		Init: func() any { return int64(0) },
		Step: func(releases, _, output any) (bool, any) {
			n, c := releases.(int64), output.(charge)
			if c.release > 0 {
				return c.release == n+1, n + 1
			}
			return c.charges == n+before, n
		},
	}
}

// Listen returns the option of a client whose calls the history notes.
func (h *History) Listen() dpareto.Option {
	h.mu.Lock()
	h.client++
	id := h.client
	h.mu.Unlock()
	return dpareto.WithDialOptions(grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
			start := h.sent(req)
			err := invoke(ctx, method, req, reply, conn, options...)
			if err == nil {
				h.answered(id, start, req, reply)
			}
			return err
		}))
}

// sent returns when a request was first sent: a repetition may get the answer to the first.
func (h *History) sent(req any) time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	r, ok := req.(interface{ GetRequestId() string })
	if !ok || r.GetRequestId() == "" {
		return now
	}
	if h.first[r.GetRequestId()].IsZero() {
		h.first[r.GetRequestId()] = now
	}
	return h.first[r.GetRequestId()]
}

// answered notes what an answer says.
func (h *History) answered(client int, start time.Time, req, reply any) {
	end := time.Now()
	h.mu.Lock()
	defer h.mu.Unlock()
	add := func(about string, o any) {
		h.calls[about] = append(h.calls[about], porcupine.Operation{
			ClientId: client, Call: start.Sub(h.began).Nanoseconds(), Return: end.Sub(h.began).Nanoseconds(), Output: o,
		})
	}
	trial := func(t *dparetov1.Trial, isNew bool) {
		o := observed{attempt: t.GetAttempt(), isNew: isNew}
		if t.GetEndTime() != nil {
			o.end = fmt.Sprint(t.GetState(), t.GetStateReason(), t.GetFinalMeasurement())
		}
		add(t.GetName(), o)
		study, _, _ := strings.Cut(t.GetName(), "/trials/")
		add(study, observed{revision: t.GetRevision()})
	}
	switch r := reply.(type) {
	case *dparetov1.SuggestTrialsResponse:
		for _, t := range r.GetTrials() {
			trial(t, true)
		}
	case *dparetov1.AddMeasurementResponse:
		add(req.(*dparetov1.AddMeasurementRequest).GetName(), observed{isHeld: true})
	case *dparetov1.CompleteTrialResponse:
		trial(r.GetTrial(), false)
	case *dparetov1.ReleaseTrialResponse:
		trial(r.GetTrial(), false)
	case *dparetov1.GetTrialResponse:
		trial(r.GetTrial(), false)
	case *dparetov1.GetStudyResponse:
		add(r.GetStudy().GetName(), observed{revision: r.GetStudy().GetRevision(), isRead: true})
	case *dparetov1.SelectPrivatelyResponse:
		add(r.GetRelease().GetLedger(), charge{release: releaseNumber(r.GetRelease().GetName())})
	case *dparetov1.GetLedgerResponse:
		add(r.GetLedger().GetName(), charge{charges: r.GetLedger().GetCharges()})
	}
}

// releaseNumber returns the number in the name of a release, 0 if it is of something else.
func releaseNumber(name string) int64 {
	_, number, _ := strings.Cut(name, "/releases/")
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// CheckLedger reports if no order explains the calls about a ledger. charged are the resources of its
// charges in the end: releases among them that were acknowledged to no client took effect at any
// time.
func (h *History) CheckLedger(t *testing.T, ledger string, charged map[string]bool) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	calls := h.calls[ledger]
	delete(h.calls, ledger)
	told := make(map[int64]bool)
	calls = slices.DeleteFunc(calls, func(o porcupine.Operation) bool {
		n := o.Output.(charge).release
		repeated := told[n]
		told[n] = n > 0
		return repeated
	})
	before := int64(0)
	for name := range charged {
		switch n := releaseNumber(name); {
		case n == 0:
			before++
		case !told[n]:
			h.client++
			calls = append(calls, porcupine.Operation{ClientId: h.client, Call: 0, Return: time.Since(h.began).Nanoseconds(), Output: charge{release: n}})
		}
	}
	if result := porcupine.CheckOperationsTimeout(charges(before), calls, patience); result != porcupine.Ok {
		t.Errorf("%s: no order explains the %d calls about it (%v)", ledger, len(calls), result)
	}
	t.Logf("%d calls about %s have an order", len(calls), ledger)
}

// Delay returns how long after a moment the last of the calls that were under way then, and were answered
// in the end, took from there on.
func (h *History) Delay(moment time.Time) (longest time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := moment.Sub(h.began).Nanoseconds()
	for _, calls := range h.calls {
		for _, call := range calls {
			if call.Call <= at {
				longest = max(longest, time.Duration(call.Return-at))
			}
		}
	}
	return longest
}

// Check reports what no order of the calls explains.
func (h *History) Check(t *testing.T) {
	t.Helper()
	h.mu.Lock()
	defer h.mu.Unlock()
	calls, trials := 0, 0
	for _, about := range slices.Sorted(maps.Keys(h.calls)) {
		calls += len(h.calls[about])
		if strings.Contains(about, "/trials/") {
			trials++
		}
		if result := porcupine.CheckOperationsTimeout(answers, h.calls[about], patience); result != porcupine.Ok {
			t.Errorf("%s: no order explains the %d calls about it (%v)", about, len(h.calls[about]), result)
		}
	}
	t.Logf("%d answers about %d trials and %d studies have an order", calls, trials, len(h.calls)-trials)
	if len(h.calls) == 0 {
		t.Error("no call was noted: the test shows nothing")
	}
}
