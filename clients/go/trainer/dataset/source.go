package dataset

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset/internal/fetch"
)

const (
	// DefaultStallTimeout is how long a download may stall before it is aborted.
	DefaultStallTimeout = 15 * time.Second
	// downloadAttempts is how often an unreliable address is tried.
	downloadAttempts = 3
	// downloadBackoff is the first pause between attempts.
	downloadBackoff = time.Second
)

// Source says where data files come from. The zero value means the platform's cache
// folder, and the canonical addresses for files that are not there yet.
type Source struct {
	// DataDir is searched first, for DIR/FILE and DIR/DATASET/FILE, each also with .gz
	// added or removed. It is never written to. A file with another content than the dataset's is
	// an error. Empty means no such folder.
	DataDir string
	// CacheDir is searched next, for CACHE/DATASET/FILE, and keeps downloaded files.
	// Empty means dpareto in the folder of os.UserCacheDir.
	CacheDir string
	// Mirror is an address with MIRROR/DATASET/FILE, which replaces the canonical ones.
	// Empty means none.
	Mirror string
	// Client makes the requests. Nil means http.DefaultClient.
	Client *http.Client
	// StallTimeout aborts a download that receives nothing for that long. Zero means
	// DefaultStallTimeout.
	StallTimeout time.Duration
	// Outline asks for no files, but for examples without features, in the numbers and classes of the
	// dataset: enough to know the privacy cost of a training on it.
	Outline bool
	// Progress, when not nil, is called during downloads with the number of bytes
	// done, which never falls, and the total, of all the files that are missing.
	Progress func(done, total int64)
}

// DownloadError says that a data file is not in the folders and could not be downloaded.
// Its message is one line.
type DownloadError struct {
	URL string // where it was tried last
	Err error  // what went wrong there
}

// Error implements error.
func (e *DownloadError) Error() string { return fmt.Sprintf("download %s: %v", e.URL, e.Err) }

// Unwrap returns Err.
func (e *DownloadError) Unwrap() error { return e.Err }

// Find returns where the files of a dataset are, in the order of Info.Files, without
// downloading any; "" stands for a file that is in no folder. An unknown name is an
// error.
func (s *Source) Find(name string) (paths []string, err error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	for _, f := range e.files {
		paths = append(paths, s.find(e.folder, f))
	}
	return paths, nil
}

// Fetch returns the paths of all files of a dataset, in the order of Info.Files, after
// downloading those that are in no folder. Unlike Load it also checks the digests of the
// files in the cache folder, and replaces wrong ones.
//
// An unknown name is an error, and so is a missing file that cannot be downloaded because
// its digest is not known (errors.Is fs.ErrNotExist). A failed download gives a
// *DownloadError.
func (s *Source) Fetch(ctx context.Context, name string) (paths []string, err error) {
	e, err := find(name)
	if err != nil {
		return nil, err
	}
	return s.locate(ctx, e, e.files)
}

// locate returns the paths of some files of a dataset, after downloading those that are
// in neither folder, and those in the cache whose digest is wrong. A file in the data folder whose
// digest is wrong is an error.
func (s *Source) locate(ctx context.Context, e *entry, files []fetch.File) ([]string, error) {
	paths := make([]string, len(files))
	var missing []int
	var total int64
	for i, f := range files {
		paths[i] = s.find(e.folder, f)
		isCached := paths[i] == s.cached(e.folder, f.Name)
		if paths[i] != "" && !isCached && f.SHA256 != "" {
			if err := fetch.VerifyCopy(paths[i], f); err != nil {
				return nil, fmt.Errorf("dataset %s: %s: %w; replace or remove the file, or train on it under another name with a schema",
					e.info.Name, paths[i], err)
			}
		}
		if paths[i] == "" || isCached && fetch.Verify(paths[i], f) != nil {
			if f.SHA256 == "" {
				return nil, fmt.Errorf("dataset %s: no file %s: put the one of %s into the data folder: %w",
					e.info.Name, f.Name, strings.Join(f.URLs, " or "), fs.ErrNotExist)
			}
			missing = append(missing, i)
			total += f.Size
		}
	}
	if len(missing) == 0 {
		return paths, nil
	}
	var before, most int64
	for _, i := range missing {
		f := files[i]
		f.URLs = s.addresses(e.folder, f)
		path, err := s.download(ctx, e.folder, f, func(done int64) {
			most = max(most, before+min(done, f.Size))
			if s.Progress != nil {
				s.Progress(most, total)
			}
		})
		if err != nil {
			return nil, err
		}
		paths[i] = path
		before += f.Size
	}
	return paths, nil
}

// download downloads a file into the cache folder.
func (s *Source) download(ctx context.Context, folder string, f fetch.File, progress func(int64)) (string, error) {
	cache, err := s.cacheDir()
	if err != nil {
		return "", &DownloadError{URL: f.URLs[0], Err: fmt.Errorf("no cache folder: %w", err)}
	}
	fetcher := fetch.Fetcher{
		Client: s.Client, StallTimeout: s.StallTimeout,
		Attempts: downloadAttempts, Backoff: downloadBackoff,
	}
	if fetcher.Client == nil {
		fetcher.Client = http.DefaultClient
	}
	if fetcher.StallTimeout == 0 {
		fetcher.StallTimeout = DefaultStallTimeout
	}
	path, err := fetcher.Fetch(ctx, filepath.Join(cache, folder), f, progress)
	switch failed, ok := errors.AsType[*fetch.Error](err); {
	case err == nil:
		return path, nil
	case ctx.Err() != nil:
		return "", ctx.Err()
	case ok:
		return "", &DownloadError{URL: failed.URL, Err: failed.Err}
	default:
		return "", &DownloadError{URL: f.URLs[0], Err: err}
	}
}

// find returns where a file is, or "".
func (s *Source) find(folder string, f fetch.File) string {
	var paths []string
	if s.DataDir != "" {
		plain := strings.TrimSuffix(f.Name, ".gz")
		other := plain
		if f.Name == plain {
			other += ".gz"
		}
		for _, dir := range []string{s.DataDir, filepath.Join(s.DataDir, folder)} {
			paths = append(paths, filepath.Join(dir, f.Name), filepath.Join(dir, other))
		}
	}
	if cached := s.cached(folder, f.Name); cached != "" {
		paths = append(paths, cached)
	}
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// cached returns where a file is, or would be, in the cache folder; "" if there is none.
func (s *Source) cached(folder, name string) string {
	cache, err := s.cacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, folder, name)
}

func (s *Source) cacheDir() (string, error) {
	if s.CacheDir != "" {
		return s.CacheDir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dpareto"), nil
}

// addresses returns where a file can be downloaded from.
func (s *Source) addresses(folder string, f fetch.File) []string {
	if s.Mirror == "" {
		return f.URLs
	}
	return []string{strings.TrimSuffix(s.Mirror, "/") + "/" + folder + "/" + url.PathEscape(f.Name)}
}
