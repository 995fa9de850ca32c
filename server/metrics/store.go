package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// StoreStats is what a store has done since it was opened.
type StoreStats struct {
	Commits  int64 // transactions that were made durable
	Updates  int64 // updates with writes that they made durable; several share one
	Syncs    int64 // syncs of the disk for them
	Failures int64 // transactions that could not be made durable
	Bytes    int64 // size of the file
}

// storeCollector asks a store for its counts at each scrape.
type storeCollector struct {
	commits, updates, syncs, failures, bytes *prometheus.Desc

	source atomic.Pointer[func() StoreStats]
}

func newStoreCollector() *storeCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "store", name), help, nil, nil)
	}
	return &storeCollector{
		commits:  desc("commits_total", "Transactions that were made durable."),
		updates:  desc("committed_updates_total", "Updates with writes in those transactions; several share one."),
		syncs:    desc("syncs_total", "Syncs of the disk for them."),
		failures: desc("commit_failures_total", "Transactions that could not be made durable."),
		bytes:    desc("size_bytes", "Size of the store's file."),
	}
}

// CountStore has every scrape ask source for the counts of the store.
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
