package storetest

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// writerStore is the environment variable that makes a test's program write to a store until it is
// killed (see Killed). Its value names the store.
const writerStore = "DPARETO_TEST_WRITER_STORE"

// WriteUntilKilled returns at once, unless the program was started by Killed: then it writes to the
// store. TestMain calls it first.
func WriteUntilKilled(open func(name string) (store.KV, error)) {
	name := os.Getenv(writerStore)
	if name == "" {
		return
	}
	db, err := open(name)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// Numbers from 64 goroutines, each of which is printed after its Update has returned.
	var next atomic.Int64
	for range 64 {
		go func() {
			for {
				n := next.Add(1)
				scope := store.In(store.StudyScope(strconv.FormatInt(n%3, 10)))
				err := db.Update(context.Background(), scope, func(tx store.ReadWriter) error {
					tx.Put(fmt.Sprintf("%08d", n), []byte("x"))
					return nil
				})
				if err != nil {
					fmt.Fprintln(os.Stderr, err)
					os.Exit(1)
				}
				_, _ = fmt.Fprintln(os.Stdout, n)
			}
		}()
	}
	select {}
}

// Killed tests that what was acknowledged is there after SIGKILL. Its program calls WriteUntilKilled.
func Killed(t *testing.T, name string, open func(name string) (store.KV, error)) {
	t.Helper()
	for round := range 5 {
		writer := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // it is this program
		writer.Env = append(os.Environ(), writerStore+"="+name)
		writer.Stderr = os.Stderr
		out, err := writer.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, writer.Start())
		var acknowledged []string
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			acknowledged = append(acknowledged, lines.Text())
			if len(acknowledged) == 100*(round+1) {
				require.NoError(t, writer.Process.Kill())
			}
		}
		if err := writer.Wait(); err == nil {
			t.Fatal("the writer ended by itself")
		}
		db, err := open(name)
		require.NoError(t, err)
		stored := Dump(t, db)
		if len(acknowledged) < 100*(round+1) {
			t.Errorf("round %d: the writer ended after %d acknowledgements", round, len(acknowledged))
		}
		for i, line := range acknowledged {
			n, err := strconv.Atoi(line)
			if err != nil && i == len(acknowledged)-1 {
				continue // the kill cut the last line
			}
			if stored[fmt.Sprintf("%08d", n)] == "" {
				t.Errorf("round %d: acknowledged %q is lost", round, line)
			}
		}
		require.NoError(t, db.Close())
	}
}
