package dpareto

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

// Attempts go on, with pauses that double up to the longest and of which half is
// random, until the server is back.
func TestRetryPauses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const failures = 40
		var notices int
		f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
			if n < failures {
				return nil, status.Error(codes.Unavailable, "down")
			}
			return &dparetov1.GetStudyResponse{Study: &dparetov1.Study{Revision: 7}}, nil
		}, WithRetryNotice(func(err error) {
			if status.Code(err) != codes.Unavailable {
				t.Errorf("notice of %v", err)
			}
			notices++
		}))
		study, err := c.Study("s").Get(t.Context())
		if err != nil || study.GetRevision() != 7 {
			t.Fatalf("Get = %v, %v", study, err)
		}
		times := f.times()
		if len(times) != failures+1 || notices != failures {
			t.Fatalf("%d attempts and %d notices, want %d and %d", len(times), notices, failures+1, failures)
		}
		pause := firstPause
		distinct := make(map[time.Duration]bool)
		for i := range failures {
			got := times[i+1] - times[i]
			if got < pause/2 || got > pause {
				t.Errorf("pause %d is %v, want it in [%v, %v]", i, got, pause/2, pause)
			}
			distinct[got] = true
			pause = min(2*pause, longestPause)
		}
		if len(distinct) < failures/2 {
			t.Errorf("only %d distinct pauses: no jitter", len(distinct))
		}
	})
}

func TestRetriedCodes(t *testing.T) {
	for code, want := range map[codes.Code]int{
		codes.Unavailable:        2,
		codes.Aborted:            2,
		codes.Canceled:           2, // by a server that stops
		codes.DeadlineExceeded:   2,
		codes.InvalidArgument:    1,
		codes.NotFound:           1,
		codes.AlreadyExists:      1,
		codes.FailedPrecondition: 1,
		codes.ResourceExhausted:  1,
		codes.PermissionDenied:   1,
		codes.Unimplemented:      1,
		codes.Internal:           1,
		codes.Unknown:            1,
	} {
		t.Run(code.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
					if n == 0 {
						return nil, status.Error(code, "why")
					}
					return &dparetov1.GetStudyResponse{}, nil
				})
				_, err := c.Study("s").Get(t.Context())
				if got := len(f.times()); got != want {
					t.Errorf("%d attempts, want %d", got, want)
				}
				if want > 1 {
					if err != nil {
						t.Error(err)
					}
					return
				}
				if status.Code(err) != code || err.Error() != "read studies/s: "+code.String()+": why" {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

// The context bounds the attempts; its error and the last failure are reported.
func TestRetryEndsWithContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(context.Context, int, any) (any, error) {
			return nil, status.Error(codes.Unavailable, "down")
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		_, err := c.Study("s").Get(ctx)
		if elapsed := time.Since(start); elapsed != time.Minute {
			t.Errorf("gave up after %v", elapsed)
		}
		if !errors.Is(err, context.DeadlineExceeded) || status.Code(err) != codes.DeadlineExceeded ||
			!strings.Contains(err.Error(), "Unavailable: down") {
			t.Errorf("error %v", err)
		}

		ctx, stop := context.WithCancel(t.Context())
		go func() {
			synctest.Wait() // for a pause
			stop()
		}()
		if _, err := c.Study("s").Get(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
}

// An attempt that hangs is given up and repeated.
func TestAttemptTimeout(t *testing.T) {
	for _, tt := range []struct {
		name    string
		options []Option
		call    func(ctx context.Context, c *Client) error
		want    time.Duration
	}{
		{
			"default", nil,
			func(ctx context.Context, c *Client) error { _, err := c.Study("s").Get(ctx); return err },
			DefaultTimeout,
		},
		{
			"ask", nil,
			func(ctx context.Context, c *Client) error { _, err := c.Study("s").Ask(ctx, "w"); return err },
			8 * DefaultTimeout,
		},
		{
			"front", nil,
			func(ctx context.Context, c *Client) error {
				_, err := c.Study("s").Front(ctx, dparetov1.FrontKind_FRONT_KIND_POSTERIOR)
				return err
			},
			8 * DefaultTimeout,
		},
		{
			"option",
			[]Option{WithTimeout(time.Second)},
			func(ctx context.Context, c *Client) error { return held(c).Release(ctx, "") },
			time.Second,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := serve(t, func(ctx context.Context, n int, req any) (any, error) {
					if n == 0 {
						<-ctx.Done()
						return nil, ctx.Err()
					}
					switch req.(type) {
					case *dparetov1.SuggestTrialsRequest:
						return handOut(), nil
					case *dparetov1.ReleaseTrialRequest:
						return &dparetov1.ReleaseTrialResponse{}, nil
					default:
						return &dparetov1.GetStudyResponse{}, nil
					}
				}, tt.options...)
				require.NoError(t, tt.call(t.Context(), c))
				times := f.times()
				if len(times) != 2 {
					t.Fatalf("%d attempts, want 2", len(times))
				}
				if got := times[1] - times[0]; got < tt.want || got > tt.want+firstPause {
					t.Errorf("second attempt after %v, want %v and a pause", got, tt.want)
				}
			})
		})
	}
}

// After a lost answer the same bytes are sent again, with a request id where the lease
// does not tell the server that it is a repetition.
func TestRepetitionsAreEqual(t *testing.T) {
	answers := map[string]struct {
		answer     proto.Message
		identified bool
		call       func(ctx context.Context, c *Client) error
	}{
		"CreateStudy": {&dparetov1.CreateStudyResponse{}, false, func(ctx context.Context, c *Client) error {
			_, err := c.CreateStudy(ctx, "s", &dparetov1.Study{DisplayName: "S"})
			return err
		}},
		"CreateTrial": {&dparetov1.CreateTrialResponse{}, true, func(ctx context.Context, c *Client) error {
			_, err := c.Study("s").Replicate(ctx, "studies/s/trials/1", nil)
			return err
		}},
		"SuggestTrials": {handOut(), true, func(ctx context.Context, c *Client) error {
			_, err := c.Study("s").Ask(ctx, "w")
			return err
		}},
		"AddMeasurement": {&dparetov1.AddMeasurementResponse{}, false, func(ctx context.Context, c *Client) error {
			return held(c).Report(ctx, 1, Metrics{"error": {0.1, 0.2}})
		}},
		"CompleteTrial": {&dparetov1.CompleteTrialResponse{}, false, func(ctx context.Context, c *Client) error {
			return held(c).Complete(ctx, Metrics{"error": {0.1, 0.2}})
		}},
		"ReleaseTrial": {&dparetov1.ReleaseTrialResponse{}, false, func(ctx context.Context, c *Client) error {
			return held(c).Release(ctx, "why")
		}},
	}
	for name, tt := range answers {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, c := serve(t, func(_ context.Context, n int, _ any) (any, error) {
					if n < 2 {
						return nil, status.Error(codes.Unavailable, "the answer is lost")
					}
					return tt.answer, nil
				})
				require.NoError(t, tt.call(t.Context(), c))
				requests := f.requests()
				if len(requests) != 3 {
					t.Fatalf("%d requests, want 3", len(requests))
				}
				for _, req := range requests {
					message := req.(proto.Message)
					if !proto.Equal(message, requests[0].(proto.Message)) {
						t.Errorf("request %v\nafter    %v", req, requests[0])
					}
					id := message.ProtoReflect().Descriptor().Fields().ByName(requestID)
					if got := message.ProtoReflect().Has(id); got != tt.identified {
						t.Errorf("request with an id: %v, want %v: %v", got, tt.identified, req)
					}
				}
			})
		})
	}
}

// How every method of the contract is repeated, against a table written by hand: a new
// method has to be put into it.
func TestRepeatableMethods(t *testing.T) {
	want := map[callRules]string{
		{}: "BackupStore ExportStudy ImportStudy WatchStudy", // streams
		{repeatable: true}: "AddMeasurement CalibrateMechanism CompleteTrial ComputeEpsilon ComputeTradeoff CreateStudy GetLedger GetRelease " +
			"GetServerInfo GetStudy GetTrial ListCharges ListLedgers ListReleases ListStudies ListTrials ReleaseTrial RenewLeases",
		{repeatable: true, slow: true}: "AnalyzeContour AnalyzeImportance AnalyzeSlices CrossValidate ForecastGain GetFront GetPrivacyLedger ListHypervolumes PredictMetrics PriceSearch QueryFront",
		{repeatable: true, identified: true}: "CreateLedger CreateTrial DeleteStudy DeleteTrial PauseStudy ResumeStudy StopTrial " +
			"UpdateStudy UpdateTrial",
		{repeatable: true, identified: true, slow: true}: "ReaccountStudy ReleaseBest ReleaseFront SelectPrivately SuggestTrials",
	}
	methods := make(map[callRules][]string)
	for full, r := range ruleBook() {
		methods[r] = append(methods[r], full[strings.LastIndexByte(full, '/')+1:])
	}
	got := make(map[callRules]string)
	for r, names := range methods {
		slices.Sort(names)
		got[r] = strings.Join(names, " ")
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(callRules{})); diff != "" {
		t.Errorf("methods by their rules (-want +got):\n%s", diff)
	}
}

// Every call has a new id, unless the caller gave one; the caller's message does not
// change.
func TestRequestIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, c := serve(t, func(context.Context, int, any) (any, error) { return &dparetov1.CreateTrialResponse{}, nil })
		req := &dparetov1.CreateTrialRequest{Parent: "studies/s"}
		for range 2 {
			require.NoError(t, require.ErrOf(c.Studies.CreateTrial(t.Context(), req)))
		}
		if req.GetRequestId() != "" {
			t.Errorf("the caller's message has the id %q", req.GetRequestId())
		}
		req.RequestId = "mine"
		require.NoError(t, require.ErrOf(c.Studies.CreateTrial(t.Context(), req)))
		var ids []string
		for _, req := range f.requests() {
			ids = append(ids, req.(*dparetov1.CreateTrialRequest).GetRequestId())
		}
		if len(ids) != 3 || ids[0] == "" || ids[0] == ids[1] || len(ids[0]) > 100 || ids[2] != "mine" {
			t.Errorf("ids %q", ids)
		}
	})
}

func TestSentOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serve(t, func(context.Context, int, any) (any, error) { return new(dparetov1.GetStudyResponse), nil })
		attempts := 0
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error {
			attempts++
			return status.Error(codes.Unavailable, "down")
		}
		r := &retry{timeout: time.Second}
		err := r.intercept(t.Context(), "/dpareto.v1.StudyService/Unheard", new(dparetov1.GetStudyRequest), new(dparetov1.GetStudyResponse), c.conn, invoke)
		if status.Code(err) != codes.Unavailable || attempts != 1 {
			t.Errorf("error %v after %d attempts", err, attempts)
		}
	})
}

// Calls of a closed client fail at once instead of being repeated.
func TestClosedClient(t *testing.T) {
	c, err := Dial("localhost:1")
	require.NoError(t, err)
	require.NoError(t, c.Close())
	if _, err := c.Study("s").Get(t.Context()); status.Code(err) != codes.Canceled {
		t.Errorf("error %v", err)
	}
}
