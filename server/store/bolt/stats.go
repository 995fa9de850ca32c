package bolt

import (
	"sync/atomic"
	"time"
)

// syncsPerCommit is how often bbolt syncs in one commit: its data, then the page that
// makes them valid.
const syncsPerCommit = 2

// Stats counts what was done since Open.
type Stats struct {
	Writes  int64         // Updates with writes that were made durable
	Commits int64         // transactions that made them durable
	Syncs   int64         // fsyncs for that
	Disk    time.Duration // time spent with writing and syncing
}

// counters are the counts behind Stats.
type counters struct{ writes, commits atomic.Int64 }

// Stats returns the counts so far. It can be called at any time.
func (d *DB) Stats() Stats {
	commits := d.counters.commits.Load()
	stats := d.db.Stats()
	return Stats{
		Writes:  d.counters.writes.Load(),
		Commits: commits,
		Syncs:   syncsPerCommit * commits,
		Disk:    stats.TxStats.GetWriteTime(),
	}
}
