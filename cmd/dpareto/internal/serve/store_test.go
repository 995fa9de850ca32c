package serve_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/dpareto/internal/serve"
	"github.com/dpareto/dpareto/internal/require"
)

// begins starts a server, stops it, and returns whether it served, and its log.
func begins(t *testing.T, args ...string) (served bool, log string) {
	t.Helper()
	p := clitest.Start(t, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	line, _ := p.Stdout.ReadString('\n') // the end of the program ends it
	log, _ = p.Stop()
	return strings.HasPrefix(line, serve.Listening), log
}

// A store that is not there, or empty, is not replaced by a new one in silence: its volume may not be
// mounted. Only the default file is made without being told.
func TestNewStore(t *testing.T) {
	home, folder := t.TempDir(), t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	missing, empty := filepath.Join(folder, "volume", "a.db"), filepath.Join(folder, "b.db")
	require.NoError(t, os.WriteFile(empty, nil, 0o600))
	refused := func(want string, args ...string) {
		t.Helper()
		if served, log := begins(t, args...); served || !strings.Contains(log, want) || !strings.Contains(log, "--create") {
			t.Errorf("%v: served %t: %s", args, served, log)
		}
	}
	serves := func(wantNew bool, args ...string) {
		t.Helper()
		if served, log := begins(t, args...); !served || strings.Contains(log, "new_store=true") != wantNew {
			t.Errorf("%v: served %t: %s", args, served, log)
		}
	}
	refused("does not exist", "--store", missing)
	if _, err := os.Stat(filepath.Dir(missing)); err == nil {
		t.Error("the folder of a missing store was made")
	}
	refused("is empty", "--store", empty)
	serves(true, "--store", missing, "--create")
	serves(false, "--store", missing)
	if _, log := begins(t, "--store", missing); strings.Contains(log, "--create") {
		t.Errorf("started as it should be: %s", log)
	}
	if served, log := begins(t, "--store", missing, "--create"); !served || !strings.Contains(log, "level=WARN msg=\"--create has no effect") {
		t.Errorf("--create with a store that exists: served %t: %s", served, log)
	}
	serves(true, "--store", empty, "--create")
	serves(true)
	serves(false)
	found, err := filepath.Glob(filepath.Join(home, "*", "dpareto.db"))
	if err != nil || len(found) != 1 {
		t.Fatalf("%v, %v", found, err)
	}
	require.NoError(t, os.Truncate(found[0], 0))
	refused("is empty")
}

// A folder is no store, and its permissions are no matter.
func TestStoreInFolder(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.Chmod(folder, 0o755))
	for _, args := range [][]string{{"--store", folder}, {"--store", folder, "--create"}} {
		if served, log := begins(t, args...); served || !strings.Contains(log, folder+" is a folder") || strings.Contains(log, "chmod") {
			t.Errorf("%v: served %t: %s", args, served, log)
		}
	}
}

// A store that everybody can read or write is refused; new ones and copies are for their owner.
func TestStoreModes(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.db")
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", path)
	clitest.Succeed(t, "backup --server "+address+" --to "+filepath.Join(folder, "b.db"))
	stop()
	clitest.Succeed(t, "restore --from "+path+" --store "+filepath.Join(folder, "c.db"))
	clitest.Succeed(t, "compact --store "+path)
	for _, name := range []string{"a.db", "a.db.bak", "b.db", "c.db"} {
		if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	for mode, ok := range map[fs.FileMode]bool{0o600: true, 0o640: true, 0o660: true, 0o644: false, 0o666: false, 0o602: false} {
		require.NoError(t, os.Chmod(path, mode))
		if served, log := begins(t, "--store", path); served != ok || !ok && !strings.Contains(log, "chmod 600") {
			t.Errorf("mode %#o: served %t: %s", mode, served, log)
		}
	}
}
