package dataset

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// DefaultStallTimeout is how long a download may stand still before it fails.
const DefaultStallTimeout = 15 * time.Second

// Source says where data files are taken from. The zero value means the
// platform's cache folder, and the files' canonical address for those that are
// not there yet.
type Source struct {
	// DataDir is looked into first, both for DIR/NAME and for DIR/adult/NAME, plain
	// or with .gz appended. It is never written to. Empty means no such folder.
	DataDir string
	// CacheDir is looked into next, and keeps the files that are downloaded. Empty
	// means dpareto/adult in the folder of os.UserCacheDir.
	CacheDir string
	// BaseURL is where files are downloaded from, with a slash at its end. Empty
	// means AdultURL.
	BaseURL string
	// Client makes the requests. Nil means http.DefaultClient.
	Client *http.Client
	// StallTimeout ends a download that receives nothing for so long. Zero means
	// DefaultStallTimeout.
	StallTimeout time.Duration
	// Progress, when not nil, is called during downloads with the number of bytes
	// done and the total, of all the files that are missing.
	Progress func(done, total int64)
}

// DownloadError says that a data file is neither in the folders nor could be had
// from the network. Its message is one line.
type DownloadError struct {
	URL string
	Err error // what went wrong
}

// Error implements error.
func (e *DownloadError) Error() string { return fmt.Sprintf("download %s: %v", e.URL, e.Err) }

// Unwrap returns Err.
func (e *DownloadError) Unwrap() error { return e.Err }

// remoteFile is a file that is known to the last byte.
type remoteFile struct {
	name   string
	size   int64 // bytes
	sha256 string
	rows   int
}

var errStalled = errors.New("no data received in time")

// locate returns the paths of the files, after downloading those that are in
// neither folder.
func (s *Source) locate(ctx context.Context, files ...remoteFile) ([]string, error) {
	cache, cacheErr := s.cacheDir()
	paths := make([]string, len(files))
	var missing, total int64
	for i, f := range files {
		candidates := s.candidates(f.name)
		if cacheErr == nil {
			candidates = append(candidates, filepath.Join(cache, f.name))
		}
		paths[i] = firstFile(candidates)
		if paths[i] == "" {
			missing++
			total += f.size
		}
	}
	if missing == 0 {
		return paths, nil
	}

	var done int64
	progress := func(n int) {
		done += int64(n)
		if s.Progress != nil {
			s.Progress(done, total)
		}
	}
	for i, f := range files {
		if paths[i] != "" {
			continue
		}
		address := s.address(f.name)
		if cacheErr != nil {
			return nil, &DownloadError{URL: address, Err: fmt.Errorf("no cache folder: %w", cacheErr)}
		}
		path, err := s.download(ctx, address, cache, f, progress)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, &DownloadError{URL: address, Err: err}
		}
		paths[i] = path
	}
	return paths, nil
}

// candidates returns where in the data folder a file may be.
func (s *Source) candidates(name string) []string {
	if s.DataDir == "" {
		return nil
	}
	var paths []string
	for _, folder := range []string{s.DataDir, filepath.Join(s.DataDir, "adult")} {
		paths = append(paths, filepath.Join(folder, name), filepath.Join(folder, name+".gz"))
	}
	return paths
}

func (s *Source) cacheDir() (string, error) {
	if s.CacheDir != "" {
		return s.CacheDir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "dpareto", "adult"), nil
}

func (s *Source) address(name string) string {
	if s.BaseURL != "" {
		return s.BaseURL + name
	}
	return AdultURL + name
}

// firstFile returns the first of the paths that is a regular file, or "".
func firstFile(paths []string) string {
	for _, path := range paths {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return ""
}

// download stores the content at the address in the folder and returns its path. The
// file appears there under its name only when it is complete and right.
func (s *Source) download(
	ctx context.Context, address, folder string, f remoteFile, progress func(n int),
) (path string, err error) {
	timeout := s.StallTimeout
	if timeout == 0 {
		timeout = DefaultStallTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(timeout, func() { cancel(errStalled) })
	defer watchdog.Stop()

	if err = os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	part, err := os.CreateTemp(folder, f.name+".*.part")
	if err != nil {
		return "", err
	}
	defer func() {
		if err == nil {
			return
		}
		// Nothing is left behind; the first error is the one that matters.
		_ = part.Close()
		_ = os.Remove(part.Name())
		if errors.Is(context.Cause(ctx), errStalled) {
			err = fmt.Errorf("%w (%v)", errStalled, timeout)
		}
	}()

	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return "", err
	}
	client := s.Client
	if client == nil {
		client = http.DefaultClient
	}
	response, err := client.Do(request)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err // without the address, which the caller adds
		}
		return "", err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return "", errors.New(response.Status)
	}

	hash := sha256.New()
	body := readerFunc(func(p []byte) (int, error) {
		read, readErr := response.Body.Read(p)
		watchdog.Reset(timeout)
		progress(read)
		return read, readErr
	})
	// One byte more than expected is enough to see that the file is too long.
	n, err := io.Copy(io.MultiWriter(part, hash), io.LimitReader(body, f.size+1))
	if err != nil {
		return "", fmt.Errorf("after %d of %d bytes: %w", n, f.size, err)
	}
	if n < f.size {
		return "", fmt.Errorf("the file ends after %d of %d bytes", n, f.size)
	}
	if got := hex.EncodeToString(hash.Sum(nil)); got != f.sha256 {
		return "", fmt.Errorf("the file has SHA-256 %s, want %s", got, f.sha256)
	}
	if err := errors.Join(part.Sync(), part.Close()); err != nil {
		return "", err
	}
	path = filepath.Join(folder, f.name)
	return path, os.Rename(part.Name(), path)
}

// readerFunc makes a reader of a function.
type readerFunc func(p []byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
