// Package pgtest runs a PostgreSQL server for tests: one for each test process that asks, with a
// cluster of its own in a temporary folder, that only a Unix socket there leads to. A shell watches over
// it, which stops it and removes the folder when the test process ends, however that happens.
package pgtest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/dpareto/dpareto/internal/require"
)

// requireVariable is the environment variable that makes tests fail where PostgreSQL is not installed.
// Otherwise they are skipped.
const requireVariable = "DPARETO_REQUIRE_POSTGRES"

// watch makes a cluster in the folder $1 with the programs in $2, starts it with the options $3, says so,
// and waits for the end of its input.
const watch = `
cd "$1" || exit 1
"$2/initdb" -D data -U dpareto -A trust -E UTF8 --locale=C --no-sync >log 2>&1 &&
	"$2/pg_ctl" -D data -l log -w -o "$3" start >>log 2>&1 &&
	echo ready
exec >&-
cat >/dev/null
for data in data*
do "$2/pg_ctl" -D "$data" -m immediate stop >>log 2>&1
done
rm -rf "$1"
`

// errNotInstalled says where PostgreSQL was looked for.
var errNotInstalled = errors.New("PostgreSQL is not installed: no initdb in /usr/lib/postgresql/*/bin or PATH (Debian: apt-get install postgresql)")

// input keeps the cluster running while the process has it.
var input io.WriteCloser

// start starts the cluster of this process, and returns its folder.
var start = sync.OnceValues(func() (folder string, err error) {
	programs, err := findPrograms()
	if err != nil {
		return "", err
	}
	if folder, err = os.MkdirTemp("", "dpareto-postgres-"); err != nil {
		return "", err
	}
	cmd := exec.Command("sh", "-c", watch, "sh", folder, programs, options(folder))
	if os.Geteuid() == 0 { // as which initdb refuses to run
		uid, gid, err := unprivileged()
		if err != nil {
			return "", err
		}
		if err := os.Chown(folder, uid, gid); err != nil {
			return "", err
		}
	}
	if err := confine(cmd); err != nil {
		return "", err
	}
	if input, err = cmd.StdinPipe(); err != nil {
		return "", err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return "", err
	}
	if err := cmd.Start(); err != nil {
		return "", err
	}
	if line, err := bufio.NewReader(output).ReadString('\n'); line != "ready\n" {
		log, _ := os.ReadFile(filepath.Join(folder, "log"))
		return "", errors.Join(fmt.Errorf("PostgreSQL does not start: %s", log), err, input.Close())
	}
	return folder, output.Close()
})

// confine runs a program as a user that PostgreSQL runs as, without the terminal's signals.
func confine(cmd *exec.Cmd) error {
	if os.Geteuid() == 0 {
		uid, gid, err := unprivileged()
		if err != nil {
			return err
		}
		runAs(cmd, uid, gid)
	}
	detach(cmd)
	return nil
}

// Crash ends the cluster without a shutdown, like kill -9 of all its processes, and starts it again. It
// recovers its acknowledged writes from its log. Crash returns when it had ended.
func Crash(t testing.TB) (ended time.Time) {
	t.Helper()
	folder, err := start()
	require.NoError(t, err)
	programs, err := findPrograms()
	require.NoError(t, err)
	command(t, folder, filepath.Join(programs, "pg_ctl"), "-D", "data", "-w", "-m", "immediate", "stop")
	ended = time.Now()
	command(t, folder, filepath.Join(programs, "pg_ctl"), "-D", "data", "-l", "log", "-w", "-o", options(folder), "start")
	return ended
}

// options returns the options of PostgreSQL for a cluster whose socket is in a folder.
func options(folder string) string {
	return "-k " + folder + " -c listen_addresses= -c max_connections=200"
}

// command runs a program of PostgreSQL in the folder of the cluster.
func command(t testing.TB, folder, program string, arguments ...string) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, arguments...)
	cmd.Dir = folder
	require.NoError(t, confine(cmd))
	if err := cmd.Run(); err != nil {
		log, _ := os.ReadFile(filepath.Join(folder, "log"))
		t.Fatalf("%s: %v: %s", cmd, err, log)
	}
}

// findPrograms returns the folder of initdb and pg_ctl, the latest where there are several.
func findPrograms() (string, error) {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	if len(found) == 0 {
		return "", errNotInstalled
	}
	version := func(path string) int {
		n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
		return n
	}
	return filepath.Dir(slices.MaxFunc(found, func(a, b string) int { return version(a) - version(b) })), nil
}

// unprivileged returns a user that PostgreSQL can run as.
func unprivileged() (uid, gid int, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		var u *user.User
		if u, err = user.Lookup(name); err != nil {
			continue
		}
		if uid, err = strconv.Atoi(u.Uid); err != nil {
			return 0, 0, err
		}
		gid, err = strconv.Atoi(u.Gid)
		return uid, gid, err
	}
	return 0, 0, err
}

// schemas counts the schemas that URL has made.
var schemas atomic.Int64

// URL returns the URL of a new, empty schema.
func URL(t testing.TB) string {
	t.Helper()
	return Schema(t, fmt.Sprintf("test_%d", schemas.Add(1)))
}

// Schema returns the URL of a schema with a name, which it makes if there is none.
func Schema(t testing.TB, name string) string {
	t.Helper()
	Exec(t, Database(t, ""), "CREATE SCHEMA IF NOT EXISTS "+pgx.Identifier{name}.Sanitize())
	return Database(t, name)
}

// Database returns the URL of the database with a search_path. It skips the test, or fails it where
// DPARETO_REQUIRE_POSTGRES is set, if PostgreSQL is not installed.
func Database(t testing.TB, searchPath string) string {
	t.Helper()
	folder, err := start()
	if errors.Is(err, errNotInstalled) && os.Getenv(requireVariable) == "" {
		t.Skip(err)
	}
	require.NoError(t, err)
	return at(folder, searchPath)
}

// at returns the URL of the database whose socket is in a folder, or one of several.
func at(folders, searchPath string) string {
	query := url.Values{"host": {folders}}
	if searchPath != "" {
		query.Set("search_path", searchPath)
	}
	return "postgres://dpareto@/postgres?" + query.Encode()
}

// Exec runs statements in a session of its own.
func Exec(t testing.TB, databaseURL, sql string, args ...any) {
	t.Helper()
	ctx := context.Background()
	conn, err := pgx.Connect(ctx, databaseURL)
	require.NoError(t, err)
	_, err = conn.Exec(ctx, sql, args...)
	require.NoError(t, errors.Join(err, conn.Close(ctx)))
}
