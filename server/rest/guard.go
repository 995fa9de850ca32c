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
	// importPath is the URL of the only method whose body is a stream: each of its messages
	// is limited, and not their sum.
	importPath = "/v1/studies:import"
	// bodyPatience is the longest silence of a client that sends a body.
	bodyPatience = 30 * time.Second
)

// bodyKey is the key of a request's body in its context.
type bodyKey struct{}

// body is the body of a request that may neither grow too large nor stay silent.
type body struct {
	io.ReadCloser
	connection *http.ResponseController
	limit      int64
	isStream   bool  // limit is that of a message
	read       int64 // of the body or, in a stream, since the last message
	exceeded   bool
}

var errTooLarge = errors.New("the body is too large")

// limitBody lets no body have more than limit bytes, and no message of one that is a
// stream.
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
	// Not every ResponseWriter has deadlines; those of net/http's server do.
	_ = b.connection.SetReadDeadline(time.Now().Add(bodyPatience))
	n, err := b.ReadCloser.Read(p)
	_ = b.connection.SetReadDeadline(time.Time{})
	b.read += int64(n)
	if !b.isStream && b.read > b.limit {
		b.exceeded = true
		return 0, errTooLarge
	}
	return n, err
}

// endMessage notes that a message was read. What was read of the next ones with it does
// not count for them: whoever reads asks for more only when that holds no whole message.
func (b *body) endMessage() {
	if b.isStream {
		b.read = 0
	}
}

// exceededLimit returns the limit of the body of a request, and whether that was larger.
func exceededLimit(r *http.Request) (limit int64, exceeded bool) {
	b, ok := r.Context().Value(bodyKey{}).(*body)
	if !ok {
		return 0, false
	}
	return b.limit, b.exceeded
}

// guardOrigins refuses what pages of other origins have a browser do, except for those
// that are allowed, to which it grants it (https://fetch.spec.whatwg.org/#http-cors-protocol).
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
