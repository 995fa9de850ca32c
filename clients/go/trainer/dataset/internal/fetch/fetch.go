package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a file with a known digest.
type File struct {
	// Name of the file in its folder.
	Name string
	// Size in bytes. It is an estimate when Unpacked is set.
	Size int64
	// SHA256 is the digest of the file, in hexadecimal digits.
	SHA256 string
	// Unpacked means that SHA256 is the digest of the decompressed file: copies differ in
	// their gzip header.
	Unpacked bool
	// URLs are the addresses where the file is, in order of preference.
	URLs []string
}

// slack is how much the size of a file with Unpacked set may exceed the estimate.
const slack = 64 << 10

// maxSize returns the number of bytes that the file cannot exceed.
func (f *File) maxSize() int64 {
	if f.Unpacked {
		return f.Size + slack
	}
	return f.Size
}

// Fetcher downloads files. It is safe for concurrent use.
type Fetcher struct {
	// Client makes the requests.
	Client *http.Client
	// StallTimeout ends an attempt that receives nothing for so long.
	StallTimeout time.Duration
	// Attempts is how often every address is tried, at least 1.
	Attempts int
	// Backoff is the pause after all addresses have failed once; each further pause is
	// twice as long as the one before.
	Backoff time.Duration
}

// lockPoll is how often to check whether another process is done.
const lockPoll = 200 * time.Millisecond

// Error says which address failed last, and how. Its message is one line.
type Error struct {
	URL string
	Err error
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("download %s: %v", e.URL, e.Err) }

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Fetch makes sure that the folder holds the file, and returns its path. A correct file
// is not downloaded again, a wrong one is replaced. progress receives the number of bytes
// so far, which falls if a download starts over. After a failure the received bytes stay
// in the folder, with the suffix .part, for the next call. The error is an *Error unless
// ctx is done or the folder cannot be used.
//
// An address is tried again after a temporary failure, a connection that breaks or
// stalls, and wrong content, but not if it is unreachable or its answer is final, such as
// 404. It panics for a file without an address.
func (f *Fetcher) Fetch(ctx context.Context, folder string, file File, progress func(done int64)) (path string, err error) {
	if len(file.URLs) == 0 {
		panic("fetch: file without an address")
	}
	if err := os.MkdirAll(folder, 0o750); err != nil {
		return "", err
	}
	release, err := waitLock(ctx, filepath.Join(folder, ".lock"))
	if err != nil {
		return "", err
	}
	defer release()

	path = filepath.Join(folder, file.Name)
	if Verify(path, file) == nil { // perhaps another process has just finished
		progress(file.Size)
		return path, nil
	}
	part := path + ".part"
	addresses := slices.Clone(file.URLs)
	pause := f.Backoff
	var failed *Error
	for attempt := 1; ; attempt++ {
		for _, address := range slices.Clone(addresses) {
			err := f.attempt(ctx, address, part, file, progress)
			if err == nil {
				progress(file.Size)
				return path, os.Rename(part, path)
			}
			if ctx.Err() != nil {
				return "", ctx.Err()
			}
			failed = &Error{URL: address, Err: err}
			if _, final := errors.AsType[*finalError](err); final {
				addresses = slices.DeleteFunc(addresses, func(a string) bool { return a == address })
			}
		}
		if len(addresses) == 0 || attempt >= f.Attempts {
			return "", failed
		}
		if err := sleep(ctx, pause); err != nil {
			return "", err
		}
		pause *= 2
	}
}

// waitLock locks the file at path, as soon as no other process holds it.
func waitLock(ctx context.Context, path string) (release func(), err error) {
	for {
		release, free, err := lock(path)
		if err != nil || free {
			return release, err
		}
		if err := sleep(ctx, lockPoll); err != nil {
			return nil, err
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// finalError says that an address need not be tried again.
type finalError struct{ err error }

// Error implements error.
func (e *finalError) Error() string { return e.err.Error() }

// Unwrap returns the failure.
func (e *finalError) Unwrap() error { return e.err }

// stallError says that nothing was received for so long.
type stallError time.Duration

// Error implements error.
func (e stallError) Error() string {
	return fmt.Sprintf("no data received in time (%v)", time.Duration(e))
}

// attempt tries an address once, continuing after the bytes in the file named part.
func (f *Fetcher) attempt(ctx context.Context, address, part string, file File, progress func(int64)) (err error) {
	out, err := os.OpenFile(part, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return &finalError{err}
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	done, err := out.Seek(0, io.SeekEnd)
	if err != nil {
		return &finalError{err}
	}
	if done > file.maxSize() {
		done = 0
	}
	if file.Unpacked || done < file.Size {
		if err := f.receive(ctx, address, out, done, file, progress); err != nil {
			return err
		}
	}
	if _, err := out.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := verify(out, file); err != nil {
		if _, short := errors.AsType[*shortError](err); !short {
			return errors.Join(err, out.Truncate(0)) // nothing of it can be trusted
		}
		return err
	}
	return out.Sync()
}

// receive appends the remaining bytes of the file to out, or replaces its content if the
// server does not send a part.
func (f *Fetcher) receive(ctx context.Context, address string, out *os.File, done int64, file File, progress func(int64)) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watchdog := time.AfterFunc(f.StallTimeout, func() { cancel(stallError(f.StallTimeout)) })
	defer watchdog.Stop()

	response, err := f.request(ctx, address, done)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusPartialContent:
		if got, want := response.Header.Get("Content-Range"), fmt.Sprintf("bytes %d-", done); !strings.HasPrefix(got, want) {
			return errors.Join(fmt.Errorf("the server sends %q, want %s", got, want), out.Truncate(0))
		}
	case http.StatusRequestedRangeNotSatisfiable:
		switch {
		case done == 0:
			return &finalError{errors.New(response.Status)}
		case file.Unpacked:
			return nil // nothing is left; the digest shows whether the file is complete
		default:
			return errors.Join(fmt.Errorf("after %d of %d bytes: %s", done, file.Size, response.Status), out.Truncate(0))
		}
	case http.StatusOK:
		done = 0
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return errors.New(response.Status)
	default:
		if response.StatusCode >= http.StatusInternalServerError {
			return errors.New(response.Status)
		}
		return &finalError{errors.New(response.Status)}
	}
	if err := out.Truncate(done); err != nil {
		return err
	}
	if _, err := out.Seek(done, io.SeekStart); err != nil {
		return err
	}
	progress(done)
	body := readerFunc(func(p []byte) (int, error) {
		n, err := response.Body.Read(p)
		watchdog.Reset(f.StallTimeout)
		done += int64(n)
		progress(done)
		return n, err
	})
	// One byte more than expected is enough to see that the file is too long.
	_, err = io.Copy(out, io.LimitReader(body, file.maxSize()-done+1))
	if err != nil {
		if stalled, ok := errors.AsType[stallError](context.Cause(ctx)); ok {
			err = stalled
		}
		return fmt.Errorf("after %d of %d bytes: %w", done, file.Size, err)
	}
	return nil
}

// request asks for the bytes from the given one on.
func (f *Fetcher) request(ctx context.Context, address string, from int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, &finalError{err}
	}
	// Bytes are counted and digested as they are stored.
	request.Header.Set("Accept-Encoding", "identity")
	if from > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", from))
	}
	response, err := f.Client.Do(request)
	if err == nil {
		return response, nil
	}
	if stalled, ok := errors.AsType[stallError](context.Cause(ctx)); ok {
		return nil, &finalError{stalled}
	}
	if wrapped, ok := errors.AsType[*url.Error](err); ok {
		err = wrapped.Err // without the address, which Error has
	}
	if failed, ok := errors.AsType[*net.OpError](err); ok && (failed.Op == "dial" || failed.Op == "proxyconnect") {
		return nil, &finalError{err}
	}
	return nil, err
}

// readerFunc makes a reader of a function.
type readerFunc func(p []byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(p []byte) (int, error) { return f(p) }
