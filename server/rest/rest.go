package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	gateway "github.com/dpareto/dpareto/gen/gateway/dpareto/v1"
	"github.com/dpareto/dpareto/gen/openapi"
)

// DefaultMaxBodyBytes is the default maximum size of a request body, the same as gRPC's.
const DefaultMaxBodyBytes = 4 << 20

// Options configures a Handler.
type Options struct {
	// MaxBodyBytes is the maximum size of a request body. Default: DefaultMaxBodyBytes.
	MaxBodyBytes int64
	// AllowedOrigins are the origins, such as https://example.org, whose pages may call the server
	// from a browser (CORS). Default: only the server's own.
	AllowedOrigins []string
}

// setQueryParser sets the parser of queries. grpc-gateway keeps one for the whole program, without a lock.
var setQueryParser = sync.OnceFunc(func() { runtime.NewServeMux(runtime.SetQueryParameterParser(queryParser{})) })

// Handler returns a handler for all URLs of the contract, below /v1/, and for /openapi.json. It
// makes calls over conn, which must outlive it. The end of ctx releases its resources.
func Handler(ctx context.Context, conn grpc.ClientConnInterface, o Options) (http.Handler, error) {
	if o.MaxBodyBytes == 0 {
		o.MaxBodyBytes = DefaultMaxBodyBytes
	}
	setQueryParser()
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, newCodec()),
		runtime.WithIncomingHeaderMatcher(forwarded),
		runtime.WithOutgoingHeaderMatcher(answered),
		runtime.WithOutgoingTrailerMatcher(func(string) (string, bool) { return "", false }),
		runtime.WithErrorHandler(writeError),
		runtime.WithRoutingErrorHandler(writeRoutingError),
		runtime.WithStreamErrorHandler(describeStreamError),
		runtime.WithDisablePathLengthFallback(), // never treat a POST as a GET
	)
	err := errors.Join(
		gateway.RegisterStudyServiceHandlerClient(ctx, mux, dparetov1.NewStudyServiceClient(conn)),
		gateway.RegisterFrontServiceHandlerClient(ctx, mux, dparetov1.NewFrontServiceClient(conn)),
		gateway.RegisterAnalysisServiceHandlerClient(ctx, mux, dparetov1.NewAnalysisServiceClient(conn)),
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
		_, _ = w.Write(document) // the client may have gone
	})
	return guardOrigins(all, o.AllowedOrigins)
}

// withoutHops drops X-Forwarded-For from requests. The gateway appends the client's address to it,
// but drops both if the client's value is not text: a client could hide its address.
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

// forwarded maps request headers to metadata of the call. The gateway itself forwards Authorization.
func forwarded(header string) (string, bool) {
	switch name := strings.ToLower(header); name {
	case requestID, "traceparent", "tracestate":
		return name, true
	default:
		return "", false
	}
}

// answered maps response metadata to headers.
func answered(name string) (string, bool) { return requestIDHeader, name == requestID }

// The identifier of a request as metadata and as a header.
const (
	requestID       = "x-request-id"
	requestIDHeader = "X-Request-ID"
)
