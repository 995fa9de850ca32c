package audit

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
)

var quiet = slog.New(slog.DiscardHandler)

func record(resource string) Record {
	return Record{Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Principal: "ann", Method: "/s/M", Resource: resource, Code: "OK"}
}

// read returns the records in a file.
func read(t *testing.T, path string) []Record {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	var records []Record
	for line := range strings.Lines(string(content)) {
		var r Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		records = append(records, r)
	}
	return records
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(path, quiet)
	require.NoError(t, err)
	want := record("studies/a\n{\"time\":\"forged\"}")
	want.Changed = []Changed{{Name: "studies/a", Etag: "e", Revision: 3}}
	l.Write(want)
	// Before Write returns the record is in the file, for whoever reads it.
	if diff := cmp.Diff([]Record{want}, read(t, path)); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	require.NoError(t, l.Close())
	// A second run goes on at the end.
	if l, err = Open(path, quiet); err != nil {
		t.Fatal(err)
	}
	l.Write(record("studies/b"))
	require.NoError(t, l.Close())
	if got := read(t, path); len(got) != 2 || got[1].Resource != "studies/b" {
		t.Errorf("records %+v", got)
	}
}

func TestConcurrentRecordsDoNotMix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	l, err := Open(path, quiet)
	require.NoError(t, err)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				l.Write(record("studies/" + strings.Repeat("a", 60)))
			}
		})
	}
	wg.Wait()
	require.NoError(t, l.Close())
	if n := len(read(t, path)); n != 800 {
		t.Errorf("%d records", n)
	}
}

func TestRotation(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "audit.jsonl")
	l, err := Open(path, quiet)
	require.NoError(t, err)
	l.Write(record("studies/old"))
	require.NoError(t, os.Rename(path, path+".1"))
	l.mu.Lock()
	l.reopen()
	l.mu.Unlock()
	l.Write(record("studies/new"))
	require.NoError(t, l.Close())
	if got := read(t, path+".1"); len(got) != 1 || got[0].Resource != "studies/old" {
		t.Errorf("old file: %+v", got)
	}
	if got := read(t, path); len(got) != 1 || got[0].Resource != "studies/new" {
		t.Errorf("new file: %+v", got)
	}
}

// full is a disk that takes some bytes and no more.
type full struct {
	bytes.Buffer

	room int
}

func (f *full) Write(p []byte) (int, error) {
	n := min(len(p), f.room)
	f.room -= n
	f.Buffer.Write(p[:n])
	if n < len(p) {
		return n, errors.New("no space left")
	}
	return n, nil
}

// A full disk loses no record and tears no line: what did not fit is written when there is
// room again, and until then Ready says no.
func TestFullDisk(t *testing.T) {
	var log bytes.Buffer
	disk := &full{room: 10}
	l := New(disk, slog.New(slog.NewTextHandler(&log, nil)))
	require.NoError(t, l.Ready())
	l.Write(record("studies/a"))
	l.Write(record("studies/b"))
	for range 3 {
		if err := l.Ready(); err == nil || err.Error() != "no space left" {
			t.Fatalf("ready with %v", err)
		}
	}
	if n := strings.Count(log.String(), "CANNOT BE WRITTEN"); n != 1 {
		t.Errorf("%d messages", n)
	}
	disk.room = 1 << 20
	require.NoError(t, l.Ready())
	l.Write(record("studies/c"))
	var got []string
	for decoder := json.NewDecoder(&disk.Buffer); ; {
		var r Record
		if err := decoder.Decode(&r); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, r.Resource)
	}
	if diff := cmp.Diff([]string{"studies/a", "studies/b", "studies/c"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestChangedIn(t *testing.T) {
	study := &dparetov1.CreateStudyResponse{Study: &dparetov1.Study{Name: "studies/a", Etag: "e", Revision: 4}}
	if diff := cmp.Diff([]Changed{{"studies/a", "e", 4}}, ChangedIn(study.ProtoReflect())); diff != "" {
		t.Error(diff)
	}
	trials := &dparetov1.SuggestTrialsResponse{Trials: []*dparetov1.Trial{
		{Name: "studies/a/trials/1", Etag: "f", Lease: &dparetov1.Lease{Token: "SECRET"}}, {Name: "studies/a/trials/2"},
	}}
	changed := ChangedIn(trials.ProtoReflect())
	if diff := cmp.Diff([]Changed{{Name: "studies/a/trials/1", Etag: "f"}, {Name: "studies/a/trials/2"}}, changed); diff != "" {
		t.Error(diff)
	}
	if got := ChangedIn((&dparetov1.DeleteStudyResponse{}).ProtoReflect()); got != nil {
		t.Errorf("%v", got)
	}
	if got := RequestID((&dparetov1.PauseStudyRequest{RequestId: "r"}).ProtoReflect()); got != "r" {
		t.Errorf("request id %q", got)
	}
	if got := RequestID((&dparetov1.GetStudyRequest{}).ProtoReflect()); got != "" {
		t.Errorf("request id %q", got)
	}
}
