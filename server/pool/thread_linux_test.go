package pool

import (
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpareto/dpareto/internal/require"
)

// A computation has a thread with a lower priority, which ends with the computation.
func TestRunOnThread(t *testing.T) {
	before, err := unix.SchedGetAttr(0, 0)
	require.NoError(t, err)
	var thread int
	onThread(func() {
		thread = unix.Gettid()
		if !strings.Contains(string(debug.Stack()), "locked to thread") {
			t.Error("the goroutine may move to another thread")
		}
		attr, err := unix.SchedGetAttr(0, 0)
		if want := min(19, before.Nice+nicer); err != nil || attr.Nice != want {
			t.Errorf("scheduled as %+v, %v, want nice %d", attr, err, want)
		}
	})
	if thread == os.Getpid() { // the first thread, which Go keeps and does not use again
		onThread(func() { thread = unix.Gettid() })
	}
	folder := "/proc/self/task/" + strconv.Itoa(thread)
	for { // as long as go test lets it
		if _, err := os.Stat(folder); errors.Is(err, os.ErrNotExist) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}
