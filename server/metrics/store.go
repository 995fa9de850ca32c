package metrics

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats are the counts of a store since it was opened.
type StoreStats struct {
	Commits  int64 // durable transactions
	Updates  int64 // updates with writes; several share a transaction
	Syncs    int64 // disk syncs for them; 0 for a database
	Failures int64 // transactions that failed to commit
	Bytes    int64 // size of the file or of the tables, in bytes

	Database *DatabaseStats // nil for a store in a file
}

// DatabaseStats are counts of a store in a database.
type DatabaseStats struct {
	Conflicts   int64         // transactions that ended in a deadlock or a serialization failure
	Retries     int64         // transactions that were run again
	Waits       int64         // times that all connections were in use
	WaitTime    time.Duration // spent waiting for one
	Connections int64         // open ones
}

// storeCollector collects a store's counts at each scrape.
type storeCollector struct {
	commits, updates, syncs, failures, bytes         *prometheus.Desc
	conflicts, retries, waits, waitTime, connections *prometheus.Desc

	source atomic.Pointer[func() StoreStats]
}

func newStoreCollector() *storeCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "store", name), help, nil, nil)
	}
	return &storeCollector{
		commits:  desc("commits_total", "Durable transactions."),
		updates:  desc("committed_updates_total", "Updates with writes in these transactions; several share one."),
		syncs:    desc("syncs_total", "Disk syncs for these transactions."),
		failures: desc("commit_failures_total", "Transactions that failed to commit."),
		bytes:    desc("size_bytes", "Size of the store's file or tables."),

		conflicts:   desc("conflicts_total", "Transactions of the database that ended in a deadlock or a serialization failure."),
		retries:     desc("retries_total", "Transactions of the database that were run again."),
		waits:       desc("connection_waits_total", "Times that all connections to the database were in use."),
		waitTime:    desc("connection_wait_seconds_total", "Time spent waiting for a connection to the database."),
		connections: desc("connections", "Open connections to the database."),
	}
}

// CountStore makes every scrape call source for the counts of the store.
func (m *Metrics) CountStore(source func() StoreStats) { m.storeCollector.source.Store(&source) }

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{
		c.commits, c.updates, c.syncs, c.failures, c.bytes, c.conflicts, c.retries, c.waits, c.waitTime, c.connections,
	} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *storeCollector) Collect(metrics chan<- prometheus.Metric) {
	source := c.source.Load()
	if source == nil {
		return
	}
	stats := (*source)()
	count := func(desc *prometheus.Desc, value float64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, value)
	}
	gauge := func(desc *prometheus.Desc, value int64) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, float64(value))
	}
	count(c.commits, float64(stats.Commits))
	count(c.updates, float64(stats.Updates))
	count(c.failures, float64(stats.Failures))
	count(c.syncs, float64(stats.Syncs))
	gauge(c.bytes, stats.Bytes)
	d := stats.Database
	if d == nil {
		return
	}
	count(c.conflicts, float64(d.Conflicts))
	count(c.retries, float64(d.Retries))
	count(c.waits, float64(d.Waits))
	count(c.waitTime, d.WaitTime.Seconds())
	gauge(c.connections, d.Connections)
}
