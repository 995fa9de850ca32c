package load_test

import (
	"context"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dpareto "github.com/dpareto/dpareto/clients/go"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/load"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
)

// serve runs a host in this process and returns the address of its server.
func serve(t *testing.T, storeFile string) string {
	t.Helper()
	reader, writer := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- load.Serve(ctx, writer, storeFile, "test") }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	line := make([]byte, 200)
	n, err := reader.Read(line)
	require.NoError(t, err)
	fields := strings.Fields(string(line[:n]))
	if len(fields) != 3 || fields[0] != "hosting" {
		t.Fatalf("the host printed %q", line[:n])
	}
	return fields[1]
}

// A filled store is sound, and has as many studies and trials as were asked for; under
// load it gets one more trial for every pair.
func TestLoadOnFilledStore(t *testing.T) {
	const studies, trials = 7, 100
	storeFile := filepath.Join(t.TempDir(), "bench.db")
	told := 0
	if err := load.Fill(t.Context(), storeFile, studies, trials, func(n int) { told = n }); err != nil || told != trials {
		t.Fatalf("%d trials: %v", told, err)
	}
	address := serve(t, storeFile)
	var measured *load.Load
	begun, ended := 0, 0
	measured, err := load.Run(t.Context(), load.Options{
		Address: address, Workers: 5, Connections: 2, Studies: studies, Duration: 300 * time.Millisecond,
	}, func(context.Context) error { begun++; return nil }, func(context.Context) error { ended++; return nil })
	if err != nil || begun != 1 || ended != 1 {
		t.Fatalf("begun %d times, ended %d times: %v", begun, ended, err)
	}
	client, err := dpareto.Dial(address)
	require.NoError(t, err)
	defer client.Close()
	var succeeded int64
	for i := range studies {
		study, err := client.Study("load-000" + string(rune('0'+i))).Get(t.Context())
		require.NoError(t, err)
		succeeded += study.GetTrialCounts().GetSucceeded()
	}
	if pairs := measured.Pairs(); pairs == 0 || succeeded < int64(trials+pairs) {
		t.Errorf("%d trials succeeded after %d and %d pairs", succeeded, trials, pairs)
	}
	if half, most := measured.Suggest.Quantile(0.5), measured.Suggest.Quantile(1); half <= 0 || half > most {
		t.Errorf("half of the suggestions took %v, all %v", half, most)
	}
	table := load.Table([]*load.Measurement{{Name: "alone", Load: measured}})
	if len(table.Rows[0]) != len(table.Columns) || len(load.Upright(table).Rows) != len(table.Columns)-1 {
		t.Errorf("a row of %d cells under %d columns", len(table.Rows[0]), len(table.Columns))
	}
}

func TestFilledStoreIsSound(t *testing.T) {
	storeFile := filepath.Join(t.TempDir(), "bench.db")
	require.NoError(t, load.Fill(t.Context(), storeFile, 3, 20, func(int) {}))
	db, err := bolt.Open(storeFile)
	require.NoError(t, err)
	defer db.Close()
	records, err := store.New(t.Context(), db)
	require.NoError(t, err)
	for _, fault := range records.Check(t.Context()) {
		t.Error(fault)
	}
}

func TestQuantile(t *testing.T) {
	l := load.Latencies{1, 2, 3, 4}
	for q, want := range map[float64]time.Duration{0.25: 1, 0.26: 2, 0.5: 2, 0.99: 4, 1: 4} {
		if got := l.Quantile(q); got != want {
			t.Errorf("quantile %g is %d, want %d", q, got, want)
		}
	}
	if got := (load.Latencies{}).Quantile(0.5); got != 0 {
		t.Errorf("the quantile of nothing is %d", got)
	}
}

// A measurement in which no trial was completed has no latencies, not latencies of 0.
func TestTableOfNothing(t *testing.T) {
	table := load.Table([]*load.Measurement{{Name: "alone", Load: &load.Load{Elapsed: time.Second}}})
	for i, name := range table.Columns {
		if strings.HasSuffix(name, "_ms") || strings.HasSuffix(name, "_per_pair") {
			if cell := table.Rows[0][i]; cell != nil {
				t.Errorf("%s is %v", name, cell)
			}
		}
	}
}
