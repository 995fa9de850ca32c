package operate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/postgres/pgtest"
)

// A store moves from a file to a database and back, by copies and by backups, and stays what it was.
func TestDatabaseCommands(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("a.db"))
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	clitest.Must(t, "depth,rate,kind,error\n3,0.5,a,0.25\n3,0.5,a,0.25\n4,1e-2,b,0.125\n", "trial", "import", "small", "-", "--server", address)
	exported, _ := clitest.Must(t, "", "export", "--server", address)
	one, two, three := pgtest.URL(t), pgtest.URL(t), pgtest.URL(t)
	clitest.WantFailure(t, "stop every server that uses it first", "store", "copy", "--from", file("a.db"), "--to", one)
	stop()

	sum := regexp.MustCompile(`records=\d+ sha256=[0-9a-f]{64}`)
	_, log := clitest.Must(t, "", "store", "copy", "--from", file("a.db"), "--to", one)
	first := sum.FindString(log)
	if first == "" || !strings.Contains(log, "studies=1 trials=3") {
		t.Errorf("copied: %s", log)
	}
	clitest.WantFailure(t, "already holds a store", "store", "copy", "--from", file("a.db"), "--to", one)
	clitest.WantFailure(t, "holds no store", "store", "copy", "--from", two, "--to", file("none.db"))
	clitest.WantFailure(t, "holds no store", "check", "--store", two)

	// A server on the database.
	address, stop = clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", one)
	if again, _ := clitest.Must(t, "", "export", "--server", address); again != exported {
		t.Errorf("exported from the database: %s\nwant: %s", again, exported)
	}
	clitest.Must(t, "", "backup", "--to", file("served.txt"), "--server", address)
	clitest.Must(t, "", "backup", "--to", file("beside.txt"), "--store", one)
	clitest.Must(t, "", "check", "--store", one)
	clitest.WantFailure(t, "stop every server that uses it first", "store", "copy", "--from", one, "--to", file("b.db"))
	clitest.WantFailure(t, "stop every server that uses it first", "compact", "--store", one)
	stop()
	clitest.Must(t, "", "compact", "--store", one)
	if _, log := clitest.Must(t, "", "store", "copy", "--from", one, "--to", file("b.db")); sum.FindString(log) != first {
		t.Errorf("copied back: %s, want %s", log, first)
	}
	clitest.WantFailure(t, "--force replaces it", "store", "copy", "--from", one, "--to", file("b.db"))

	// The backups are the same text, and make a store of either kind.
	served, err := os.ReadFile(file("served.txt"))
	require.NoError(t, err)
	if beside, err := os.ReadFile(file("beside.txt")); err != nil || !bytes.Equal(beside, served) || !bytes.HasPrefix(served, []byte("dpareto store, format ")) {
		t.Errorf("two backups differ: %v", err)
	}
	clitest.Must(t, "", "restore", "--from", file("served.txt"), "--store", two)
	clitest.Must(t, "", "restore", "--from", file("served.txt"), "--store", file("c.db"))
	clitest.Must(t, "", "restore", "--from", file("a.db"), "--store", three)
	clitest.WantFailure(t, "already holds a store", "restore", "--from", file("served.txt"), "--store", two)
	clitest.WantFailure(t, "--force cannot replace", "restore", "--from", file("served.txt"), "--store", two, "--force")
	for _, name := range []string{one, two, three, file("b.db"), file("c.db"), file("served.txt")} {
		counts, _ := clitest.Must(t, "", "check", "--store", name, "--output", "csv")
		if !strings.Contains(counts, "\nstudy,1,") || !strings.Contains(counts, "\ntrial,3,") {
			t.Errorf("%s: check prints %q", name, counts)
		}
	}

	// Whatever is damaged is told, and goes nowhere.
	pgtest.Exec(t, two, "UPDATE dpareto_records SET value = value || 'x' WHERE position('trial/' IN encode(key, 'escape')) > 0")
	if _, stderr := clitest.Fail(t, command.ExitFailure, "check --store "+two); !strings.Contains(stderr, "trial 1 of studies/small has a wrong checksum") {
		t.Errorf("check of a damaged database: %s", stderr)
	}
	clitest.WantFailure(t, "not sound", "store", "copy", "--from", two, "--to", file("d.db"))
	clitest.WantFailure(t, "not sound", "backup", "--store", two, "--to", file("d.txt"))
	spoiled := bytes.Replace(served, []byte(`" `), []byte(`"  `), 1)
	require.NoError(t, os.WriteFile(file("e.txt"), append(bytes.TrimSuffix(served, []byte("\n")), "0\n"...), 0o600))
	require.NoError(t, os.WriteFile(file("f.txt"), spoiled, 0o600))
	empty := pgtest.URL(t)
	for _, name := range []string{"e.txt", "f.txt"} {
		clitest.WantFailure(t, "damaged", "restore", "--from", file(name), "--store", empty)
		clitest.WantFailure(t, "damaged", "check", "--store", file(name))
	}
	clitest.WantFailure(t, "not sound", "store", "copy", "--from", two, "--to", empty)
	for _, name := range []string{"d.db", "d.txt"} {
		if _, err := os.Stat(file(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	if served, log := serves(t, empty); served || !strings.Contains(log, "holds no store") {
		t.Errorf("a database in which nothing was restored: %s", log)
	}
}

// serves starts a server, stops it, and returns whether it served, and its log.
func serves(t *testing.T, store string) (bool, string) {
	t.Helper()
	p := clitest.Start(t, "serve", "--listen", "127.0.0.1:0", "--store", store)
	line, _ := p.Stdout.ReadString('\n')
	log, _ := p.Stop()
	return line != "", log
}
