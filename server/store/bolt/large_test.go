//go:build long && linux

package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// largeFile is the environment variable that names a file for the large store, to be kept
// for further measurements.
const largeFile = "DPARETO_TEST_LARGE_FILE"

// resident returns the memory of the process that is in use, in MB: its own, and pages of
// files.
func resident(t *testing.T) (own, files int) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		var n int
		if _, err := fmt.Sscanf(line, "RssAnon: %d kB", &n); err == nil {
			own = n >> 10
		}
		if _, err := fmt.Sscanf(line, "RssFile: %d kB", &n); err == nil {
			files = n >> 10
		}
	}
	return own, files
}

// largeTrial is a trial with as much in it as those of real studies.
func largeTrial(study string, number int64) *storev1.TrialRecord {
	metric := func(x float64) *dparetov1.MetricValue {
		return &dparetov1.MetricValue{Value: &x, Runs: []float64{x, x}, StandardError: &x, Min: &x, Max: &x}
	}
	metrics := map[string]*dparetov1.MetricValue{"error": metric(0.125), "loss": metric(0.5), "epsilon": metric(1.25)}
	value := func(x float64) *dparetov1.Value {
		return &dparetov1.Value{Kind: &dparetov1.Value_DoubleValue{DoubleValue: x}}
	}
	return &storev1.TrialRecord{
		Trial: &dparetov1.Trial{
			Name: fmt.Sprintf("studies/%s/trials/%d", study, number), Number: number, Etag: fmt.Sprintf("01234567-%x", number),
			State: dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, Origin: dparetov1.TrialOrigin_TRIAL_ORIGIN_SUGGESTED,
			Parameters: map[string]*dparetov1.Value{
				"epochs": value(12), "lot_size": value(128), "learning_rate": value(0.01), "clipping_norm": value(1), "noise_multiplier": value(4),
			},
			Replicates: 1, ComputedMetrics: map[string]*dparetov1.MetricValue{"epsilon": metric(1.25)},
			FinalMeasurement: &dparetov1.Measurement{Step: 12, Metrics: metrics, ReportTime: timestamppb.New(time.Unix(1_800_000_000, 0))},
			Attempt:          1, Revision: 3 * number,
			Provenance: &dparetov1.Provenance{Algorithm: "ehvi", AlgorithmVersion: "1", ServerVersion: "v1.0.0", Seed: 1 << 60, StudyRevision: 3 * number},
			CreateTime: timestamppb.New(time.Unix(1_800_000_000, 1)), StartTime: timestamppb.New(time.Unix(1_800_000_000, 1)), EndTime: timestamppb.New(time.Unix(1_800_000_100, 1)),
		},
		LeaseTokens: []string{strings.Repeat("0123456789abcdef", 2)}, CompletionToken: strings.Repeat("0123456789abcdef", 2),
		CompletionDigest: make([]byte, 32), CompletionOrder: number,
	}
}

// TestLargeStore measures what a store of 1,000 studies with 1,000,000 trials costs. The
// trials of the studies come one after the other in turn, as workers of many studies make
// them.
func TestLargeStore(t *testing.T) {
	const studies, trials = 1000, 1000
	path := os.Getenv(largeFile)
	if path == "" {
		path = filepath.Join(t.TempDir(), "large.db")
	}
	took := func(what string, start time.Time) {
		own, files := resident(t)
		t.Logf("%-28s %8.3f s, memory %d MB and %d MB of files", what, time.Since(start).Seconds(), own, files)
	}
	start := time.Now()
	d, err := Open(path)
	require.NoError(t, err)
	records, err := store.New(t.Context(), d)
	require.NoError(t, err)
	for number := int64(0); number <= trials; number += 10 {
		for first := 0; first < studies; first += 100 {
			var scopes store.Scopes
			for i := range 100 {
				scopes = append(scopes, store.StudyScope(fmt.Sprintf("study-%04d", first+i)))
			}
			require.NoError(t, records.Update(t.Context(), scopes, func(tx *store.Tx) error {
				for i := range 100 {
					id := fmt.Sprintf("study-%04d", first+i)
					for n := max(1, number-9); n <= number; n++ {
						if err := tx.PutTrial(id, largeTrial(id, n)); err != nil {
							return err
						}
					}
					study := &dparetov1.Study{
						Name: "studies/" + id, Revision: max(1, 3*number), TrialCounts: &dparetov1.TrialCounts{Succeeded: number},
					}
					record := &storev1.StudyRecord{Study: study, OwnRevision: 1, NextTrialNumber: number + 1, CompletedTrials: number}
					if err := tx.PutStudy(id, record); err != nil {
						return err
					}
				}
				return nil
			}))
		}
	}
	took("written", start)
	t.Logf("%d bytes a trial; %+v", proto.Size(largeTrial("study-0001", 1000)), d.Stats())
	require.NoError(t, d.Close())
	runtime.GC()

	start = time.Now()
	if d, err = Open(path); err != nil {
		t.Fatal(err)
	}
	if records, err = store.New(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	took("opened", start)
	start = time.Now()
	snapshot, err := d.Snapshot(t.Context())
	require.NoError(t, err)
	took("snapshot", start)
	require.NoError(t, snapshot.Close())
	start = time.Now()
	if faults := records.Check(t.Context()); len(faults) > 0 {
		t.Error(faults)
	}
	took("records checked", start)
	require.NoError(t, d.Close())
	start = time.Now()
	report, err := Verify(t.Context(), path)
	if err != nil || len(report.Faults) > 0 {
		t.Error(report, err)
	}
	took("file checked", start)
	start = time.Now()
	before, after, err := Compact(t.Context(), path, false)
	if err != nil {
		t.Error(err)
	}
	took(fmt.Sprintf("compacted %d to %d MB", before>>20, after>>20), start)
}

// The damages of the short tests, of a store of 20,000 trials.
func TestManyDamages(t *testing.T) {
	damageBits(t, 400, 250)
	damagePages(t, 400, 50)
}
