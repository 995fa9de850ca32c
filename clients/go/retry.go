package dpareto

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

const (
	// firstPause and longestPause bound the pauses between attempts; each doubles the
	// last.
	firstPause   = 50 * time.Millisecond
	longestPause = time.Second
	// slowFactor is how much longer a call of a slow method may take.
	slowFactor = 8
)

// callRules say how calls of a method are made.
type callRules struct {
	// slow methods may fit a model or account for many runs.
	slow bool
	// repeatable methods can be called again when it is not known whether an earlier
	// attempt took effect.
	repeatable bool
	// identified methods are repeatable under one request id only.
	identified bool
}

// ruleBook returns the rules of all methods of the contract by their full names.
var ruleBook = sync.OnceValue(readRules)

// readRules reads the rules in the contract.
func readRules() map[string]callRules {
	all := make(map[string]callRules)
	contract := dparetov1.File_dpareto_v1_method_proto.Package()
	protoregistry.GlobalFiles.RangeFilesByPackage(contract, func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			service := file.Services().Get(i)
			for j := range service.Methods().Len() {
				d := service.Methods().Get(j)
				all[fmt.Sprintf("/%s/%s", service.FullName(), d.Name())] = rulesOf(d)
			}
		}
		return true
	})
	return all
}

// rulesOf returns the rules of a method.
func rulesOf(d protoreflect.MethodDescriptor) callRules {
	declared, _ := proto.GetExtension(d.Options(), dparetov1.E_Rules).(*dparetov1.MethodRules)
	options, _ := d.Options().(*descriptorpb.MethodOptions)
	r := callRules{slow: declared.GetSlow()}
	switch {
	case d.IsStreamingClient() || d.IsStreamingServer():
	case options.GetIdempotencyLevel() != descriptorpb.MethodOptions_IDEMPOTENCY_UNKNOWN:
		r.repeatable = true
	case d.Input().Fields().ByName(requestID) != nil:
		r.repeatable, r.identified = true, true
	}
	return r
}

// requestID is the name of the field with the request id.
const requestID protoreflect.Name = "request_id"

// identify returns a request with an id, the caller's or a new one. New ids begin with
// the time, so that the server stores recent ones together.
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

// intercept is a grpc.UnaryClientInterceptor. It limits the time of every attempt and
// retries a repeatable call until it succeeds, fails for good, or ctx is done.
func (r *retry) intercept(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
	timeout, rules := r.timeout, ruleBook()[method]
	if rules.slow {
		timeout *= slowFactor
	}
	if rules.identified {
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
			!isTransient(err) || !rules.repeatable {
			return err
		}
		if err := r.wait(ctx, err, pause); err != nil {
			return err
		}
	}
}

// wait pauses after an attempt that failed with err, or returns the error of the call if
// the context is done first.
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
// reached, is stopping (which cancels its calls), lost a race, did not answer in time, or
// is overloaded and says when to retry.
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

// wait waits, or returns the context's error if it is done first.
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
