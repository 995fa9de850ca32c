package metrics

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// ConnectionStats are the connections of a listener.
type ConnectionStats struct {
	Listener string // its name
	Open     int64  // open now
	Refused  int64  // beyond the limits
	ByClient int64  // closed by clients, or broken
	ByServer int64  // closed by the server: idle, late, silent, or open when it stopped
}

// connectionCollector collects the connections of listeners at each scrape.
type connectionCollector struct {
	open, refused, closed *prometheus.Desc

	source atomic.Pointer[func() []ConnectionStats]
}

func newConnectionCollector() *connectionCollector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", name), help, labels, nil)
	}
	return &connectionCollector{
		open:    desc("connections", "Open connections.", "listener"),
		refused: desc("connections_refused_total", "Connections refused because of the limits, in all or of an address.", "listener"),
		closed: desc("connections_closed_total",
			"Closed connections: by the client, or by the server because they were idle, late or silent, or it stopped.", "listener", "by"),
	}
}

// CountConnections makes every scrape call source for the connections of each listener.
func (m *Metrics) CountConnections(source func() []ConnectionStats) {
	m.connections.source.Store(&source)
}

// Describe implements prometheus.Collector.
func (c *connectionCollector) Describe(descs chan<- *prometheus.Desc) {
	for _, desc := range []*prometheus.Desc{c.open, c.refused, c.closed} {
		descs <- desc
	}
}

// Collect implements prometheus.Collector.
func (c *connectionCollector) Collect(metrics chan<- prometheus.Metric) {
	source := c.source.Load()
	if source == nil {
		return
	}
	for _, st := range (*source)() {
		metrics <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(st.Open), st.Listener)
		metrics <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(st.Refused), st.Listener)
		metrics <- prometheus.MustNewConstMetric(c.closed, prometheus.CounterValue, float64(st.ByClient), st.Listener, "client")
		metrics <- prometheus.MustNewConstMetric(c.closed, prometheus.CounterValue, float64(st.ByServer), st.Listener, "server")
	}
}
