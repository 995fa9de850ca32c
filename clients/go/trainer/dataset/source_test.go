package dataset

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/internal/fetch"
	"github.com/dpareto/dpareto/internal/require"
)

const twoRows = "+1 1:1\n-1 2:1\n"

// describe returns a file of that content.
func describe(name string) fetch.File {
	sum := sha256.Sum256([]byte(twoRows))
	return fetch.File{Name: name, Size: int64(len(twoRows)), SHA256: hex.EncodeToString(sum[:]), URLs: []string{"unused"}}
}

// example is a dataset of two files, and of one that cannot be downloaded.
func example() *entry {
	known := []fetch.File{describe("one"), describe("two")}
	return &entry{info: Info{Name: "example"}, folder: "folder", files: append(known, fetch.File{Name: "three", URLs: []string{"https://example.org/three"}})}
}

// serveMirror starts a server and returns a source that downloads from it.
func serveMirror(t *testing.T, handler http.HandlerFunc) Source {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return Source{
		CacheDir:     filepath.Join(t.TempDir(), "cache"),
		Mirror:       server.URL + "/",
		Client:       server.Client(),
		StallTimeout: time.Minute,
	}
}

func TestLocate(t *testing.T) {
	requests := 0
	source := serveMirror(t, func(w http.ResponseWriter, r *http.Request) {
		requests++
		if strings.HasPrefix(r.URL.Path, "/folder/") {
			_, _ = w.Write([]byte(twoRows))
		}
	})
	var done, total int64
	source.Progress = func(d, of int64) {
		if d < done {
			t.Errorf("progress went back from %d to %d", done, d)
		}
		done, total = d, of
	}
	e := example()
	for range 2 { // the second time from the cache
		paths, err := source.locate(t.Context(), e, e.files[:2])
		require.NoError(t, err)
		want := []string{filepath.Join(source.CacheDir, "folder", "one"), filepath.Join(source.CacheDir, "folder", "two")}
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("paths (-want +got):\n%s", diff)
		}
		for _, path := range paths {
			if got, err := os.ReadFile(path); err != nil || string(got) != twoRows {
				t.Errorf("%s holds %q, error %v", path, got, err)
			}
		}
	}
	if requests != 2 {
		t.Errorf("%d requests, want 2", requests)
	}
	if want := 2 * int64(len(twoRows)); done != want || total != want {
		t.Errorf("progress ended at %d of %d, want %d", done, total, want)
	}

	// A file in the cache that has changed is downloaded again.
	source.Progress = nil
	path := filepath.Join(source.CacheDir, "folder", "two")
	write(t, path, "changed")
	require.NoError(t, require.ErrOf(source.locate(t.Context(), e, e.files[1:2])))
	if got, err := os.ReadFile(path); err != nil || string(got) != twoRows || requests != 3 {
		t.Errorf("%d requests, the file holds %q, %v", requests, got, err)
	}
}

// roundTrip makes a transport of a function.
type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Progress does not go back when a download starts over.
func TestLocateProgress(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		requests := 0
		source := Source{CacheDir: folder, Client: &http.Client{Transport: roundTrip(func(*http.Request) (*http.Response, error) {
			content := twoRows
			if requests++; requests == 2 {
				content = "-1 1:1\n+1 2:1\n"
			}
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(iotest.OneByteReader(strings.NewReader(content)))}, nil
		})}}
		var seen []int64
		source.Progress = func(done, total int64) {
			if total != 28 {
				t.Errorf("total %d, want 28", total)
			}
			seen = append(seen, done)
		}
		e := example()
		require.NoError(t, require.ErrOf(source.locate(t.Context(), e, e.files[:2])))
		if requests != 3 || !slices.IsSorted(seen) || seen[0] != 0 || seen[len(seen)-1] != 28 {
			t.Errorf("%d requests, progress %v", requests, seen)
		}
	})
}

func TestLocateFailures(t *testing.T) {
	source := serveMirror(t, http.NotFound)
	e := example()
	_, err := source.locate(t.Context(), e, e.files[:1])
	failure, ok := errors.AsType[*DownloadError](err)
	if !ok || failure.URL != source.Mirror+"folder/one" || !strings.Contains(err.Error(), "404 Not Found") {
		t.Errorf("error %v, want a *DownloadError", err)
	}
	if _, err := source.locate(t.Context(), e, e.files); !errors.Is(err, fs.ErrNotExist) ||
		!strings.Contains(err.Error(), "put the one of https://example.org/three into the data folder") {
		t.Errorf("file without a digest: error %v", err)
	}

	ctx, cancel := context.WithCancel(t.Context())
	waiting := serveMirror(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := waiting.locate(ctx, e, e.files[:1]); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want %v", err, context.Canceled)
	}

	source.CacheDir = filepath.Join(t.TempDir(), "file")
	write(t, source.CacheDir, "")
	_, err = source.locate(t.Context(), e, e.files[:1])
	if _, ok := errors.AsType[*DownloadError](err); !ok {
		t.Errorf("nowhere to store: error %v, want a *DownloadError", err)
	}
}

func TestLocateOrder(t *testing.T) {
	source := serveMirror(t, func(http.ResponseWriter, *http.Request) { t.Error("request, though the file is there") })
	source.DataDir = t.TempDir()
	e := example()
	e.files = []fetch.File{describe("file"), describe("packed.gz")}
	// From the last place to look in to the first.
	for i, names := range [][2]string{
		{"file", "packed.gz"},
		{"file.gz", "packed"},
		{"file", "packed.gz"},
		{"file.gz", "packed"},
		{"file", "packed.gz"},
	} {
		folder := []string{
			filepath.Join(source.CacheDir, "folder"),
			filepath.Join(source.DataDir, "folder"),
			filepath.Join(source.DataDir, "folder"),
			source.DataDir,
			source.DataDir,
		}[i]
		want := []string{filepath.Join(folder, names[0]), filepath.Join(folder, names[1])}
		for _, path := range want {
			if filepath.Ext(path) == ".gz" && i > 0 { // the digest is the one of the decompressed file
				writeCompressed(t, path, twoRows)
			} else {
				write(t, path, twoRows)
			}
		}
		paths, err := source.locate(t.Context(), e, e.files)
		require.NoError(t, err)
		if diff := cmp.Diff(want, paths); diff != "" {
			t.Errorf("paths (-want +got):\n%s", diff)
		}
	}
}

// A file of the data folder is used if it has the dataset's content, compressed or not.
func TestLocateChecksDataDir(t *testing.T) {
	source := serveMirror(t, func(http.ResponseWriter, *http.Request) { t.Error("request, though the file is there") })
	source.DataDir = t.TempDir()
	packed := describe("file.gz")
	packed.Unpacked = true
	for name, file := range map[string]fetch.File{"file": describe("file"), "file.gz": packed} {
		e := example()
		e.files = []fetch.File{file}
		for _, tt := range []struct {
			content string
			ok      bool
		}{{twoRows, true}, {strings.Replace(twoRows, "+1", "-1", 1), false}, {"", false}, {twoRows + " ", false}} {
			for _, compressed := range []bool{false, true} {
				path := filepath.Join(source.DataDir, "file")
				require.NoError(t, errors.Join(os.RemoveAll(path), os.RemoveAll(path+".gz")))
				if compressed {
					writeCompressed(t, path+".gz", tt.content)
				} else {
					write(t, path, tt.content)
				}
				_, err := source.locate(t.Context(), e, e.files)
				if (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), "SHA-256") {
					t.Errorf("%s, compressed %t, content %q: error %v", name, compressed, tt.content, err)
				}
			}
		}
	}
}

// writeCompressed writes a file compressed with gzip.
func writeCompressed(t *testing.T, path, content string) {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	require.NoError(t, require.ErrOf(w.Write([]byte(content))))
	require.NoError(t, w.Close())
	write(t, path, b.String())
}

// The files of the catalog are those that lie in the folder, and Fetch gets them from a
// mirror.
func TestCatalogFiles(t *testing.T) {
	folder := filepath.Dir(datasettest.Folder(t, "adult"))
	source := serveMirror(t, http.FileServer(http.Dir(folder)).ServeHTTP)
	for _, info := range Catalog() {
		paths, err := source.Fetch(t.Context(), info.Name)
		if info.Name == NameGisette || info.Name == NameCovertype {
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s: error %v, want %v", info.Name, err, fs.ErrNotExist)
			}
			continue
		}
		require.NoError(t, err)
		found, err := source.Find(info.Name)
		require.NoError(t, err)
		if diff := cmp.Diff(paths, found); diff != "" {
			t.Errorf("%s: found (-want +got):\n%s", info.Name, diff)
		}
		e, err := find(info.Name)
		require.NoError(t, err)
		for i, path := range paths {
			want, err := os.ReadFile(filepath.Join(folder, e.folder, info.Files[i].Name))
			require.NoError(t, err)
			got, err := os.ReadFile(path)
			if err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s is not the original, error %v", path, err)
			}
			if int64(len(want)) != info.Files[i].Size {
				t.Errorf("%s has %d bytes, want %d", path, len(want), info.Files[i].Size)
			}
		}
	}
}

func TestFindUnknown(t *testing.T) {
	const want = `dataset "iris" is unknown, want one of adult, adult-raw, mnist, kddcup99, gisette, covertype, breast-cancer, breast-cancer-original`
	var source Source
	if _, err := source.Find("iris"); err == nil || err.Error() != want {
		t.Errorf("Find: error %v, want %s", err, want)
	}
	if _, err := source.Fetch(t.Context(), "iris"); err == nil || err.Error() != want {
		t.Errorf("Fetch: error %v, want %s", err, want)
	}
	if _, err := Load(t.Context(), "iris", Division{}, source); err == nil || err.Error() != want {
		t.Errorf("Load: error %v, want %s", err, want)
	}
	if _, err := NewCache().Load(t.Context(), "iris", Division{}, source); err == nil || err.Error() != want {
		t.Errorf("Cache: error %v, want %s", err, want)
	}
}
