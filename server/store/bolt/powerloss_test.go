//go:build linux

package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/internal/testsize"
	"github.com/dpareto/dpareto/server/store"
)

// The power fails while a store is written: of the writes that were not synced, any sectors may have
// reached the disk. A writer on a bbolt that logs all it asks of the file records what would, and the
// test opens the file as it may be after a loss at any moment of the log.

const (
	// writeLog is the environment variable with the file that writes are logged to.
	writeLog = "DPARETO_TEST_WRITE_LOG"
	// sector is the least that a disk writes as a whole, in bytes.
	sector = 512
	// recordedWriters write at the same time, each recordedUpdates times.
	recordedWriters, recordedUpdates = 4, 40
	// window is the number of records that a writer leaves of its latest.
	window = 5
	// examinePatience is how long the examination of a file may take.
	examinePatience = 20 * time.Second
)

// recorder is added to bbolt. A log record is a kind, an offset, a length and data.
const recorder = `

var recording, _ = os.OpenFile(os.Getenv("` + writeLog + `"), os.O_APPEND|os.O_WRONLY, 0)

func record(kind byte, offset int64, data []byte) {
	entry := binary.BigEndian.AppendUint64([]byte{kind}, uint64(offset))
	entry = append(binary.BigEndian.AppendUint64(entry, uint64(len(data))), data...)
	if _, err := recording.Write(entry); err != nil {
		panic(err)
	}
}
`

// Kinds of log records.
const (
	logWrite = 'w' // data at an offset
	logSize  = 't' // the file is truncated, or extended, to the offset
	logSync  = 's'
	logAck   = 'a' // the Update of writer data[0] with the number in the offset was acknowledged
)

// logged is a record of the log.
type logged struct {
	kind   byte
	offset int64
	data   []byte
}

// edits make bbolt log its writes, and when they are synced.
var edits = []struct{ file, old, new string }{
	{"bolt_linux.go", "\t\"syscall\"\n", "\t\"encoding/binary\"\n\t\"os\"\n\t\"syscall\"\n"},
	{"bolt_linux.go", "\treturn syscall.Fdatasync(int(db.file.Fd()))\n}\n", "\terr := syscall.Fdatasync(int(db.file.Fd()))\n\trecord('s', 0, nil)\n\treturn err\n}\n" + recorder},
	{"db.go", "db.ops.writeAt = db.file.WriteAt", "db.ops.writeAt = func(b []byte, at int64) (int, error) { record('w', at, b); return db.file.WriteAt(b, at) }"},
	{"db.go", "if err := db.file.Truncate(int64(sz)); err != nil {", "record('t', int64(sz), nil)\n\t\t\tif err := db.file.Truncate(int64(sz)); err != nil {"},
	{"db.go", "\t\tif err := db.file.Sync(); err != nil {\n", "\t\tdefer record('s', 0, nil)\n\t\tif err := db.file.Sync(); err != nil {\n"},
}

// recordingModule makes a copy of bbolt that logs, and returns the path of a go.mod that takes it.
func recordingModule(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "go.etcd.io/bbolt").Output()
	require.NoError(t, err)
	folder := t.TempDir()
	copied := filepath.Join(folder, "bbolt")
	require.NoError(t, os.CopyFS(copied, os.DirFS(strings.TrimSpace(string(out)))))
	for _, e := range edits {
		path := filepath.Join(copied, e.file)
		content, err := os.ReadFile(path)
		if err != nil || strings.Count(string(content), e.old) != 1 {
			t.Fatalf("%s must have %q once: %v", e.file, e.old, err)
		}
		require.NoError(t, os.WriteFile(path, []byte(strings.Replace(string(content), e.old, e.new, 1)), 0o600))
	}
	root := filepath.Join("..", "..", "..")
	copyFile(t, filepath.Join(root, "go.sum"), filepath.Join(folder, "go.sum"))
	module := filepath.Join(folder, "go.mod")
	copyFile(t, filepath.Join(root, "go.mod"), module)
	if out, err := exec.CommandContext(t.Context(), "go", "mod", "edit", "-replace", "go.etcd.io/bbolt="+copied, module).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return module
}

// recordWrites runs TestRecordedWriter with a bbolt that logs, and returns the log.
func recordWrites(t *testing.T) []logged {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	writer := exec.CommandContext(t.Context(), "go", "test", "-modfile", recordingModule(t), "-count", "1", "-run", "^TestRecordedWriter$", ".")
	writer.Env = append(os.Environ(), writeLog+"="+path)
	if out, err := writer.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return parseLog(t, content)
}

// parseLog returns the records of a log.
func parseLog(t *testing.T, content []byte) (log []logged) {
	t.Helper()
	const header = 17
	for len(content) > 0 {
		l := logged{content[0], int64(binary.BigEndian.Uint64(content[1:])), nil}
		end := header + int(binary.BigEndian.Uint64(content[9:header]))
		l.data, content = content[header:end], content[end:]
		log = append(log, l)
	}
	return log
}

// TestRecordedWriter writes what recordWrites records. Each writer numbers its updates, notes the
// latest, and keeps a window of them.
func TestRecordedWriter(t *testing.T) {
	path := os.Getenv(writeLog)
	if path == "" {
		t.Skip("TestPowerLoss runs it")
	}
	log, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	db := open(t)
	var writers sync.WaitGroup
	for w := range recordedWriters {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(w)))
			for n := range recordedUpdates {
				value := bytes.Repeat([]byte{byte(n)}, 1+random.IntN(3000))
				err := db.Update(context.Background(), nil, func(tx store.ReadWriter) error {
					tx.Put(fmt.Sprintf("%d/latest", w), []byte(strconv.Itoa(n)))
					tx.Put(fmt.Sprintf("%d/%06d", w, n), value)
					tx.Delete(fmt.Sprintf("%d/%06d", w, n-window))
					return nil
				})
				ack := binary.BigEndian.AppendUint64([]byte{logAck}, uint64(n))
				ack = append(binary.BigEndian.AppendUint64(ack, 1), byte(w))
				if _, failed := log.Write(ack); errors.Join(err, failed) != nil {
					t.Error(err, failed)
				}
			}
		})
	}
	writers.Wait()
}

// lose writes the file as it may be if the power failed after the first records of a log: all that
// was synced, and of the rest each sector with a probability. It returns the latest acknowledged
// updates of the writers, -1 before the first.
func lose(t *testing.T, path string, log []logged, kept float64, random *rand.Rand) (acknowledged [recordedWriters]int) {
	t.Helper()
	synced := 0
	for i := range acknowledged {
		acknowledged[i] = -1
	}
	for i, l := range log {
		switch l.kind {
		case logSync:
			synced = i
		case logAck:
			acknowledged[l.data[0]] = int(l.offset)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_TRUNC, 0o600)
	require.NoError(t, err)
	var pending []logged
	for i, l := range log {
		switch {
		case l.kind == logSize && (i <= synced || random.Float64() < kept):
			err = errors.Join(err, file.Truncate(l.offset))
		case l.kind != logWrite:
		case i <= synced:
			_, failed := file.WriteAt(l.data, l.offset)
			err = errors.Join(err, failed)
		default:
			for at := 0; at < len(l.data); at += sector {
				if random.Float64() < kept {
					pending = append(pending, logged{logWrite, l.offset + int64(at), l.data[at:min(at+sector, len(l.data))]})
				}
			}
		}
	}
	random.Shuffle(len(pending), func(i, j int) { pending[i], pending[j] = pending[j], pending[i] })
	for _, l := range pending {
		_, failed := file.WriteAt(l.data, l.offset)
		err = errors.Join(err, failed)
	}
	require.NoError(t, errors.Join(err, file.Close()))
	return acknowledged
}

// examine opens a file after a power loss, and returns what is wrong with it.
func examine(path string, acknowledged [recordedWriters]int) error {
	d, err := newDB(path, toWrite) // without a writer, which would be left where this never ends
	if err != nil {
		return err
	}
	faults := d.check(context.Background())
	err = d.View(context.Background(), func(r store.Reader) error {
		for w, least := range acknowledged {
			value, err := r.Get(fmt.Sprintf("%d/latest", w))
			latest, parseErr := strconv.Atoi(string(value))
			if value == nil {
				latest, parseErr = -1, nil
			}
			if err = errors.Join(err, parseErr); err != nil || latest < least {
				faults = append(faults, fmt.Errorf("writer %d: update %d was acknowledged, %d is the latest: %w", w, least, latest, err))
			}
			for n := range recordedUpdates { // each update is there wholly or not at all
				value, err := r.Get(fmt.Sprintf("%d/%06d", w, n))
				if err != nil || (value != nil) != (n <= latest && n > latest-window) || len(bytes.Trim(value, string(byte(n)))) > 0 && n > 0 {
					faults = append(faults, fmt.Errorf("writer %d: update %d beside %d: %w", w, n, latest, err))
				}
			}
		}
		return nil
	})
	return errors.Join(append(faults, err, d.Close())...)
}

// examineInTime is examine for a file that may be damaged: bbolt follows pages in a circle for ever.
func examineInTime(path string, acknowledged [recordedWriters]int) error {
	done := make(chan error, 1)
	go func() { done <- examine(path, acknowledged) }()
	select {
	case err := <-done:
		return errors.Join(err, os.Remove(path))
	case <-time.After(examinePatience):
		return fmt.Errorf("it is not examined within %v", examinePatience)
	}
}

// testPowerLoss loses power so many times, after a random record of a log each time, and returns how
// often something was wrong, and what.
func testPowerLoss(t *testing.T, log []logged, times int, random *rand.Rand) (wrong int, all error) {
	t.Helper()
	begun := 0 // with the first acknowledgement: before, there is no store
	for log[begun].kind != logAck {
		begun++
	}
	folder := t.TempDir()
	for n := range times {
		path := filepath.Join(folder, strconv.Itoa(n)) // an earlier one may still be examined
		cut := begun + 1 + random.IntN(len(log)-begun)
		kept := []float64{0, 0.5, 0.5, 0.9, 1}[random.IntN(5)]
		acknowledged := lose(t, path, log[:cut], kept, random)
		if err := examineInTime(path, acknowledged); err != nil {
			wrong++
			all = errors.Join(all, fmt.Errorf("after record %d of %d, with %g of the unsynced sectors: %w", cut, len(log), kept, err))
		}
	}
	return wrong, all
}

// Whatever the disk did with what was not synced: a file opens, is sound, and has all that was
// acknowledged. Without the first sync of each commit it would not.
func TestPowerLoss(t *testing.T) {
	log := recordWrites(t)
	random := rand.New(rand.NewPCG(1, 1))
	losses := testsize.Pick(50, 250)
	wrong, err := testPowerLoss(t, log, losses, random)
	if wrong > 0 {
		t.Errorf("%d of %d losses: %v", wrong, losses, err)
	}
	meta := int64(2 * pageSize)
	var unsafe []logged
	for i, l := range log {
		next := slices.IndexFunc(log[i+1:], func(l logged) bool { return l.kind != logAck })
		isData := next >= 0 && log[i+1+next].kind == logWrite && log[i+1+next].offset < meta
		if l.kind != logSync || !isData {
			unsafe = append(unsafe, l)
		}
	}
	lost := 0
	for tries := 0; lost == 0; tries++ {
		if tries == 20 {
			t.Fatal("nothing is lost without syncs of the data: the test shows nothing")
		}
		lost, _ = testPowerLoss(t, unsafe, 50, random)
	}
	t.Logf("%d losses in a log of %d records, %d of them wrong; %d of 50 without the first sync", losses, len(log), wrong, lost)
}
