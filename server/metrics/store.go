package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats are the counts of a store since it was opened.
type StoreStats struct {
	Commits  int64 // durable transactions
	Updates  int64 // updates with writes; several share a transaction
	Syncs    int64 // disk syncs for them
	Failures int64 // transactions that failed to commit
	Bytes    int64 // size of the file, in bytes
}

// storeCollector collects a store's counts at each scrape.
type storeCollector struct {
	commits, updates, syncs, failures, bytes *prometheus.Desc

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
		bytes:    desc("size_bytes", "Size of the store's file."),
	}
}

// CountStore makes every scrape call source for the counts of the store.
func (m *Metrics) CountStore(source func() StoreStats) { m.storeCollector.source.Store(&source) }

// Describe implements prometheus.Collector.
func (c *storeCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.commits, c.updates, c.syncs, c.failures, c.bytes} {
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
	for _, m := range []struct {
		desc  *prometheus.Desc
		kind  prometheus.ValueType
		value float64
	}{
		{c.commits, prometheus.CounterValue, float64(stats.Commits)},
		{c.updates, prometheus.CounterValue, float64(stats.Updates)},
		{c.syncs, prometheus.CounterValue, float64(stats.Syncs)},
		{c.failures, prometheus.CounterValue, float64(stats.Failures)},
		{c.bytes, prometheus.GaugeValue, float64(stats.Bytes)},
	} {
		metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value)
	}
}
