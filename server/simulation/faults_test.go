package simulation

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
)

// edit replaces a text that occurs once in a file of the server.
type edit struct{ file, old, new string }

// fault is a fault that the server does not have, and the invariant that tells of it.
type fault struct {
	name      string
	invariant string
	edits     []edit
}

// faults are put into the server one by one. The first five were found by a review.
var faults = []fault{
	{"a design that was changed after a look is released", "design", []edit{
		{"study/update.go", "c.noteDesignChange(after.GetSpec())", ""},
	}},
	{"private_mode needs no ledger", "budget", []edit{
		{"publish/private/mode_compile.go", `c.needsLedger("test_ledger", spec.GetTestLedger(), "private_mode")`, ""},
		{"publish/private/mode_compile.go", `c.needsLedger("train_ledger", spec.GetTrainLedger(), "private_mode")`, ""},
	}},
	{"leases follow the wall clock", "leases", []edit{
		{"study/time.go", "return t.clock.Elapsed() - t.started", "return time.Duration(t.clock.Now().UnixNano())"},
		{"study/time.go", "if end.GetClock() != r.clock || granted < r.since || granted > r.elapsed+smallStep {", "if granted > r.elapsed+time.Hour*1e6 {"},
	}},
	{"a late completion keeps the measurements of another attempt", "runs", []edit{
		{"study/attempt.go", "if IsHeld(record, token) {", "if true {"},
	}},
	{"a late completion shows the start of another attempt", "runs", []edit{
		{"study/attempt.go", "\ttrial.StartTime = attempt.GetStartTime()\n", ""},
	}},
	{"a late completion shows the shard of another attempt", "runs", []edit{
		{"study/attempt.go", "\ttrial.TrainingShard = attempt.GetTrainingShard()\n", ""},
	}},
	{"an attempt that completes its trial late stays among the past ones", "attempts", []edit{
		{"store/attempt.go", "\tt.w.Delete(key)\n\trecord.PastAttempts--\n\trecord.PastMeasurements -= int64(len(attempt.GetMeasurements()))\n", ""},
	}},
	{"worker ids are everybody's", "worker ids", []edit{
		{"engine/suggest.go", "c.CheckWorker(principal, worker)", `c.CheckWorker("", worker)`},
	}},

	{"leases never end", "stuck", []edit{
		{"study/time.go", "return r.elapsed >= until", "return false"},
		{"study/time.go", "return r.elapsed-r.since >= length", "return false"},
	}},
	{"a lease of an earlier process is compared with the time of this one", "stuck", []edit{
		{"study/time.go", "if end.GetClock() != r.clock || granted < r.since || granted > r.elapsed+smallStep {", "if granted > r.elapsed+time.Hour*1e6 {"},
	}},
	{"a restart ends leases", "leases", []edit{
		{"study/time.go", "return r.elapsed-r.since >= length", "return true"},
	}},
	{"a renewed lease is not", "leases", []edit{
		{"study/lease.go", "record.LeaseEnd = c.time.leaseEnd(length)", "if record.LeaseEnd == nil {\n\t\trecord.LeaseEnd = c.time.leaseEnd(length)\n\t}"},
	}},
	{"a completed trial completes again", "completion", []edit{
		{"study/report.go", "if IsTerminal(trial.GetState()) {", "if false {"},
	}},
	{"answers are not remembered", "repeated", []edit{
		{"study/request.go", `if r.ID == "" || effect == EffectNone {`, "if true {"},
	}},
	{"a measurement is acknowledged and dropped", "runs", []edit{
		{"study/report.go", "if kept.Fresh {", "if kept.Fresh && c.Study.GetStudy().GetRevision()%8 != 0 {"},
	}},
	{"watchers are told before the commit", "watch", []edit{
		{"study/change.go", "c.Tx.AfterCommit(func() { announce(c.studies, c.ID) })", "announce(c.studies, c.ID)"},
	}},
	{"a watch skips a change that comes with others", "watch", []edit{
		{"study/watch.go", "r.after = revision\n", "r.after = revision + 1\n"},
	}},
	{"counts leave out failed trials", "counts", []edit{
		{"study/change.go", "\t\tstore.AddToCounts(study.GetTrialCounts(), trial.GetState(), 1)\n", "\t\tif trial.GetState() != dparetov1.TrialState_TRIAL_STATE_FAILED {\n\t\t\tstore.AddToCounts(study.GetTrialCounts(), trial.GetState(), 1)\n\t\t}\n"},
	}},
	{"a private trial that is handed out again is not charged again", "ledgers", []edit{
		{"publish/private/mode.go", "\ttaken.take(terms)\n\tif", "\tif record.GetPrivateMode() == nil {\n\t\ttaken.take(terms)\n\t}\n\tif"},
	}},
	{"a release is not charged", "ledgers", []edit{
		{"publish/release/release.go", `if release.GetLedger() != "" {`, "if false {"},
	}},
}

// overlay writes the edited files into a folder, and returns the overlay file for the go command.
func (f *fault) overlay(t *testing.T, folder string) string {
	t.Helper()
	replaced := make(map[string]string)
	for _, e := range f.edits {
		path, err := filepath.Abs(filepath.Join("..", filepath.FromSlash(e.file)))
		require.NoError(t, err)
		from := path
		if replaced[path] != "" {
			from = replaced[path] // a further edit
		}
		content, err := os.ReadFile(from)
		require.NoError(t, err)
		if n := strings.Count(string(content), e.old); n != 1 {
			t.Fatalf("%s: %s has %q %d times, want once: the fault must be put elsewhere", f.name, e.file, e.old, n)
		}
		replaced[path] = filepath.Join(folder, strings.ReplaceAll(e.file, "/", "_"))
		require.NoError(t, os.WriteFile(replaced[path], []byte(strings.Replace(string(content), e.old, e.new, 1)), 0o600))
	}
	content, err := json.Marshal(map[string]any{"Replace": replaced})
	require.NoError(t, err)
	overlay := filepath.Join(folder, "overlay.json")
	require.NoError(t, os.WriteFile(overlay, content, 0o600))
	return overlay
}

// Every fault has a place in the server.
func TestFaultsHaveTheirPlace(t *testing.T) {
	for i := range faults {
		t.Run(faults[i].name, func(t *testing.T) { faults[i].overlay(t, t.TempDir()) })
	}
}
