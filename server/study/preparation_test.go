package study_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// prepared is a policy of studies that must be prepared.
type prepared struct {
	study.Ordinary

	rich  atomic.Bool // whether the study can be paid for
	begin func(context.Context) error
}

func (p *prepared) FixTerms(ctx context.Context, _ *storev1.StudyRecord, _ *spec.Study) error {
	if p.begin == nil {
		return nil
	}
	return p.begin(ctx)
}

func (p *prepared) Traits() study.Traits { return study.Traits{Prepared: true} }

func (p *prepared) Prepare(_ context.Context, record *storev1.StudyRecord, _ *spec.Study, _ func(done, total int)) error {
	record.Study.Publication = new(dparetov1.Publication)
	return nil
}

func (p *prepared) Pay(*store.Tx, *storev1.StudyRecord, *spec.Study, time.Time) error {
	if !p.rich.Load() {
		return status.Error(codes.ResourceExhausted, "0.25 is left")
	}
	return nil
}

// of returns the policy as an option.
func (p *prepared) of(*study.Studies, *dparetov1.StudySpec) study.Policy { return p }

// after is a store that calls a function after updates.
type after struct {
	store.KV

	call func()
}

func (a after) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	err := a.KV.Update(ctx, scopes, fn)
	if err == nil {
		a.call()
	}
	return err
}

// A study that is resumed between the transaction that completes it and the end of its preparation is prepared
// again. What is left of a ledger is not in the reason.
func TestResumeBeforePreparationEnds(t *testing.T) {
	var p prepared
	var s *enginetest.Service
	const name = "studies/s"
	var updates atomic.Int64
	s = enginetest.New(t, enginetest.Options{Policies: p.of, Around: func(kv store.KV) store.KV {
		return after{kv, func() {
			if s == nil || updates.Add(1) != 2 { // the creation, then the end of the preparation
				return
			}
			before, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: name})
			const want = "no trial was handed out: the budget of a ledger does not pay for the study"
			if study := before.GetStudy(); err != nil || study.GetState() != dparetov1.StudyState_STUDY_STATE_COMPLETED || study.GetStateReason() != want {
				t.Errorf("after the preparation: %v, %v", before, err)
			}
			p.rich.Store(true)
			resumed, err := s.ResumeStudy(t.Context(), &dparetov1.ResumeStudyRequest{Name: name})
			if err != nil || resumed.GetStudy().GetState() != dparetov1.StudyState_STUDY_STATE_PREPARING {
				t.Errorf("resumed: %v, %v", resumed, err)
			}
		}}
	}})
	require.NoError(t, require.ErrOf(s.CreateStudy(t.Context(), &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: enginetest.SimpleSpec()}})))
	for ; ; time.Sleep(time.Millisecond) { // until something prepares the study, as long as go test lets it
		resp, err := s.GetStudy(t.Context(), &dparetov1.GetStudyRequest{Name: name})
		require.NoError(t, err)
		if resp.GetStudy().GetState() == dparetov1.StudyState_STUDY_STATE_ACTIVE {
			break
		}
	}
}

// A policy fixes the terms of a new study in the pool, also to validate it, and the end of the call ends that.
func TestBeginRunsInPool(t *testing.T) {
	for _, validate := range []bool{false, true} {
		var p prepared
		s := enginetest.New(t, enginetest.Options{Policies: p.of})
		ctx, cancel := context.WithCancel(t.Context())
		p.begin = func(ctx context.Context) error {
			short, stop := context.WithTimeout(ctx, 20*time.Millisecond)
			defer stop()
			if err := s.Pool.Run(short, pool.Analysis, func(context.Context) error { return nil }); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the only slot of the pool is free: %v", err)
			}
			cancel()
			return ctx.Err()
		}
		_, err := s.CreateStudy(ctx, &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{Spec: enginetest.SimpleSpec()}, ValidateOnly: validate})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("validate_only %t: %v", validate, err)
		}
	}
}
