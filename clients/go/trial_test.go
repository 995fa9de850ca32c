package dpareto

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/durationpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

func TestTrialValues(t *testing.T) {
	trial := newTrial(nil, trialMessage())
	if trial.Name() != "studies/s/trials/3" || trial.Number() != 3 || trial.Attempt() != 2 || trial.Replicates() != 4 {
		t.Errorf("%s: number %d, attempt %d, replicates %d", trial.Name(), trial.Number(), trial.Attempt(), trial.Replicates())
	}
	if n := newTrial(nil, &dparetov1.Trial{}).Replicates(); n != 1 {
		t.Errorf("default of replicates is %d", n)
	}
	want := map[string]any{"rate": 0.5, "lot": int64(1 << 60), "kind": "huber"}
	if diff := cmp.Diff(want, trial.Parameters()); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if trial.Float("rate") != 0.5 || trial.Float("lot") != 1<<60 || trial.Int("lot") != 1<<60 || trial.Text("kind") != "huber" {
		t.Error("typed values differ from Parameters")
	}
	if !proto.Equal(trial.Message(), trialMessage()) {
		t.Error("Message is not what was handed out")
	}
	for name, read := range map[string]func(){
		"no numerical parameter kind":    func() { trial.Float("kind") },
		"no numerical parameter none":    func() { trial.Float("none") },
		"no integer parameter rate":      func() { trial.Int("rate") },
		"no categorical parameter lot":   func() { trial.Text("lot") },
		"no categorical parameter Kind":  func() { trial.Text("Kind") },
		"no integer parameter kind":      func() { trial.Int("kind") },
		"no integer parameter otherwise": func() { trial.Int("otherwise") },
	} {
		func() {
			defer func() {
				if got, want := recover(), "dpareto: studies/s/trials/3 has "+name; got != want {
					t.Errorf("panic %v, want %s", got, want)
				}
			}()
			read()
		}()
	}
}

// What a worker tells arrives as it should, under the lease's token.
func TestTrialRequests(t *testing.T) {
	const name, token = "studies/s/trials/3", "token"
	long := strings.Repeat("ä", maxReason)
	measurement := &dparetov1.Measurement{Step: 2, Metrics: map[string]*dparetov1.MetricValue{"error": {Runs: []float64{0.1, 0.2}}}}
	timed := proto.CloneOf(measurement)
	timed.Elapsed = durationpb.New(1500 * time.Millisecond)
	final := proto.CloneOf(measurement)
	final.Step = 0
	metrics := Metrics{"error": {0.1, 0.2}}
	complete := func(set func(*dparetov1.CompleteTrialRequest)) *dparetov1.CompleteTrialRequest {
		req := &dparetov1.CompleteTrialRequest{Name: name, LeaseToken: token}
		set(req)
		return req
	}
	for _, tt := range []struct {
		name string
		tell func(ctx context.Context, trial *Trial) error
		want proto.Message
	}{
		{
			"Report", func(ctx context.Context, trial *Trial) error { return trial.Report(ctx, 2, metrics) },
			&dparetov1.AddMeasurementRequest{Name: name, LeaseToken: token, Measurement: measurement},
		},
		{
			"ReportMeasurement", func(ctx context.Context, trial *Trial) error {
				return trial.ReportMeasurement(ctx, metrics.Measurement(2, 1500*time.Millisecond))
			},
			&dparetov1.AddMeasurementRequest{Name: name, LeaseToken: token, Measurement: timed},
		},
		{
			"Complete", func(ctx context.Context, trial *Trial) error { return trial.Complete(ctx, metrics) },
			complete(func(r *dparetov1.CompleteTrialRequest) {
				r.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: final}
			}),
		},
		{
			"CompleteMeasurement", func(ctx context.Context, trial *Trial) error { return trial.CompleteMeasurement(ctx, timed) },
			complete(func(r *dparetov1.CompleteTrialRequest) {
				r.Outcome = &dparetov1.CompleteTrialRequest_Measurement{Measurement: timed}
			}),
		},
		{
			"CompleteWithLast", func(ctx context.Context, trial *Trial) error { return trial.CompleteWithLast(ctx) },
			complete(func(r *dparetov1.CompleteTrialRequest) {
				r.Outcome = &dparetov1.CompleteTrialRequest_UseLastMeasurement{UseLastMeasurement: &dparetov1.UseLastMeasurement{}}
			}),
		},
		{
			"Infeasible", func(ctx context.Context, trial *Trial) error { return trial.Infeasible(ctx, "diverged") },
			complete(func(r *dparetov1.CompleteTrialRequest) {
				r.Outcome = &dparetov1.CompleteTrialRequest_Infeasible{Infeasible: &dparetov1.Infeasible{Reason: "diverged"}}
			}),
		},
		{
			"Fail", func(ctx context.Context, trial *Trial) error { return trial.Fail(ctx, long+"more", true) },
			complete(func(r *dparetov1.CompleteTrialRequest) {
				r.Outcome = &dparetov1.CompleteTrialRequest_Failure{Failure: &dparetov1.Failure{Reason: long, Retryable: true}}
			}),
		},
		{
			"Release", func(ctx context.Context, trial *Trial) error { return trial.Release(ctx, "bad \xff byte") },
			&dparetov1.ReleaseTrialRequest{Name: name, LeaseToken: token, Reason: "bad \uFFFD byte"},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := serve(t, func(_ context.Context, n int, req any) (any, error) {
					switch n {
					case 1:
						return nil, status.Error(codes.FailedPrecondition, "another worker has it")
					case 2:
						return nil, status.Error(codes.NotFound, "deleted")
					case 3:
						return nil, status.Error(codes.InvalidArgument, "wrong")
					}
					switch req.(type) {
					case *dparetov1.AddMeasurementRequest:
						return &dparetov1.AddMeasurementResponse{}, nil
					case *dparetov1.ReleaseTrialRequest:
						return &dparetov1.ReleaseTrialResponse{}, nil
					default:
						return &dparetov1.CompleteTrialResponse{}, nil
					}
				})
				if err := tt.tell(t.Context(), held(c)); err != nil {
					t.Error(err)
				}
				if diff := cmp.Diff(tt.want, f.requests()[0], protocmp.Transform()); diff != "" {
					t.Errorf("request (-want +got):\n%s", diff)
				}
				for _, reason := range []string{"FailedPrecondition: another worker has it", "NotFound: deleted"} {
					err := tt.tell(t.Context(), held(c))
					if !errors.Is(err, ErrLeaseLost) || !strings.HasSuffix(err.Error(), name+": "+reason) {
						t.Errorf("error %v, want ErrLeaseLost because of %s", err, reason)
					}
				}
				err := tt.tell(t.Context(), held(c))
				if errors.Is(err, ErrLeaseLost) || status.Code(err) != codes.InvalidArgument {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func TestReportStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			return &dparetov1.AddMeasurementResponse{ShouldStop: true, StopReason: []string{"", "too slow"}[n]}, nil
		})
		for _, want := range []string{ErrStop.Error(), ErrStop.Error() + ": too slow"} {
			err := held(c).Report(t.Context(), 1, Metrics{"error": {1}})
			if !errors.Is(err, ErrStop) || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("error %v, want %s", err, want)
			}
		}
	})
}

// renewal is the answer to a renewal of a lease.
func renewal(isHeld bool) *dparetov1.RenewLeasesResponse {
	return &dparetov1.RenewLeasesResponse{Results: map[string]*dparetov1.RenewLeasesResponse_Result{
		"studies/s/trials/3": {Held: isHeld},
	}}
}

// The lease is renewed every third of its duration, whatever the clocks say, until
// the run stops it; errors of the server do not end that.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			if n == 1 {
				return nil, status.Error(codes.Internal, "broken for a moment")
			}
			return renewal(true), nil
		})
		ctx, stop := held(c).KeepAlive(t.Context())
		time.Sleep(leaseTime + time.Second) // of the bubble's clock
		if err := ctx.Err(); err != nil {
			t.Error(context.Cause(ctx))
		}
		stop()
		stop()
		if !errors.Is(ctx.Err(), context.Canceled) || errors.Is(context.Cause(ctx), ErrLeaseLost) {
			t.Errorf("after stop: %v, %v", ctx.Err(), context.Cause(ctx))
		}
		time.Sleep(time.Hour)
		want := []time.Duration{leaseTime / 3, 2 * leaseTime / 3, leaseTime}
		if got := f.times(); !slices.Equal(got, want) {
			t.Errorf("renewals at %v, want %v", got, want)
		}
		request := &dparetov1.RenewLeasesRequest{
			Parent: "studies/s", LeaseTokens: map[string]string{"studies/s/trials/3": "token"},
		}
		if diff := cmp.Diff(request, f.requests()[0], protocmp.Transform()); diff != "" {
			t.Errorf("request (-want +got):\n%s", diff)
		}
	})
}

func TestKeepAliveLost(t *testing.T) {
	for name, script := range map[string]func(int) (any, error){
		"not held": func(n int) (any, error) { return renewal(n == 0), nil },
		"deleted": func(n int) (any, error) {
			if n == 0 {
				return renewal(true), nil
			}
			return nil, status.Error(codes.NotFound, "the study is gone")
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) { return script(n) })
				ctx, stop := held(c).KeepAlive(t.Context())
				defer stop()
				<-ctx.Done()
				if !errors.Is(context.Cause(ctx), ErrLeaseLost) {
					t.Errorf("cause %v", context.Cause(ctx))
				}
				time.Sleep(time.Hour)
				if n := len(f.times()); n != 2 {
					t.Errorf("%d renewals, want 2", n)
				}
			})
		})
	}
}

// A request to stop ends a run once the server has a measurement of it.
func TestKeepAliveStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(_ context.Context, _ int, req any) (any, error) {
			if _, ok := req.(*dparetov1.AddMeasurementRequest); ok {
				return &dparetov1.AddMeasurementResponse{}, nil
			}
			answer := renewal(true)
			answer.Results["studies/s/trials/3"].ShouldStop = true
			return answer, nil
		})
		trial := held(c)
		ctx, stop := trial.KeepAlive(t.Context())
		defer stop()
		time.Sleep(leaseTime)
		if err := ctx.Err(); err != nil {
			t.Errorf("without a measurement: %v", context.Cause(ctx))
		}
		require.NoError(t, trial.Report(ctx, 1, Metrics{"error": {1}}))
		<-ctx.Done()
		if cause := context.Cause(ctx); !errors.Is(cause, ErrStop) || errors.Is(cause, ErrLeaseLost) {
			t.Errorf("cause %v", cause)
		}
	})
}

// A lease whose times are unknown is renewed as if it had the default duration, and
// the context of the run ends the renewals.
func TestKeepAliveDefault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(context.Context, int, any) (any, error) { return renewal(true), nil })
		message := trialMessage()
		message.StartTime = nil
		ctx, cancel := context.WithTimeout(t.Context(), defaultLease/3+time.Second)
		defer cancel()
		ctx, stop := newTrial(c.Study("s"), message).KeepAlive(ctx)
		defer stop()
		<-ctx.Done()
		if got := f.times(); !slices.Equal(got, []time.Duration{defaultLease / 3}) {
			t.Errorf("renewals at %v", got)
		}
	})
}

func TestClip(t *testing.T) {
	for in, want := range map[string]int{
		"":                                    0,
		"reason":                              6,
		strings.Repeat("x", maxReason):        maxReason,
		strings.Repeat("x", maxReason+1):      maxReason,
		strings.Repeat("€", maxReason+1):      maxReason,
		strings.Repeat("\xff\xfe", maxReason): 1,
	} {
		if got := clip(in); utf8.RuneCountInString(got) != want || !utf8.ValidString(got) {
			t.Errorf("clip of %d bytes has %d characters, want %d", len(in), utf8.RuneCountInString(got), want)
		}
	}
}
