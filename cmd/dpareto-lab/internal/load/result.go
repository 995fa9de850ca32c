package load

import (
	"math"
	"slices"
	"time"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// Load is the result seen by the workers.
type Load struct {
	Elapsed   time.Duration // of the measurement
	Processor time.Duration // that the workers took meanwhile
	Suggest   Latencies     // of SuggestTrials, one for each pair
	Complete  Latencies     // of CompleteTrial
	Pair      Latencies     // of both, one after the other
}

// collect sorts the latencies of all workers.
func (l *Load) collect(samples [][]sample) {
	for _, worker := range samples {
		for _, s := range worker {
			l.Suggest = append(l.Suggest, s.suggest)
			l.Complete = append(l.Complete, s.complete)
			l.Pair = append(l.Pair, s.suggest+s.complete)
		}
	}
	slices.Sort(l.Suggest)
	slices.Sort(l.Complete)
	slices.Sort(l.Pair)
}

// Pairs returns the number of pairs of a suggestion and a completion.
func (l *Load) Pairs() int { return len(l.Complete) }

// Latencies are sorted durations.
type Latencies []time.Duration

// Quantile returns the smallest latency that a fraction q in (0, 1] of all does not
// exceed, or 0 if there are none.
func (l Latencies) Quantile(q float64) time.Duration {
	if len(l) == 0 {
		return 0
	}
	return l[max(0, int(math.Ceil(q*float64(len(l))))-1)]
}

// cell returns a quantile in milliseconds as a cell of a table, without a value if there are no latencies.
func (l Latencies) cell(q float64) any {
	if len(l) == 0 {
		return nil
	}
	return milliseconds(l.Quantile(q))
}

// Measurement is one measurement of a server.
type Measurement struct {
	Options

	Name  string
	Load  *Load
	Began *Usage        // of the server where the measurement began; nil where it cannot be known
	Ended *Usage        // and where it ended
	Start time.Duration // that the server took to start; 0 where it is not known
}

// writesPerPair is the number of writes of a pair that the server acknowledges: that a
// trial is the worker's, and that it is complete.
const writesPerPair = 2

// Table returns one row for each measurement. Unknown values are nil.
func Table(measurements []*Measurement) *output.Table {
	t := &output.Table{Columns: []string{
		"measurement", "workers", "studies", "seconds", "pairs", "pairs_per_second",
		"suggest_p50_ms", "suggest_p99_ms", "complete_p50_ms", "complete_p99_ms",
		"pair_p50_ms", "pair_p99_ms", "pair_max_ms",
		"commits", "fsyncs_per_write", "disk_ms_per_commit",
		"server_cpu_us_per_pair", "client_cpu_us_per_pair",
		"server_start_seconds", "server_rss_mb", "server_anonymous_mb", "store_mb",
	}}
	for _, m := range measurements {
		pairs := float64(m.Load.Pairs())
		row := []any{
			m.Name, int64(m.Workers), int64(m.Studies), m.Load.Elapsed.Seconds(), int64(m.Load.Pairs()), pairs / m.Load.Elapsed.Seconds(),
			m.Load.Suggest.cell(0.5), m.Load.Suggest.cell(0.99), m.Load.Complete.cell(0.5), m.Load.Complete.cell(0.99),
			m.Load.Pair.cell(0.5), m.Load.Pair.cell(0.99), m.Load.Pair.cell(1),
		}
		client := ratio(microseconds(m.Load.Processor), pairs)
		if m.Began == nil || m.Ended == nil {
			row = append(row, nil, nil, nil, nil, client, nil, nil, nil, nil)
		} else {
			a, b := m.Began, m.Ended
			row = append(row, b.Store.Commits-a.Store.Commits,
				ratio(float64(b.Store.Syncs-a.Store.Syncs), writesPerPair*pairs),
				ratio(milliseconds(b.Store.Disk-a.Store.Disk), float64(b.Store.Commits-a.Store.Commits)),
				ratio(microseconds(b.Processor-a.Processor), pairs), client,
				m.Start.Seconds(), megabytes(b.Resident), megabytes(b.Anonymous), megabytes(b.StoreBytes))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Upright turns a table with few rows for people to read: a line for each column.
func Upright(t *output.Table) *output.Table {
	out := &output.Table{Columns: []string{t.Columns[0]}}
	for _, row := range t.Rows {
		name, _ := row[0].(string)
		out.Columns = append(out.Columns, name)
	}
	for c, name := range t.Columns[1:] {
		line := []any{name}
		for _, row := range t.Rows {
			line = append(line, row[c+1])
		}
		out.Rows = append(out.Rows, line)
	}
	return out
}

// ratio returns a/b, or nil if b is 0.
func ratio(a, b float64) any {
	if b == 0 {
		return nil
	}
	return a / b
}

func milliseconds(d time.Duration) float64 { return d.Seconds() * 1e3 }
func microseconds(d time.Duration) float64 { return d.Seconds() * 1e6 }
func megabytes(bytes int64) float64        { return float64(bytes) / 1e6 }
