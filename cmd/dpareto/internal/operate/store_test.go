package operate_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/clitest"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store/fault"
)

// A study goes through every command that keeps or moves it, and stays what it was.
func TestStoreCommands(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("a.db"))
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	csv := "depth,rate,kind,error\n3,0.5,a,0.25\n3,0.5,a,0.25\n4,1e-2,b,0.125\n"
	for _, want := range []string{"trials=3 existed=0", "trials=0 existed=3"} {
		if _, log := clitest.Must(t, csv, "trial", "import", "small", "-", "--server", address); !strings.Contains(log, want) {
			t.Errorf("log %q, want %q", log, want)
		}
	}
	clitest.Must(t, `{"depth": 9, "rate": 0.125, "kind": "b", "error": [0.5, 0.75]}`+"\n\n", "trial", "import", "small", "-", "--server", address)
	exported, _ := clitest.Must(t, "", "export", "--server", address)
	if got := strings.Count(exported, "\n"); got != 5 {
		t.Errorf("%d lines, want 5: %s", got, exported)
	}
	clitest.Must(t, "", "backup", "--to", file("backup.db"), "--server", address)
	clitest.WantFailure(t, "--force replaces it", "backup", "--to", file("backup.db"), "--server", address)
	clitest.Must(t, "", "backup", "--to", file("backup.db"), "--force", "--server", address)
	clitest.WantFailure(t, "stop every server that uses it first", "check", "--store", file("a.db"))
	clitest.WantFailure(t, "stop every server that uses it first", "compact", "--store", file("a.db"))
	clitest.WantFailure(t, "stop every server that uses it first", "restore", "--from", file("backup.db"), "--store", file("a.db"), "--force")
	stop()

	// A restored backup, compacted, behind another server.
	clitest.Must(t, "", "restore", "--from", file("backup.db"), "--store", file("b.db"))
	clitest.WantFailure(t, "--force replaces it", "restore", "--from", file("backup.db"), "--store", file("b.db"))
	clitest.Must(t, "", "compact", "--store", file("b.db"))
	if _, err := os.Stat(file("b.db.bak")); err != nil {
		t.Error(err)
	}
	clitest.WantFailure(t, "move that away first", "restore", "--from", file("backup.db"), "--store", file("b.db"), "--force")
	clitest.Must(t, "", "compact", "--store", file("b.db"), "--discard")
	clitest.Must(t, "", "restore", "--from", file("backup.db"), "--store", file("b.db"), "--force")
	clitest.Must(t, "", "backup", "--store", file("b.db"), "--to", file("c.db"))
	counts, _ := clitest.Must(t, "", "check", "--store", file("c.db"), "--output", "csv")
	for _, want := range []string{"kind,keys,bytes\n", "\nstudy,1,", "\ntrial,4,"} {
		if !strings.Contains(counts, want) {
			t.Errorf("check prints %q, want %q", counts, want)
		}
	}
	address, stop = clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("c.db"))
	if again, _ := clitest.Must(t, "", "export", "--study", "small", "--server", address); again != exported {
		t.Errorf("exported from a backup: %s\nwant: %s", again, exported)
	}
	stop()

	// Another server, empty.
	address, _ = clitest.StartServer(t, "--listen", "127.0.0.1:0")
	for _, want := range []string{"imported", "exists already"} {
		if _, log := clitest.Must(t, "\ufeff"+exported, "import", "-", "--server", address); !strings.Contains(log, want) {
			t.Errorf("log %q, want %q", log, want)
		}
	}
	if again, _ := clitest.Must(t, "", "export", "--server", address); again != exported {
		t.Errorf("exported again: %s\nwant: %s", again, exported)
	}
	changed := strings.Replace(exported, "0.25", "0.26", 1)
	if _, log, code := clitest.Invoke(t, changed, "import", "-", "--server", address); code == command.ExitOK || !strings.Contains(log, "line") {
		t.Errorf("a study that differs: exit code %d, log %q", code, log)
	}
}

// What cannot be imported is told with its line.
func TestImportMistakes(t *testing.T) {
	address, _ := clitest.StartServer(t, "--listen", "127.0.0.1:0")
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	for _, tt := range []struct{ stdin, args, want string }{
		{"depth,speed\n1,2\n", "trial import small -", `standard input:1: "speed" is neither a parameter nor a metric`},
		{"depth,rate,kind,error\n1.5,1,a,1\n", "trial import small -", `standard input:2: parameter depth: must be an integer, is "1.5"`},
		{"depth,rate,kind,error\n1,1,a,often\n", "trial import small -", `standard input:2: metric error: must be a number, is "often"`},
		{"depth,rate,kind,error\n1,1,a,1\n99,1,a,1\n", "trial import small -", `standard input:3: nothing was imported: InvalidArgument: trial.parameters["depth"]`},
		{"{\"depth\": }", "trial import small -", "standard input:1: depth: is not JSON from \"}\" on"},
		{"", "trial import small -", "standard input: no header"},
		{"{}\n", "import -", "standard input:1: a trial comes before its study"},
		{"{\"what\": 1}\n", "import -", "standard input:1"},
		{"{\"study\": {}}\n", "import -", "import the study at line 1 of standard input: InvalidArgument: line 1: record.study.study.name"},
	} {
		_, log, code := clitest.Invoke(t, tt.stdin, append(strings.Fields(tt.args), "--server", address)...)
		if code == command.ExitOK || !strings.Contains(log, tt.want) {
			t.Errorf("%q: exit code %d, log %q, want %q", tt.stdin, code, log, tt.want)
		}
	}
}

// A damaged store is told from a sound one, and neither served, restored nor compacted.
func TestDamagedStore(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a.db")
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", path)
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	stop()
	require.NoError(t, os.Truncate(path, 32<<10))
	require.NoError(t, fault.Garble(path, 3, 8))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	for i, args := range [][]string{
		{"check", "--store"},
		{"compact", "--store"},
		{"restore", "--store", filepath.Join(folder, "b.db"), "--from"},
		{"backup", "--to", filepath.Join(folder, "b.db"), "--store"},
		{"serve", "--listen", "127.0.0.1:0", "--store"},
	} {
		damaged := path + strconv.Itoa(i) // a process that met damage keeps the lock
		require.NoError(t, os.WriteFile(damaged, content, 0o600))
		clitest.WantFailure(t, "damaged", append(args, damaged)...)
	}
	if _, err := os.Stat(filepath.Join(folder, "b.db")); err == nil {
		t.Error("a damaged store was copied")
	}
}

// A store with a damaged record is served but for that record, and neither copied nor compacted;
// what is whole of it is written to a new file on demand.
func TestSalvageStore(t *testing.T) {
	folder := t.TempDir()
	file := func(name string) string { return filepath.Join(folder, name) }
	address, stop := clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("a.db"))
	clitest.Must(t, clitest.SmallStudy, "study", "create", "-", "--server", address)
	exported, _ := clitest.Must(t, "", "export", "--server", address)
	clitest.Must(t, strings.Replace(clitest.SmallStudy, "small", "second", 1), "study", "create", "-", "--server", address)
	stop()
	clitest.Must(t, "", "check", "--store", file("a.db"))
	clitest.WantFailure(t, "is not damaged", "restore", "--salvage", "--from", file("a.db"), "--store", file("b.db"))
	damageRecord(t, file("a.db"), "studies/second\x00study/")
	for _, args := range [][]string{
		{"check", "--store", file("a.db")},
		{"compact", "--store", file("a.db")},
		{"restore", "--from", file("a.db"), "--store", file("b.db")},
		{"backup", "--store", file("a.db"), "--to", file("b.db")},
	} {
		clitest.WantFailure(t, "not sound", args...)
	}
	address, stop = clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("a.db"))
	clitest.WantFailure(t, "study of studies/second", "study", "get", "second", "--server", address)
	clitest.Must(t, "", "study", "get", "small", "--server", address)
	stop()
	clitest.WantFailure(t, "--store must name a new file", "restore", "--salvage", "--from", file("a.db"), "--store", file("a.db"))
	if _, stderr, code := clitest.Invoke(t, "", "restore", "--salvage", "--force", "--from", file("a.db"), "--store", file("b.db")); code != command.ExitUsage {
		t.Errorf("with --force: exit code %d, error %q", code, stderr)
	}
	// What refers to the study is not sound without it.
	clitest.WantFailure(t, "study of studies/second has a wrong checksum", "restore", "--salvage", "--from", file("a.db"), "--store", file("b.db"))
	clitest.WantFailure(t, "belongs to no study", "check", "--store", file("b.db"))
	address, stop = clitest.StartServer(t, "--listen", "127.0.0.1:0", "--store", file("b.db"))
	if again, _ := clitest.Must(t, "", "export", "--study", "small", "--server", address); again != exported {
		t.Errorf("salvaged: %s\nwant: %s", again, exported)
	}
	stop()
}

// damageRecord turns a bit over in every copy of a record in a file, free ones included.
func damageRecord(t *testing.T, path, key string) {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	n := 0
	for at := 0; ; n++ {
		i := bytes.Index(content[at:], []byte(key))
		if i < 0 {
			break
		}
		at += i + len(key)
		content[at+20] ^= 1
	}
	if n == 0 {
		t.Fatalf("%q is not in the file", key)
	}
	require.NoError(t, os.WriteFile(path, content, 0o600))
}
