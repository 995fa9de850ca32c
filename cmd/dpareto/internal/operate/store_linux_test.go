package operate_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/cli"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
)

// spoil makes every write to a file that this process has open fail, as a broken device does.
func spoil(t *testing.T, path string) {
	t.Helper()
	reading, err := os.Open(path)
	require.NoError(t, err)
	defer func() { _ = reading.Close() }()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	for _, entry := range entries {
		fd, err := strconv.Atoi(entry.Name())
		target, _ := os.Readlink("/proc/self/fd/" + entry.Name())
		if err != nil || target != path || fd == int(reading.Fd()) {
			continue
		}
		require.NoError(t, unix.Dup3(int(reading.Fd()), fd, unix.O_CLOEXEC))
		return
	}
	t.Fatalf("%s is not open", path)
}

// A server that cannot commit for another reason than a full disk says why and ends with a
// failure, for its supervisor to start it again; what it acknowledged is there then.
func TestFailedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.db")
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", path, "--shutdown-grace", "100ms")
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	spoil(t, path)
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan int)
	go func() {
		second := strings.NewReader(strings.Replace(clitest.SmallStudy, "small", "second", 1))
		refused <- command.Main(ctx, []string{"study", "create", "-", "--server", address}, second, io.Discard, io.Discard, cli.New)
	}()
	for {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			break // it listens no more
		}
		_ = conn.Close()
		time.Sleep(time.Millisecond)
	}
	cancel()
	if code := <-refused; code == 0 {
		t.Error("what was not written was acknowledged")
	}
	if log, code := stop(); code != command.ExitFailure || !strings.Contains(log, "store: cannot be written") || !strings.Contains(log, path) {
		t.Errorf("the server ended with %d: %s", code, log)
	}
	address, _ = clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", path)
	studies, _ := clitest.Must(t, "", "study", "list", "--server", address)
	if !strings.Contains(studies, "small") || strings.Contains(studies, "second") {
		t.Error(fmt.Sprint("studies: ", studies))
	}
}
