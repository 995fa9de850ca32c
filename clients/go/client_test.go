package dpareto

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func TestIsLocal(t *testing.T) {
	for address, want := range map[string]bool{
		"localhost:7400":               true,
		"127.0.0.1:7400":               true,
		"127.8.9.1:7400":               true,
		"[::1]:7400":                   true,
		":7400":                        true,
		"unix:dpareto.sock":            true,
		"unix:///run/dpareto.sock":     true,
		"dns:///localhost:7400":        true,
		"dns://8.8.8.8/localhost:7400": true,
		"dns:///example.org:7400":      false,
		"example.org:7400":             false,
		"10.0.0.1:7400":                false,
		"0.0.0.0:7400":                 false,
		"localhost.example.org:7400":   false,
		"passthrough:///anything":      false,
	} {
		if got, err := isLocal(address); got != want || err != nil {
			t.Errorf("isLocal(%q) = %t, %v, want %t", address, got, err, want)
		}
	}
}

func TestDialErrors(t *testing.T) {
	for _, address := range []string{"", "localhost", "localhost:", "1:2:3"} {
		if c, err := Dial(address); err == nil {
			t.Errorf("Dial(%q) gives no error", address)
			_ = c.Close()
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("WithTimeout(0) does not panic")
		}
	}()
	WithTimeout(0)
}

func TestCreateStudy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			if n > 0 {
				return nil, status.Error(codes.AlreadyExists, "differs in spec.seed")
			}
			return &dparetov1.CreateStudyResponse{}, nil
		})
		s, err := c.CreateStudy(t.Context(), "s", &dparetov1.Study{DisplayName: "S"})
		if err != nil || s.Name() != "studies/s" {
			t.Fatalf("CreateStudy = %v, %v", s, err)
		}
		want := &dparetov1.CreateStudyRequest{StudyId: "s", Study: &dparetov1.Study{DisplayName: "S"}}
		if diff := cmp.Diff(want, f.requests()[0], protocmp.Transform()); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
		_, err = c.CreateStudy(t.Context(), "s", &dparetov1.Study{})
		if want := "create studies/s: AlreadyExists: differs in spec.seed"; err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
	})
}

// All fields of an invalid request are in the text, even if the message has fewer.
func TestFieldErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(context.Context, int, any) (any, error) {
			s, err := status.New(codes.InvalidArgument, "study.spec.seed: is bad; and 1 more").WithDetails(
				&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{
					{Field: "study.spec.seed", Description: "is bad"},
					{Field: "study.spec.budget", Description: "is worse"},
				}})
			if err != nil {
				t.Error(err)
			}
			return nil, s.Err()
		})
		_, err := c.CreateStudy(t.Context(), "s", &dparetov1.Study{})
		want := "create studies/s: InvalidArgument: study.spec.seed: is bad; study.spec.budget: is worse"
		if err == nil || err.Error() != want {
			t.Errorf("error %v\nwant  %s", err, want)
		}
		if s := status.Convert(err); s.Code() != codes.InvalidArgument || len(s.Details()) != 1 {
			t.Errorf("status %v", s)
		}
	})
}

// Ask waits as long as the server says that a trial may come.
func TestAskWaits(t *testing.T) {
	const active, paused = dparetov1.StudyState_STUDY_STATE_ACTIVE, dparetov1.StudyState_STUDY_STATE_PAUSED
	synctest.Test(t, func(t *testing.T) {
		answers := []*dparetov1.SuggestTrialsResponse{
			nothing(dparetov1.EndReason_END_REASON_BUDGET_SPENT, active, 3*time.Second),
			nothing(dparetov1.EndReason_END_REASON_PARALLELISM, active, 5*time.Second),
			nothing(dparetov1.EndReason_END_REASON_PARALLELISM, active, 0),
			nothing(dparetov1.EndReason_END_REASON_PAUSED, paused, 0),
			nothing(dparetov1.EndReason_END_REASON_PAUSED, paused, 7*time.Second),
			handOut(),
		}
		f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) { return answers[n], nil })
		trial, err := c.Study("s").Ask(t.Context(), "w")
		if err != nil || trial.Number() != 3 {
			t.Fatalf("Ask = %v, %v", trial, err)
		}
		var seconds []float64
		for _, at := range f.times() {
			seconds = append(seconds, at.Seconds())
		}
		if diff := cmp.Diff([]float64{0, 3, 8, 9, 10, 17}, seconds); diff != "" {
			t.Errorf("times of the calls (-want +got):\n%s", diff)
		}
		request := &dparetov1.SuggestTrialsRequest{Parent: "studies/s", Count: 1, WorkerId: "w"}
		for _, got := range f.requests() {
			if diff := cmp.Diff(request, got, protocmp.Transform(), protocmp.IgnoreFields(request, requestID)); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
		}
	})
}

func TestAskDone(t *testing.T) {
	const active, completed = dparetov1.StudyState_STUDY_STATE_ACTIVE, dparetov1.StudyState_STUDY_STATE_COMPLETED
	for _, answer := range []*dparetov1.SuggestTrialsResponse{
		nothing(dparetov1.EndReason_END_REASON_BUDGET_SPENT, active, 0),
		nothing(dparetov1.EndReason_END_REASON_BUDGET_SPENT, completed, 0),
		nothing(dparetov1.EndReason_END_REASON_SPACE_EXHAUSTED, active, 0),
		nothing(dparetov1.EndReason_END_REASON_PRIVACY_BUDGET_SPENT, active, 0),
		nothing(dparetov1.EndReason_END_REASON_UNSPECIFIED, completed, 0),
	} {
		synctest.Test(t, func(t *testing.T) {
			f, c := serve(t, func(context.Context, int, any) (any, error) { return answer, nil })
			if trial, err := c.Study("s").Ask(t.Context(), "w"); trial != nil || !errors.Is(err, ErrDone) {
				t.Errorf("after %v: Ask = %v, %v", answer, trial, err)
			}
			if n := len(f.times()); n != 1 {
				t.Errorf("after %v: asked %d times", answer, n)
			}
		})
	}
}

func TestAskErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			if n == 0 {
				return nil, status.Error(codes.NotFound, "no such study")
			}
			return nothing(dparetov1.EndReason_END_REASON_PAUSED, dparetov1.StudyState_STUDY_STATE_PAUSED, 0), nil
		})
		_, err := c.Study("s").Ask(t.Context(), "w")
		if status.Code(err) != codes.NotFound || errors.Is(err, ErrDone) || errors.Is(err, ErrLeaseLost) {
			t.Errorf("error %v", err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Study("s").Ask(ctx, "w"); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// trialPages answers ListTrials with pages of two of seven trials.
func trialPages(req any) (any, error) {
	pages := map[string]struct {
		numbers []int64
		next    string
	}{
		"":  {[]int64{1, 2}, "a"},
		"a": {[]int64{3, 4}, "b"},
		"b": {nil, "c"},
		"c": {[]int64{7}, ""},
	}
	page := pages[req.(*dparetov1.ListTrialsRequest).GetPageToken()]
	resp := &dparetov1.ListTrialsResponse{NextPageToken: page.next}
	for _, n := range page.numbers {
		resp.Trials = append(resp.Trials, &dparetov1.Trial{Number: n})
	}
	return resp, nil
}

func TestTrials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(_ context.Context, _ int, req any) (any, error) { return trialPages(req) })
		read := func(until int64) (numbers []int64) {
			for trial, err := range c.Study("s").Trials(t.Context()) {
				require.NoError(t, err)
				numbers = append(numbers, trial.GetNumber())
				if trial.GetNumber() == until {
					break
				}
			}
			return numbers
		}
		if got, want := read(0), []int64{1, 2, 3, 4, 7}; !slices.Equal(got, want) {
			t.Errorf("trials %v, want %v", got, want)
		}
		if got, want := read(3), []int64{1, 2, 3}; !slices.Equal(got, want) {
			t.Errorf("trials %v, want %v", got, want)
		}
		if n := len(f.times()); n != 4+2 {
			t.Errorf("%d calls, want 6", n)
		}
	})
}

func TestTrialsError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(_ context.Context, n int, req any) (any, error) {
			if n == 1 {
				return nil, status.Error(codes.Internal, "broken")
			}
			return trialPages(req)
		})
		var numbers []int64
		var errs []error
		for trial, err := range c.Study("s").Trials(t.Context()) {
			if err != nil {
				errs = append(errs, err)
				continue
			}
			numbers = append(numbers, trial.GetNumber())
		}
		if !slices.Equal(numbers, []int64{1, 2}) || len(errs) != 1 || status.Code(errs[0]) != codes.Internal {
			t.Errorf("trials %v and errors %v", numbers, errs)
		}
	})
}

func TestFrontAndHypervolumes(t *testing.T) {
	const kind = dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(_ context.Context, n int, req any) (any, error) {
			if n > 1 {
				return nil, status.Error(codes.NotFound, "no such study")
			}
			if _, ok := req.(*dparetov1.GetFrontRequest); ok {
				return &dparetov1.GetFrontResponse{Front: &dparetov1.Front{Hypervolume: 1.5}}, nil
			}
			return &dparetov1.ListHypervolumesResponse{Points: []*dparetov1.HypervolumePoint{{Hypervolume: 0.5}}}, nil
		})
		s := c.Study("s")
		if front, err := s.Front(t.Context(), kind); err != nil || front.GetHypervolume() != 1.5 {
			t.Errorf("Front = %v, %v", front, err)
		}
		if resp, err := s.Hypervolumes(t.Context(), kind); err != nil || len(resp.GetPoints()) != 1 || resp.GetPoints()[0].GetHypervolume() != 0.5 {
			t.Errorf("Hypervolumes = %v, %v", resp, err)
		}
		want := []any{
			&dparetov1.GetFrontRequest{Name: "studies/s", Kind: kind},
			&dparetov1.ListHypervolumesRequest{Name: "studies/s", Kind: kind},
		}
		if diff := cmp.Diff(want, f.requests(), protocmp.Transform()); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
		if _, err := s.Front(t.Context(), kind); status.Code(err) != codes.NotFound {
			t.Errorf("error %v", err)
		}
		if _, err := s.Hypervolumes(t.Context(), kind); status.Code(err) != codes.NotFound {
			t.Errorf("error %v", err)
		}
	})
}
