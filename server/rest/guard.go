package rest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"
)

const (
	// importPath is the URL of the only method with a streamed body. The limit applies to each of
	// its messages, not to their sum.
	importPath = "/v1/studies:import"
	// bodyTime is how long the server waits for a body in all. In a stream it waits so long for every
	// streamStretch bytes, since the length of a stream is unknown.
	bodyTime = time.Minute
	// streamStretch bounds how slow a stream may be, at 1 KiB per second.
	streamStretch = 64 << 10
)

// bodyKey is the context key of a request's body.
type bodyKey struct{}

// body is a request body that must not grow too large or take too long.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
	limit      int64
	isStream   bool  // limit applies to each message
	read       int64 // bytes read, in a stream since the last message
	exceeded   bool
	stretch    int64         // bytes read, in a stream since waited was last zero
	waited     time.Duration // for the client, not for the server's own work
}

var errTooLarge = errors.New("the body is too large")

// limitBody limits request bodies, or each message of a streamed one, to limit bytes.
func limitBody(next http.Handler, limit int64) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := &body{ReadCloser: r.Body, connection: http.NewResponseController(w), limit: limit, isStream: r.URL.Path == importPath}
		r = r.WithContext(context.WithValue(r.Context(), bodyKey{}, b))
		if r.ContentLength != 0 {
			r.Body = b
		}
		next.ServeHTTP(w, r)
	})
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	if b.exceeded = b.exceeded || b.isStream && b.read > b.limit; b.exceeded {
		return 0, errTooLarge
	}
	if b.isStream && b.stretch >= streamStretch {
		b.stretch, b.waited = 0, 0
	}
	began := time.Now()
	// Not every ResponseWriter supports deadlines; net/http's does.
	_ = b.connection.SetReadDeadline(began.Add(bodyTime - b.waited))
	n, err := b.ReadCloser.Read(p)
	_ = b.connection.SetReadDeadline(time.Time{})
	b.waited += time.Since(began)
	b.stretch += int64(n)
	b.read += int64(n)
	if !b.isStream && b.read > b.limit {
		b.exceeded = true
		return 0, errTooLarge
	}
	return n, err
}

// endMessage records that a message was read. Bytes of later messages that were read with it do not
// count: the decoder reads on only when it has no whole message buffered.
func (b *body) endMessage() {
	if b.isStream {
		b.read = 0
	}
}

// exceededLimit returns the limit on a request's body, and whether the body exceeded it.
func exceededLimit(r *http.Request) (limit int64, exceeded bool) {
	b, ok := r.Context().Value(bodyKey{}).(*body)
	if !ok {
		return 0, false
	}
	return b.limit, b.exceeded
}

// guardOrigins refuses cross-origin requests from browsers, except from allowed origins, which it
// grants access (https://fetch.spec.whatwg.org/#http-cors-protocol).
func guardOrigins(next http.Handler, allowed []string) (http.Handler, error) {
	protection := http.NewCrossOriginProtection()
	for _, origin := range allowed {
		if err := protection.AddTrustedOrigin(origin); err != nil {
			return nil, fmt.Errorf("rest: allowed origin: %w", err)
		}
	}
	protected := protection.Handler(next)
	if len(allowed) == 0 {
		return protected, nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Add("Vary", "Origin")
		if origin := r.Header.Get("Origin"); slices.Contains(allowed, origin) {
			header.Set("Access-Control-Allow-Origin", origin)
			header.Set("Access-Control-Expose-Headers", requestIDHeader+", Retry-After")
			if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
				header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
				header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, "+requestIDHeader)
				header.Set("Access-Control-Max-Age", "600")
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		protected.ServeHTTP(w, r)
	}), nil
}
