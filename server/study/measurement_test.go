package study_test

import (
	"context"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/store"
)

// meter counts what Updates read and write. Each Update runs twice (see enginetest.New), and is
// counted twice.
type meter struct {
	store.KV

	counts
}

// counts are records written, and bytes written and read.
type counts struct{ writes, written, read int }

// Update implements store.KV.
func (m *meter) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	return m.KV.Update(ctx, scopes, func(w store.ReadWriter) error { return fn(metered{w, m}) })
}

type metered struct {
	store.ReadWriter

	m *meter
}

// Get implements store.Reader.
func (w metered) Get(key string) ([]byte, error) {
	value, err := w.ReadWriter.Get(key)
	w.m.read += len(value)
	return value, err
}

// Scan implements store.Reader.
func (w metered) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	return w.ReadWriter.Scan(prefix, from, func(key string, value []byte) (bool, error) {
		w.m.read += len(value)
		return fn(key, value)
	})
}

// Put implements store.ReadWriter.
func (w metered) Put(key string, value []byte) {
	w.m.writes++
	w.m.written += len(value)
	w.ReadWriter.Put(key, value)
}

// longRuns gives a study runs of up to 2,000 epochs, which are useful to the end.
func longRuns(asked *dparetov1.StudySpec) {
	enginetest.Checkpoints(asked)
	asked.GetParameters()[1].GetIntegerDomain().Max = 2000
	asked.GetMetrics()[0].ReferenceValue = new(1e6)
}

// 999 measurements after 1,000 others read and write what the first 999 did. The
// worker's own ε differs at every step, which is a warning each time.
func TestMeasurementsCostTheSame(t *testing.T) {
	m := new(meter)
	s := enginetest.New(t, enginetest.Options{
		Around:   func(kv store.KV) store.KV { m.KV = kv; return m },
		Designer: enginetest.Always(enginetest.At(0.25, 2000)),
	})
	s.Runs(t, longRuns)
	trial := s.AskRun(t)
	addMeasurement(t, s, trial, 2000) // the last useful step is found
	half := func(from int64) counts {
		m.counts = counts{}
		for step := from; step < from+399; step++ {
			addMeasurement(t, s, trial, step)
		}
		return m.counts
	}
	first, second := half(1), half(400)
	t.Logf("steps 1 to 399: %d records of %d bytes written, %d bytes read; 400 to 798: %d of %d, %d",
		first.writes, first.written, first.read, second.writes, second.written, second.read)
	if second.writes > first.writes || second.written > first.written*11/10 || second.read > first.read*11/10 {
		t.Error("later measurements cost more than earlier ones")
	}
}

// addMeasurement reports an error, and a wrong loss, at a step.
func addMeasurement(t testing.TB, s *enginetest.Service, trial *dparetov1.Trial, step int64) {
	t.Helper()
	measured := enginetest.ErrorAt(step, 0.5)
	measured.Metrics["loss"] = &dparetov1.MetricValue{Value: new(1e-3)}
	require.NoError(t, require.ErrOf(s.AddMeasurement(t.Context(), &dparetov1.AddMeasurementRequest{
		Name: trial.GetName(), LeaseToken: trial.GetLease().GetToken(), Measurement: measured,
	})))
}
