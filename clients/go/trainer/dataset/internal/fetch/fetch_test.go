package fetch

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/internal/require"
)

const content = "the quick brown fox jumps over the lazy dog\n"

// describe returns a file of that content, at the given addresses.
func describe(urls ...string) File {
	sum := sha256.Sum256([]byte(content))
	return File{Name: "file", Size: int64(len(content)), SHA256: hex.EncodeToString(sum[:]), URLs: urls}
}

// memoryListener accepts connections that live in memory, so that time in the bubble of
// a test stands still while a byte is under way.
type memoryListener struct {
	connections chan net.Conn
	closed      chan struct{}
}

// Accept implements net.Listener.
func (l *memoryListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.connections:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *memoryListener) Close() error {
	close(l.closed)
	return nil
}

// Addr implements net.Listener.
func (*memoryListener) Addr() net.Addr { return &net.UnixAddr{Name: "memory"} }

// serve starts a server in the bubble and returns a fetcher whose requests all go to it.
func serve(t *testing.T, handler http.HandlerFunc) *Fetcher {
	t.Helper()
	listener := &memoryListener{connections: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Hour}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		ours, theirs := net.Pipe()
		select {
		case listener.connections <- theirs:
			return ours, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		_ = server.Close()
		<-served
	})
	return &Fetcher{Client: &http.Client{Transport: transport}, StallTimeout: 15 * time.Second, Attempts: 3, Backoff: time.Second}
}

// Answers of the server to one request.
var (
	// whole serves the file, with ranges.
	whole = func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(content))
	}
	// ignoreRange serves the file from its beginning.
	ignoreRange = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content)) }
	// breakOff sends ten bytes and closes the connection.
	breakOff = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(content)))
		_, _ = w.Write([]byte(content[:10]))
	}
	// breakChunks does so without having told the length.
	breakChunks = func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(content[:10]))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	// short sends ten bytes as if they were all.
	short = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content[:10])) }
	// stall sends ten bytes and then nothing until the client has gone.
	stall = func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(content[:10]))
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}
	// slow sends a byte in ten seconds.
	slow = func(w http.ResponseWriter, _ *http.Request) {
		for i := range content {
			time.Sleep(10 * time.Second) // of the bubble
			_, _ = w.Write([]byte(content[i : i+1]))
			_ = http.NewResponseController(w).Flush()
		}
	}
	// silent does not even answer.
	silent = func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	// corrupt sends as many bytes as it should, but wrong ones.
	corrupt = func(w http.ResponseWriter, r *http.Request) {
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(strings.ToUpper(content)))
	}
	// long sends more than it should.
	long = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(content + content)) }
	// wrongRange sends another part than it was asked for.
	wrongRange = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", "bytes 3-43/44")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte(content[3:]))
	}
	unsatisfiable = status(http.StatusRequestedRangeNotSatisfiable)
)

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", code) }
}

// A scripted server answers the first request with the first answer, and so on.
func TestFetch(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []http.HandlerFunc
		want    []string      // Range of the requests
		pause   time.Duration // in all
		failure string        // part of the message; "" for success
		left    int64         // bytes in the part file after a failure
	}{
		{name: "at once", answers: []http.HandlerFunc{whole}, want: []string{""}},
		{name: "resume", answers: []http.HandlerFunc{breakOff, whole}, want: []string{"", "bytes=10-"}, pause: time.Second},
		{name: "resume chunks", answers: []http.HandlerFunc{breakChunks, whole}, want: []string{"", "bytes=10-"}, pause: time.Second},
		{name: "resume short", answers: []http.HandlerFunc{short, whole}, want: []string{"", "bytes=10-"}, pause: time.Second},
		{name: "no ranges", answers: []http.HandlerFunc{breakOff, ignoreRange}, want: []string{"", "bytes=10-"}, pause: time.Second},
		{name: "wrong range", answers: []http.HandlerFunc{breakOff, wrongRange, whole}, want: []string{"", "bytes=10-", ""}, pause: 3 * time.Second},
		{name: "no such range", answers: []http.HandlerFunc{short, unsatisfiable, whole}, want: []string{"", "bytes=10-", ""}, pause: 3 * time.Second},
		{name: "stall", answers: []http.HandlerFunc{stall, whole}, want: []string{"", "bytes=10-"}, pause: 16 * time.Second},
		{name: "slow", answers: []http.HandlerFunc{slow}, want: []string{""}, pause: 440 * time.Second},
		{name: "corrupt", answers: []http.HandlerFunc{corrupt, whole}, want: []string{"", ""}, pause: time.Second},
		{name: "corrupt rest", answers: []http.HandlerFunc{breakOff, corrupt, whole}, want: []string{"", "bytes=10-", ""}, pause: 3 * time.Second},
		{name: "long", answers: []http.HandlerFunc{long, whole}, want: []string{"", ""}, pause: time.Second},
		{
			name:    "server error",
			answers: []http.HandlerFunc{status(http.StatusInternalServerError), status(http.StatusTooManyRequests), whole},
			want:    []string{"", "", ""}, pause: 3 * time.Second,
		},
		{
			name:    "not found",
			answers: []http.HandlerFunc{status(http.StatusNotFound)},
			want:    []string{""}, failure: "404 Not Found",
		},
		{
			name:    "forbidden later",
			answers: []http.HandlerFunc{breakOff, status(http.StatusForbidden)},
			want:    []string{"", "bytes=10-"}, pause: time.Second, failure: "403 Forbidden", left: 10,
		},
		{
			name:    "always down",
			answers: slices.Repeat([]http.HandlerFunc{status(http.StatusServiceUnavailable)}, 3),
			want:    []string{"", "", ""}, pause: 3 * time.Second, failure: "503 Service Unavailable",
		},
		{
			name:    "always corrupt",
			answers: slices.Repeat([]http.HandlerFunc{corrupt}, 3),
			want:    []string{"", "", ""}, pause: 3 * time.Second, failure: "the file has SHA-256",
		},
		{
			name:    "always long",
			answers: slices.Repeat([]http.HandlerFunc{long}, 3),
			want:    []string{"", "", ""}, pause: 3 * time.Second, failure: "the file has SHA-256",
		},
		{
			name:    "breaks off in the end",
			answers: []http.HandlerFunc{status(http.StatusBadGateway), status(http.StatusBadGateway), breakOff},
			want:    []string{"", "", ""}, pause: 3 * time.Second, failure: "after 10 of 44 bytes: unexpected EOF", left: 10,
		},
		{
			name:    "ends early in the end",
			answers: []http.HandlerFunc{corrupt, corrupt, short},
			want:    []string{"", "", ""}, pause: 3 * time.Second, failure: "the file ends after 10 of 44 bytes", left: 10,
		},
		{
			name:    "stalls in the end",
			answers: []http.HandlerFunc{corrupt, corrupt, stall},
			want:    []string{"", "", ""}, pause: 18 * time.Second, failure: "after 10 of 44 bytes: no data received in time (15s)", left: 10,
		},
		{name: "silent", answers: []http.HandlerFunc{silent}, want: []string{""}, pause: 15 * time.Second, failure: "no data received in time (15s)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			folder := t.TempDir()
			synctest.Test(t, func(t *testing.T) {
				var ranges []string
				fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
					ranges = append(ranges, r.Header.Get("Range"))
					tt.answers[len(ranges)-1](w, r)
				})
				start := time.Now()
				var last int64
				path, err := fetcher.Fetch(t.Context(), folder, describe("http://server/file"), func(done int64) { last = done })
				elapsed := time.Since(start)
				synctest.Wait() // until the server has noticed, too
				if diff := cmp.Diff(tt.want, ranges); diff != "" {
					t.Errorf("ranges of the requests (-want +got):\n%s", diff)
				}
				if elapsed != tt.pause {
					t.Errorf("took %v, want %v", elapsed, tt.pause)
				}
				if tt.failure != "" {
					checkFailure(t, folder, err, tt.failure, tt.left)
					return
				}
				require.NoError(t, err)
				checkFile(t, folder, path)
				if last != int64(len(content)) {
					t.Errorf("progress ended at %d, want %d", last, len(content))
				}
			})
		})
	}
}

// checkFile checks that the folder holds the file, and no part of it.
func checkFile(t *testing.T, folder, path string) {
	t.Helper()
	if want := filepath.Join(folder, "file"); path != want {
		t.Errorf("path %s, want %s", path, want)
	}
	got, err := os.ReadFile(path)
	if err != nil || string(got) != content {
		t.Errorf("content %q, error %v", got, err)
	}
	if _, err := os.Stat(path + ".part"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a part is left: %v", err)
	}
}

// checkFailure checks an error, and what is left in the folder.
func checkFailure(t *testing.T, folder string, err error, want string, left int64) {
	t.Helper()
	failure, ok := errors.AsType[*Error](err)
	if !ok || failure.URL != "http://server/file" {
		t.Fatalf("error %v, want an *Error", err)
	}
	if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || strings.Count(err.Error(), failure.URL) != 1 {
		t.Errorf("error %q, want one line with %q", err, want)
	}
	if _, err := os.Stat(filepath.Join(folder, "file")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the file is there: %v", err)
	}
	info, err := os.Stat(filepath.Join(folder, "file.part"))
	if err != nil || info.Size() != left {
		t.Errorf("the part has %v, want %d bytes: %v", info, left, err)
	}
}

// What one process has received is not asked for again by the next.
func TestFetchResumesLater(t *testing.T) {
	folder := t.TempDir()
	for _, tt := range []struct {
		name, part string
		want       []string
		pause      time.Duration
	}{
		{"a part", content[:20], []string{"bytes=20-"}, 0},
		{"everything", content, nil, 0},
		{"too much", content + "x", []string{""}, 0},
		{"something else, of full length", strings.ToUpper(content), []string{""}, time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				path := filepath.Join(folder, "file")
				_ = os.Remove(path)
				require.NoError(t, os.WriteFile(path+".part", []byte(tt.part), 0o600))
				var ranges []string
				fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
					ranges = append(ranges, r.Header.Get("Range"))
					whole(w, r)
				})
				start := time.Now()
				path, err := fetcher.Fetch(t.Context(), folder, describe("http://server/file"), func(int64) {})
				require.NoError(t, err)
				if got := time.Since(start); got != tt.pause {
					t.Errorf("took %v, want %v", got, tt.pause)
				}
				checkFile(t, folder, path)
				if diff := cmp.Diff(tt.want, ranges); diff != "" {
					t.Errorf("ranges of the requests (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// A file that is there is used if it is right, and replaced if it is not.
func TestFetchChecksWhatIsThere(t *testing.T) {
	folder := t.TempDir()
	for there, want := range map[string]int{content: 0, "something else": 1} {
		synctest.Test(t, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(folder, "file"), []byte(there), 0o600))
			requests := 0
			fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
				requests++
				whole(w, r)
			})
			path, err := fetcher.Fetch(t.Context(), folder, describe("http://server/file"), func(int64) {})
			require.NoError(t, err)
			checkFile(t, folder, path)
			if requests != want {
				t.Errorf("%q: %d requests, want %d", there, requests, want)
			}
		})
	}
}

// Mirrors take their turn at once; one whose answer is final is not asked again.
func TestFetchMirrors(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var requests []string
		fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
			requests = append(requests, r.Host+" "+r.Header.Get("Range"))
			switch {
			case r.Host == "gone":
				http.NotFound(w, r)
			case len(requests) < 3:
				breakOff(w, r)
			default:
				whole(w, r)
			}
		})
		path, err := fetcher.Fetch(t.Context(), folder, describe("http://gone/file", "http://slow/file"), func(int64) {})
		require.NoError(t, err)
		checkFile(t, folder, path)
		if diff := cmp.Diff([]string{"gone ", "slow ", "slow bytes=10-"}, requests); diff != "" {
			t.Errorf("requests (-want +got):\n%s", diff)
		}
	})
}

// Copies of a compressed file whose headers differ have the same digest. They are stored
// as they are, even if a server declares the compression to be one of transport.
func TestFetchUnpacked(t *testing.T) {
	pack := func(name string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Name = name
		require.NoError(t, require.ErrOf(w.Write([]byte(content))))
		require.NoError(t, w.Close())
		return b.Bytes()
	}
	file := describe("http://server/file")
	file.Unpacked = true
	file.Size = int64(len(pack("")))
	for name, cut := range map[string]int{"": 0, "a longer name": 0, "cut": 9, "complete part": 0} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			packed := pack(name)
			if name == "complete part" {
				require.NoError(t, os.WriteFile(filepath.Join(folder, "file.part"), packed, 0o600))
			}
			requests := 0
			fetcher := serve(t, func(w http.ResponseWriter, r *http.Request) {
				if requests++; requests == 1 && cut > 0 {
					w.Header().Set("Content-Length", fmt.Sprint(len(packed)))
					_, _ = w.Write(packed[:cut])
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				w.Header().Set("Content-Type", "text/plain")
				http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(packed))
			})
			path, err := fetcher.Fetch(t.Context(), folder, file, func(int64) {})
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, packed) {
				t.Errorf("%s: content %q, error %v", name, got, err)
			}
			if err := Verify(path, file); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}

// While another process holds the lock nothing is downloaded; then its file is used.
func TestFetchWaitsForTheLock(t *testing.T) {
	folder := t.TempDir()
	release, free, err := lock(filepath.Join(folder, ".lock"))
	if err != nil || !free {
		t.Fatalf("free %t, error %v", free, err)
	}
	synctest.Test(t, func(t *testing.T) {
		fetcher := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request") })
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := fetcher.Fetch(ctx, folder, describe("http://server/file"), func(int64) {}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want %v", err, context.DeadlineExceeded)
		}
		timer := time.AfterFunc(time.Minute, func() {
			if err := os.WriteFile(filepath.Join(folder, "file"), []byte(content), 0o600); err != nil {
				t.Error(err)
			}
			release()
		})
		defer timer.Stop()
		path, err := fetcher.Fetch(t.Context(), folder, describe("http://server/file"), func(int64) {})
		require.NoError(t, err)
		checkFile(t, folder, path)
	})
}

func TestFetchCancelled(t *testing.T) {
	for name, answer := range map[string]http.HandlerFunc{"silent": silent, "stall": stall, "down": status(http.StatusBadGateway)} {
		folder := t.TempDir()
		synctest.Test(t, func(t *testing.T) {
			// After the answer of the server that is down the fetcher pauses for a
			// second.
			ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
			defer cancel()
			fetcher := serve(t, answer)
			if _, err := fetcher.Fetch(ctx, folder, describe("http://server/file"), func(int64) {}); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: error %v, want %v", name, err, context.DeadlineExceeded)
			}
		})
	}
}

// An unused address is tried once.
func TestFetchRefused(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := "http://" + listener.Addr().String() + "/file"
	listener.Close()
	fetcher := &Fetcher{Client: http.DefaultClient, StallTimeout: time.Hour, Attempts: 3, Backoff: time.Hour}
	_, err = fetcher.Fetch(t.Context(), t.TempDir(), describe(address), func(int64) {})
	if failure, ok := errors.AsType[*Error](err); !ok || strings.Count(err.Error(), failure.URL) != 1 {
		t.Errorf("error %v, want an *Error with the address once", err)
	}
}

func TestFetchNowhereToStore(t *testing.T) {
	occupied := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(occupied, nil, 0o600))
	var fetcher Fetcher
	if _, err := fetcher.Fetch(t.Context(), filepath.Join(occupied, "cache"), describe("http://server/file"), func(int64) {}); err == nil {
		t.Error("no error")
	}
}
