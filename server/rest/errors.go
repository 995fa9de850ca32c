package rest

import (
	"context"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

const jsonType = "application/json"

// writeError responds to a failed call with a google.rpc.Status.
func writeError(ctx context.Context, _ *runtime.ServeMux, marshaler runtime.Marshaler, w http.ResponseWriter, r *http.Request, err error) {
	s := describe(err)
	if limit, exceeded := exceededLimit(r); exceeded {
		s = status.Newf(codes.ResourceExhausted, "the request body must have at most %d bytes", limit)
		writeStatus(ctx, marshaler, w, http.StatusRequestEntityTooLarge, s)
		return
	}
	writeStatus(ctx, marshaler, w, runtime.HTTPStatusFromCode(s.Code()), s)
}

// writeRoutingError responds to a request that matches no method.
func writeRoutingError(ctx context.Context, _ *runtime.ServeMux, marshaler runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	s := status.Newf(codes.NotFound, "%.200q does not exist; see /openapi.json", r.URL.Path)
	switch code {
	case http.StatusMethodNotAllowed:
		s = status.Newf(codes.Unimplemented, "%.200q does not allow %.20s; see /openapi.json", r.URL.Path, r.Method)
	case http.StatusBadRequest:
		s = status.Newf(codes.InvalidArgument, "%.200q is malformed", r.URL.Path)
	}
	writeStatus(ctx, marshaler, w, code, s)
}

// writeStatus responds with a status.
func writeStatus(ctx context.Context, marshaler runtime.Marshaler, w http.ResponseWriter, code int, s *status.Status) {
	setHeaders(ctx, w.Header(), s)
	body, err := marshaler.Marshal(s.Proto())
	if err != nil {
		body, code = []byte(`{"code":13,"message":"the error cannot be encoded"}`), http.StatusInternalServerError
	}
	w.WriteHeader(code)
	_, _ = w.Write(body) //nolint:gosec // JSON, declared as such; the client may have gone
}

// setHeaders sets the headers of an error response.
func setHeaders(ctx context.Context, header http.Header, s *status.Status) {
	header.Set("Content-Type", jsonType)
	header.Set("X-Content-Type-Options", "nosniff")
	if md, ok := runtime.ServerMetadataFromContext(ctx); ok {
		if id := metadata.Join(md.HeaderMD, md.TrailerMD).Get(requestID); len(id) > 0 {
			header.Set(requestIDHeader, id[0])
		}
	}
	if s.Code() == codes.Unauthenticated {
		header.Set("WWW-Authenticate", "Bearer")
	}
	for _, detail := range s.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			seconds := math.Ceil(retry.GetRetryDelay().AsDuration().Seconds())
			header.Set("Retry-After", strconv.FormatFloat(seconds, 'f', 0, 64))
		}
	}
}

// named finds the field in an error text of the decoder or the query parser.
var named = regexp.MustCompile(`(?:field|parameter|invalid value for \w+ field) "?([A-Za-z0-9_.\[\]]+)"?`)

// describe returns the status of an error. If the request could not be parsed, the status names the
// field at fault.
func describe(err error) *status.Status {
	s := status.Convert(err)
	isBody := strings.HasPrefix(s.Message(), bodyError)
	if s.Code() != codes.InvalidArgument || !isBody && !strings.HasPrefix(s.Message(), queryError) {
		return s
	}
	violation := &errdetails.BadRequest_FieldViolation{Field: "query", Description: strings.TrimPrefix(s.Message(), queryError)}
	if isBody {
		violation = &errdetails.BadRequest_FieldViolation{Field: "body", Description: strings.TrimPrefix(s.Message(), bodyError)}
	}
	if match := named.FindStringSubmatch(s.Message()); match != nil {
		violation.Field = match[1]
	}
	detailed, err := s.WithDetails(&errdetails.BadRequest{FieldViolations: []*errdetails.BadRequest_FieldViolation{violation}})
	if err != nil {
		return s
	}
	return detailed
}

// describeStreamError returns the status in the last line of a failed stream.
func describeStreamError(_ context.Context, err error) *status.Status { return describe(err) }
