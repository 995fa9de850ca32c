package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	gateway "github.com/dpareto/dpareto/gen/gateway/dpareto/v1"
	"github.com/dpareto/dpareto/gen/openapi"
)

// DefaultMaxBodyBytes is the largest body of a request, as of a gRPC request.
const DefaultMaxBodyBytes = 4 << 20

// Options configures a Handler.
type Options struct {
	// MaxBodyBytes is the largest body of a request. Default: DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// AllowedOrigins are the origins, such as https://example.org, whose pages may call
	// the server from a browser (CORS). Default: none but the server's own.
	AllowedOrigins []string
}

// Handler returns a handler of all URLs of the contract, which begin with /v1/, and of
// /openapi.json. Calls go over conn, which must outlive it. The end of ctx releases what
// the handler holds.
func Handler(ctx context.Context, conn grpc.ClientConnInterface, o Options) (http.Handler, error) {
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = DefaultMaxBodyBytes
	}
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, newCodec()),
		runtime.SetQueryParameterParser(queryParser{}),
		runtime.WithIncomingHeaderMatcher(forwarded),
		runtime.WithOutgoingHeaderMatcher(answered),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
		runtime.WithStreamErrorHandler(describeStreamError),
		runtime.WithDisablePathLengthFallback(), // a POST is never taken for a GET
	)
	err := errors.Join(
		gateway.RegisterStudyServiceHandlerClient(ctx, mux, dparetov1.NewStudyServiceClient(conn)),
		gateway.RegisterFrontServiceHandlerClient(ctx, mux, dparetov1.NewFrontServiceClient(conn)),
		gateway.RegisterPrivacyServiceHandlerClient(ctx, mux, dparetov1.NewPrivacyServiceClient(conn)),
		gateway.RegisterReleaseServiceHandlerClient(ctx, mux, dparetov1.NewReleaseServiceClient(conn)),
		gateway.RegisterAdminServiceHandlerClient(ctx, mux, dparetov1.NewAdminServiceClient(conn)),
	)
	if err != nil {
		return nil, fmt.Errorf("rest: %w", err)
	}
	document := openapi.Document()
	all := http.NewServeMux()
	all.Handle("/v1/", limitBody(withoutHops(mux), o.MaxBodyBytes))
	all.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", jsonType)
		_, _ = w.Write(document) // who asked may have gone
	})
	return guardOrigins(all, o.AllowedOrigins)
}

// withoutHops drops what a request says of the way that it has come. The gateway adds the
// address of the client to it, or nothing if the words of the client are no text: so anybody
// could come from nowhere.
func withoutHops(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get(forwardedFor) != "" {
			r = r.Clone(r.Context())
			r.Header.Del(forwardedFor)
		}
		next.ServeHTTP(w, r)
	})
}

const forwardedFor = "X-Forwarded-For"

// forwarded says which headers of a request become metadata of the call. The gateway
// forwards Authorization by itself.
func forwarded(header string) (string, bool) {
	switch name := strings.ToLower(header); name {
	case requestID, "traceparent", "tracestate":
		return name, true
	default:
		return "", false
	}
}

// answered says which metadata of an answer become headers.
func answered(name string) (string, bool) { return requestIDHeader, name == requestID }

// The identifier of a request, as metadata and as a header.
const (
	requestID       = "x-request-id"
	requestIDHeader = "X-Request-ID"
)
