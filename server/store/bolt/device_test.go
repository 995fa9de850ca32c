//go:build linux

package bolt

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/storetest"
)

// limitedFile is the environment variable that makes the test binary write to a store up
// to a limit of the operating system (see TestFileSizeLimit).
const limitedFile = "DPARETO_TEST_LIMITED_FILE"

func init() { //nolint:gochecknoinits // TestMain is for all systems
	if path := os.Getenv(limitedFile); path != "" {
		writeLimited(path)
	}
}

// fillUp writes until the store refuses, and returns the keys that were acknowledged.
func fillUp(d *DB, name string, value []byte) (keys []string, refused error) {
	for {
		key := fmt.Sprintf("%s/%06d", name, len(keys))
		err := d.Update(context.Background(), nil, func(tx store.ReadWriter) error { tx.Put(key, value); return nil })
		if err != nil {
			return keys, err
		}
		keys = append(keys, key)
	}
}

// A file system that is really full: writes are refused for that reason, reads go on,
// nothing is lost, and writes go on when there is space.
func TestFullFileSystem(t *testing.T) {
	folder := t.TempDir()
	if err := unix.Mount("tmpfs", folder, "tmpfs", 0, "size=6m"); err != nil {
		t.Skipf("cannot mount a small file system: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(folder, 0); err != nil {
			t.Error(err)
		}
	})
	ballast := filepath.Join(folder, "ballast")
	require.NoError(t, os.WriteFile(ballast, make([]byte, 3<<20), 0o600))
	path := filepath.Join(folder, "store.db")
	d, err := Open(path)
	require.NoError(t, err)

	value := make([]byte, 50_000)
	first, err := fillUp(d, "first", value)
	if !errors.Is(err, store.ErrUnwritable) || !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "no space is left on the device") {
		t.Errorf("the full file system: %v", err)
	}
	if got := storetest.Dump(t, d); len(got) != len(first) || len(first) == 0 {
		t.Errorf("%d keys can be read of %d that were acknowledged", len(got), len(first))
	}
	elsewhere := t.TempDir()
	t.Setenv("TMPDIR", folder)
	_, err = d.Snapshot(t.Context())
	if unwritable, ok := errors.AsType[*store.UnwritableError](err); !ok || !unwritable.Full {
		t.Errorf("a snapshot without space: %v", err)
	}
	t.Setenv("TMPDIR", elsewhere)
	if got := snapshotContents(t, d); len(got) != len(first) {
		t.Errorf("a snapshot on another device has %d keys of %d", len(got), len(first))
	}
	require.NoError(t, os.Remove(ballast))
	second, _ := fillUp(d, "second", value)
	if len(second) == 0 {
		t.Error("nothing could be written with space again")
	}
	require.NoError(t, d.Close())
	stored := contents(t, path)
	for _, key := range append(first, second...) {
		if len(stored[key]) != len(value) {
			t.Errorf("%s was acknowledged and is lost", key)
		}
	}
	if want := len(first) + len(second); len(stored) != want {
		t.Errorf("%d keys, want %d", len(stored), want)
	}
}

// snapshotContents returns what a snapshot holds.
func snapshotContents(t *testing.T, d *DB) map[string]string {
	t.Helper()
	snapshot, err := d.Snapshot(t.Context())
	require.NoError(t, err)
	data, err := io.ReadAll(snapshot)
	require.NoError(t, errors.Join(err, snapshot.Close()))
	path := filepath.Join(t.TempDir(), "snapshot.db")
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return contents(t, path)
}

// writeLimited writes up to the limit of the size of files, which it sets, and on when it
// is raised. It prints what was acknowledged.
func writeLimited(path string) {
	fail := func(err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	signal.Ignore(unix.SIGXFSZ) // so that writes fail instead
	d, err := Open(path)
	fail(err)
	var limit unix.Rlimit
	fail(unix.Getrlimit(unix.RLIMIT_FSIZE, &limit))
	small := unix.Rlimit{Cur: 2 << 20, Max: limit.Max} // room for the file to be opened
	fail(unix.Setrlimit(unix.RLIMIT_FSIZE, &small))
	keys, refused := fillUp(d, "first", make([]byte, 20_000))
	unwritable, ok := errors.AsType[*store.UnwritableError](refused)
	if !ok {
		fail(fmt.Errorf("refused with %w", refused))
	}
	fmt.Fprintln(os.Stdout, "refused:", unwritable.Reason)
	fail(unix.Setrlimit(unix.RLIMIT_FSIZE, &limit))
	for written := 0; written < 20; {
		key := fmt.Sprintf("second/%06d", written)
		err := d.Update(context.Background(), nil, func(tx store.ReadWriter) error { tx.Put(key, make([]byte, 20_000)); return nil })
		if err == nil {
			keys = append(keys, key)
			written++
		} else if !errors.Is(err, store.ErrUnwritable) {
			fail(err)
		}
	}
	for _, key := range keys {
		fmt.Fprintln(os.Stdout, key)
	}
	os.Exit(0) // as a crash would, without closing
}

// The limit that the operating system sets to the size of files behaves like a full disk.
func TestFileSizeLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), limitedFile+"="+path)
	child.Stderr = os.Stderr
	out, err := child.Output()
	require.NoError(t, err)
	stored := contents(t, path)
	lines := bufio.NewScanner(strings.NewReader(string(out)))
	lines.Scan()
	if got, want := lines.Text(), "refused: the file has reached the largest size that the system allows"; got != want {
		t.Errorf("first line %q, want %q", got, want)
	}
	n := 0
	for ; lines.Scan(); n++ {
		if len(stored[lines.Text()]) != 20_000 {
			t.Errorf("%s was acknowledged and is lost", lines.Text())
		}
	}
	if n < 40 || n != len(stored) {
		t.Errorf("%d keys were acknowledged, %d are stored", n, len(stored))
	}
}

// A file that must not be written is refused with its name, and can still be read.
func TestReadOnlyFile(t *testing.T) {
	path := filled(t, 3)
	require.NoError(t, os.Chmod(path, 0o400))
	if os.Geteuid() == 0 {
		// Nothing is forbidden to root but what the file system forbids.
		folder := filepath.Dir(path)
		if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
			t.Skipf("cannot mount a folder read-only: %v", err)
		}
		t.Cleanup(func() {
			if err := unix.Unmount(folder, 0); err != nil {
				t.Error(err)
			}
		})
		if err := unix.Mount("", folder, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
			t.Skipf("cannot mount a folder read-only: %v", err)
		}
	}
	_, err := Open(path)
	if !errors.Is(err, syscall.EROFS) && !errors.Is(err, os.ErrPermission) || !strings.Contains(err.Error(), path) {
		t.Errorf("Open returned %v", err)
	}
	if report, err := Verify(t.Context(), path); err != nil || len(report.Faults) > 0 {
		t.Errorf("Verify returned %+v, %v", report, err)
	}
}
