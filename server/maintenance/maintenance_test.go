package maintenance

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/clock/clocktest"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/study"
)

// A pass over the store finds a damaged record before anybody reads it, and goes on behind it;
// who reads it learns which one it is, and everything else is served.
func TestMaintenanceFindsDamage(t *testing.T) {
	var db store.KV
	s := enginetest.New(t, enginetest.Options{Around: func(kv store.KV) store.KV { db = kv; return kv }, Damages: true})
	var log bytes.Buffer
	m := New(s.Store, slog.New(slog.NewTextHandler(&log, nil)), time.Now, s.Metrics, nil)
	request := func(id string) *dparetov1.CreateStudyRequest {
		return &dparetov1.CreateStudyRequest{StudyId: id, Study: &dparetov1.Study{Spec: enginetest.SimpleSpec()}}
	}
	for _, id := range []string{"a", "b", "c"} {
		require.NoError(t, require.ErrOf(s.CreateStudy(t.Context(), request(id))))
		require.NoError(t, require.ErrOf(s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/" + id, WorkerId: "w"})))
	}
	faults := func() float64 {
		families, err := s.Metrics.Gatherer().Gather()
		require.NoError(t, err)
		for _, f := range families {
			if f.GetName() == "dpareto_store_faults" {
				return f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		t.Fatal("no such metric")
		return 0
	}
	if err := m.pass(t.Context()); err != nil || faults() != 0 || log.Len() > 0 {
		t.Fatalf("a sound store: %v, %s", err, log.String())
	}
	err := db.Update(t.Context(), nil, func(w store.ReadWriter) error {
		key := "studies/b\x00trial/\x00\x00\x00\x00\x00\x00\x00\x01"
		value, err := w.Get(key)
		damaged := bytes.Clone(value)
		damaged[len(damaged)-1] ^= 1
		w.Put(key, damaged)
		return err
	})
	require.NoError(t, err)
	if err := m.pass(t.Context()); err != nil || faults() != 1 || !strings.Contains(log.String(), "trial 1 of studies/b has a wrong checksum") {
		t.Errorf("%v, %v faults, log %s", err, faults(), log.String())
	}
	_, err = s.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: "studies/b/trials/1"})
	if err = failure.Status(err); status.Code(err) != codes.DataLoss || !strings.Contains(err.Error(), "trial 1 of studies/b") {
		t.Errorf("the damaged trial: %v", err)
	}
	for _, name := range []string{"studies/a/trials/1", "studies/c/trials/1"} {
		if _, err := s.GetTrial(t.Context(), &dparetov1.GetTrialRequest{Name: name}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A study that cannot be found for a damaged key is not created again over its trials.
	require.NoError(t, db.Update(t.Context(), nil, func(w store.ReadWriter) error {
		value, err := w.Get("studies/c\x00study/")
		w.Put("studies/c\x00stuty/", bytes.Clone(value))
		w.Delete("studies/c\x00study/")
		return err
	}))
	if _, err := s.CreateStudy(t.Context(), request("c")); status.Code(failure.Status(err)) != codes.DataLoss {
		t.Errorf("created again: %v", err)
	}
	if err := m.pass(t.Context()); err != nil || faults() != 2 {
		t.Errorf("%v, %v faults", err, faults())
	}
}

// A page that cannot be read hides what is on it, and nothing behind it.
func TestMaintenanceGoesOn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	db, err := bolt.Open(path)
	require.NoError(t, err)
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	var log bytes.Buffer
	m := New(records, slog.New(slog.NewTextHandler(&log, nil)), time.Now, metrics.New("test"), nil)
	for i := range 6 {
		id := fmt.Sprintf("m%02d", i)
		require.NoError(t, records.Update(t.Context(), store.In(store.StudyScope(id)), func(tx *store.Tx) error {
			study := &dparetov1.Study{Name: "studies/" + id, Revision: 1, Description: strings.Repeat("x", 2500)}
			return tx.PutStudy(id, &storev1.StudyRecord{Study: study, NextTrialNumber: 1, OwnRevision: 1})
		}))
	}
	require.NoError(t, db.Update(t.Context(), nil, func(w store.ReadWriter) error {
		w.Put("studies/m05\x00study/", []byte("damaged"))
		return nil
	}))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	size := os.Getpagesize()
	for at := 2 * size; at+size <= len(content); at += size {
		if content[at+8] == 2 && bytes.Contains(content[at:at+size], []byte("studies/m02\x00study/")) { // a leaf
			require.NoError(t, require.ErrOf(file.WriteAt(make([]byte, size), int64(at))))
		}
	}
	require.NoError(t, file.Close())
	if err := m.pass(t.Context()); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"scope=studies/m02", "study of studies/m05"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("log %s, want %q", log.String(), want)
		}
	}
	_ = db.Close() // of a damaged file: may fail
}

// Answers are forgotten after a day, in the background.
func TestRequestsAreForgotten(t *testing.T) {
	now := clocktest.NewManual(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s := enginetest.New(t, enginetest.Options{Designer: enginetest.Always(enginetest.Random()), Clock: now})
	s.Simple(t)
	m := New(s.Store, slog.New(slog.DiscardHandler), clock.Steady(now), s.Metrics, nil)
	const old = 10
	suggestWith := func(id string) {
		t.Helper()
		require.NoError(t, require.ErrOf(s.SuggestTrials(t.Context(), &dparetov1.SuggestTrialsRequest{Parent: "studies/s", WorkerId: "w", RequestId: id})))
	}
	remembered := func() (n int) {
		require.NoError(t, s.Store.View(t.Context(), func(tx *store.ReadTx) error {
			for i := range old {
				if _, err := tx.Request(store.StudyScope("s"), "\x00"+strconv.Itoa(i)); err == nil {
					n++
				}
			}
			return nil
		}))
		return n
	}
	for i := range old {
		suggestWith(strconv.Itoa(i))
	}
	for _, step := range []struct {
		after time.Duration
		want  int
	}{{study.RememberFor, old}, {1, 0}} {
		now.Advance(step.after)
		require.NoError(t, m.pass(t.Context()))
		if n := remembered(); n != step.want {
			t.Errorf("%d are remembered at %v, want %d", n, now.Now(), step.want)
		}
	}
}
