package dpareto

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// firstPause and longestPause bound the pauses between attempts, which double.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// modelFactor is how much longer than others a call that may fit a model can take.
	modelFactor = 8
)

// modelling are the methods that may fit a model, or take as long.
var modelling = map[string]bool{
	dparetov1.StudyService_SuggestTrials_FullMethodName:    true,
	dparetov1.FrontService_GetFront_FullMethodName:         true,
	dparetov1.FrontService_ListHypervolumes_FullMethodName: true,
	dparetov1.FrontService_QueryFront_FullMethodName:       true,
	dparetov1.FrontService_PredictMetrics_FullMethodName:   true,

	// Many runs to account instead.
	dparetov1.PrivacyService_GetPrivacyLedger_FullMethodName: true,
	dparetov1.PrivacyService_ReaccountStudy_FullMethodName:   true,
	dparetov1.ReleaseService_ReleaseBest_FullMethodName:      true,
	dparetov1.ReleaseService_ReleaseFront_FullMethodName:     true,
	dparetov1.ReleaseService_SelectPrivately_FullMethodName:  true,
}

// repeatable are the methods that can be called again when it is not known whether
// an earlier attempt took effect: the server answers the repetition like the first
// attempt, or the method only reads.
var repeatable = map[string]bool{
	dparetov1.StudyService_CreateStudy_FullMethodName:    true,
	dparetov1.StudyService_GetStudy_FullMethodName:       true,
	dparetov1.StudyService_ListStudies_FullMethodName:    true,
	dparetov1.StudyService_GetTrial_FullMethodName:       true,
	dparetov1.StudyService_ListTrials_FullMethodName:     true,
	dparetov1.StudyService_AddMeasurement_FullMethodName: true,
	dparetov1.StudyService_RenewLeases_FullMethodName:    true,
	dparetov1.StudyService_CompleteTrial_FullMethodName:  true,
	dparetov1.StudyService_ReleaseTrial_FullMethodName:   true,

	dparetov1.FrontService_GetFront_FullMethodName:         true,
	dparetov1.FrontService_QueryFront_FullMethodName:       true,
	dparetov1.FrontService_ListHypervolumes_FullMethodName: true,
	dparetov1.FrontService_PredictMetrics_FullMethodName:   true,

	dparetov1.PrivacyService_ComputeEpsilon_FullMethodName:     true,
	dparetov1.PrivacyService_CalibrateMechanism_FullMethodName: true,
	dparetov1.PrivacyService_GetPrivacyLedger_FullMethodName:   true,

	dparetov1.ReleaseService_GetLedger_FullMethodName:    true,
	dparetov1.ReleaseService_ListLedgers_FullMethodName:  true,
	dparetov1.ReleaseService_ListCharges_FullMethodName:  true,
	dparetov1.ReleaseService_GetRelease_FullMethodName:   true,
	dparetov1.ReleaseService_ListReleases_FullMethodName: true,

	dparetov1.AdminService_GetServerInfo_FullMethodName: true,
}

// identified are the methods that can be called again under the same request id: the
// server then gives the answer of the attempt that took effect. Reports and completions
// need none, because the lease tells the server what was said already.
var identified = map[string]bool{
	dparetov1.StudyService_UpdateStudy_FullMethodName:   true,
	dparetov1.StudyService_DeleteStudy_FullMethodName:   true,
	dparetov1.StudyService_PauseStudy_FullMethodName:    true,
	dparetov1.StudyService_ResumeStudy_FullMethodName:   true,
	dparetov1.StudyService_SuggestTrials_FullMethodName: true,
	dparetov1.StudyService_CreateTrial_FullMethodName:   true,
	dparetov1.StudyService_UpdateTrial_FullMethodName:   true,
	dparetov1.StudyService_DeleteTrial_FullMethodName:   true,
	dparetov1.StudyService_StopTrial_FullMethodName:     true,

	dparetov1.PrivacyService_ReaccountStudy_FullMethodName: true,

	dparetov1.ReleaseService_CreateLedger_FullMethodName: true,
	// Their ids are remembered with what they released, for as long as that exists.
	dparetov1.ReleaseService_ReleaseBest_FullMethodName:     true,
	dparetov1.ReleaseService_ReleaseFront_FullMethodName:    true,
	dparetov1.ReleaseService_SelectPrivately_FullMethodName: true,
}

// requestID is the name of the field with the request id.
const requestID protoreflect.Name = "request_id"

// identify returns a request with an id, that of the caller or a new one. The id begins
// with the time, which has the server keep ids of the same time together.
func identify(req any) any {
	message, ok := req.(proto.Message)
	if !ok {
		return req
	}
	field := message.ProtoReflect().Descriptor().Fields().ByName(requestID)
	if field == nil || message.ProtoReflect().Has(field) {
		return req
	}
	message = proto.Clone(message) // the caller may send it again as another request
	id := fmt.Sprintf("%016x-%016x", time.Now().UnixNano(), rand.Uint64())
	message.ProtoReflect().Set(field, protoreflect.ValueOfString(id))
	return message
}

// retry repeats calls.
type retry struct {
	timeout time.Duration // of one attempt
	notice  func(error)   // called before a pause; or nil
}

// intercept is the grpc.UnaryClientInterceptor that gives every attempt its time limit
// and repeats a repeatable call until it succeeds, fails for good, or ctx is done.
func (r *retry) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	timeout := r.timeout
	if modelling[method] {
		timeout *= modelFactor
	}
	if identified[method] {
		req = identify(req)
	}
	attempt := func() error {
		limited, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		return invoke(limited, method, req, reply, conn, options...)
	}
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := attempt()
		if err == nil || ctx.Err() != nil || conn.GetState() == connectivity.Shutdown ||
			!isTransient(err) || !repeatable[method] && !identified[method] {
			return err
		}
		if err := r.wait(ctx, err, pause); err != nil {
			return err
		}
	}
}

// wait waits before another attempt after one that failed with err, or returns the error
// of the call when the context is done before.
func (r *retry) wait(ctx context.Context, err error, pause time.Duration) error {
	if r.notice != nil {
		r.notice(err)
	}
	// Half of the pause is random, so that workers do not return all at once.
	if wait(ctx, retryDelay(err)+pause/2+rand.N(pause/2)) != nil {
		return status.Errorf(status.FromContextError(ctx.Err()).Code(), "gave up: %s", answer(status.Convert(err)))
	}
	return nil
}

// isTransient reports whether another attempt can succeed: the server could not be
// reached, is stopping (which cancels what it works on), lost a race, did not answer in
// time, or has too much to do and says when to come again.
func isTransient(err error) bool {
	switch status.Code(err) {
	case codes.Unavailable, codes.Aborted, codes.Canceled, codes.DeadlineExceeded:
		return true
	case codes.ResourceExhausted:
		return retryDelay(err) > 0
	default:
		return false
	}
}

// retryDelay returns how long the server asks to wait, 0 if it does not.
func retryDelay(err error) time.Duration {
	for _, detail := range status.Convert(err).Details() {
		if info, ok := detail.(*errdetails.RetryInfo); ok {
			return max(info.GetRetryDelay().AsDuration(), 0)
		}
	}
	return 0
}

// wait waits, or returns the context's error when it is done before.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
