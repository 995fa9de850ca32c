package rest

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"testing/synctest"
	"time"
)

// slowClient is the connection of a client that sends pieces of a body, each after a pause.
type slowClient struct {
	http.ResponseWriter

	pieces, size int
	pause        time.Duration
	deadline     time.Time
}

func (c *slowClient) SetReadDeadline(deadline time.Time) error {
	c.deadline = deadline
	return nil
}

func (c *slowClient) Read(p []byte) (int, error) {
	if c.pieces == 0 {
		return 0, io.EOF
	}
	if left := time.Until(c.deadline); !c.deadline.IsZero() && left < c.pause {
		time.Sleep(left)
		return 0, os.ErrDeadlineExceeded
	}
	time.Sleep(c.pause)
	c.pieces--
	return min(c.size, len(p)), nil
}

func (c *slowClient) Close() error { return nil }

// A client does not hold a connection by a byte now and then. What the server itself does between
// two reads is not the client's fault, and a stream may go on for as long as it is not too slow.
func TestSlowBody(t *testing.T) {
	for _, test := range []struct {
		name, path   string
		pieces, size int
		pause, work  time.Duration
		most         time.Duration
		refused      bool
	}{
		{"a byte per 29 s", "/v1/studies", 1000, 1, 29 * time.Second, 0, bodyTime, true},
		{"a byte per 29 s of a stream", importPath, 1000, 1, 29 * time.Second, 0, bodyTime, true},
		{"nothing", "/v1/studies", 1, 1, time.Hour, 0, bodyTime, true},
		{"in time", "/v1/studies", 59, 1, time.Second, 0, bodyTime, false},
		{"a busy server", "/v1/studies", 59, 1, time.Second, time.Minute, 2 * time.Hour, false},
		{"a long stream", importPath, 1000, streamStretch, 59 * time.Second, 0, 1000 * bodyTime, false},
		{"a stream to a busy server", importPath, 59, 1, time.Second, time.Minute, 2 * time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			client := &slowClient{pieces: test.pieces, size: test.size, pause: test.pause}
			handler := limitBody(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				began, p := time.Now(), make([]byte, streamStretch)
				var err error
				for err == nil {
					_, err = r.Body.Read(p)
					r.Body.(*body).endMessage()
					time.Sleep(test.work)
				}
				if took := time.Since(began); took > test.most || errors.Is(err, os.ErrDeadlineExceeded) != test.refused {
					t.Errorf("%s: %v after %v, want refused %t, at most %v", test.name, err, took, test.refused, test.most)
				}
			}), DefaultMaxBodyBytes)
			r := httptest.NewRequest(http.MethodPost, test.path, client)
			handler.ServeHTTP(client, r)
		})
	}
}
