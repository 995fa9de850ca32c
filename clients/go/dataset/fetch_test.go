package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const content = "+1 1:1\n-1 2:1\n"

// describe returns a file of that content.
func describe(name string) remoteFile {
	sum := sha256.Sum256([]byte(content))
	return remoteFile{name: name, size: int64(len(content)), sha256: hex.EncodeToString(sum[:]), rows: 2}
}

// serve starts a server and returns a source that downloads from it.
func serve(t *testing.T, handler http.HandlerFunc) Source {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Source{
		CacheDir:     filepath.Join(t.TempDir(), "cache"),
		BaseURL:      server.URL + "/",
		Client:       server.Client(),
		StallTimeout: time.Minute,
	}
}

// wantEmpty checks that a failed download left nothing behind.
func wantEmpty(t *testing.T, folder string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		t.Errorf("the cache holds %s", e.Name())
	}
}

func TestDownload(t *testing.T) {
	requests := 0
	source := serve(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		if r.URL.Path == "/one" || r.URL.Path == "/two" {
			_, _ = w.Write([]byte(content))
		}
	})
	var done, total int64
	source.Progress = func(d, of int64) {
		if d < done {
			t.Errorf("progress went back from %d to %d", done, d)
		}
		done, total = d, of
	}
	one, two := describe("one"), describe("two")
	for range 2 { // the second time from the cache
		paths, err := source.locate(t.Context(), one, two)
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			got, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != content {
				t.Errorf("%s holds %q, want %q", path, got, content)
			}
		}
	}
	if requests != 2 {
		t.Errorf("%d requests, want 2", requests)
	}
	if want := 2 * int64(len(content)); done != want || total != want {
		t.Errorf("progress ended at %d of %d, want %d", done, total, want)
	}
	entries, err := os.ReadDir(source.CacheDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" {
		t.Errorf("files in the cache (-want +got):\n%s", diff)
	}
}

func TestDownloadFailures(t *testing.T) {
	for _, tt := range []struct {
		name    string
		handler http.HandlerFunc
		want    string // part of the message
	}{
		{"not found", http.NotFound, "404 Not Found"},
		{"server error", func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "no", http.StatusServiceUnavailable)
		}, "503 Service Unavailable"},
		{"short", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(content[:5]))
		}, "ends after 5 of 14 bytes"},
		{"truncated", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "14")
			_, _ = w.Write([]byte(content[:5]))
		}, "after 5 of 14 bytes: unexpected EOF"},
		{"broken off", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(content[:5]))
			panic(http.ErrAbortHandler)
		}, "EOF"},
		{"corrupt", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(strings.Replace(content, "2:1", "3:1", 1)))
		}, "SHA-256"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(content + content))
		}, "SHA-256"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			source := serve(t, tt.handler)
			_, err := source.locate(t.Context(), describe("file"))
			failure, ok := errors.AsType[*DownloadError](err)
			if !ok {
				t.Fatalf("error %v, want a *DownloadError", err)
			}
			if want := source.BaseURL + "file"; failure.URL != want {
				t.Errorf("address %s, want %s", failure.URL, want)
			}
			if !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %q, want one line with %q", err, tt.want)
			}
			wantEmpty(t, source.CacheDir)
		})
	}
}

func TestDownloadRefused(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	server.Close()
	source := Source{CacheDir: t.TempDir(), BaseURL: server.URL + "/"}
	_, err := source.locate(t.Context(), describe("file"))
	if failure, ok := errors.AsType[*DownloadError](err); !ok {
		t.Errorf("error %v, want a *DownloadError", err)
	} else if strings.Count(err.Error(), failure.URL) != 1 {
		t.Errorf("error %q, want the address once", err)
	}
}

// A server that begins to answer, or does not even do that, and then stands
// still until the client has gone.
func TestDownloadStalls(t *testing.T) {
	for _, sent := range []string{"", content[:5]} {
		source := serve(t, func(w http.ResponseWriter, r *http.Request) {
			if sent != "" {
				_, _ = w.Write([]byte(sent))
				_ = http.NewResponseController(w).Flush()
			}
			<-r.Context().Done()
		})
		source.StallTimeout = 20 * time.Millisecond
		_, err := source.locate(t.Context(), describe("file"))
		if _, ok := errors.AsType[*DownloadError](err); !ok || !errors.Is(err, errStalled) {
			t.Errorf("after %q: error %v, want a *DownloadError of %v", sent, err, errStalled)
		}
		wantEmpty(t, source.CacheDir)
	}
}

func TestDownloadCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	source := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := source.locate(ctx, describe("file")); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}
	wantEmpty(t, source.CacheDir)
}

func TestDownloadNowhereToStore(t *testing.T) {
	source := serve(t, http.NotFound)
	occupied := filepath.Join(t.TempDir(), "file")
	write(t, occupied, "")
	source.CacheDir = filepath.Join(occupied, "cache")
	_, err := source.locate(t.Context(), describe("file"))
	if _, ok := errors.AsType[*DownloadError](err); !ok {
		t.Errorf("error %v, want a *DownloadError", err)
	}
}

func TestLocateOrder(t *testing.T) {
	source := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("request, though the file is there") })
	source.DataDir = t.TempDir()
	file := describe("file")
	// From the last place to look in to the first.
	for _, path := range []string{
		filepath.Join(source.CacheDir, "file"),
		filepath.Join(source.DataDir, "adult", "file.gz"),
		filepath.Join(source.DataDir, "adult", "file"),
		filepath.Join(source.DataDir, "file.gz"),
		filepath.Join(source.DataDir, "file"),
	} {
		write(t, path, content)
		paths, err := source.locate(t.Context(), file)
		if err != nil {
			t.Fatal(err)
		}
		if paths[0] != path {
			t.Errorf("found %s, want %s", paths[0], path)
		}
	}
}
