// Package metrics counts the server's work, for Prometheus. docs/reference/observability.md
// lists the metrics.
//
// Counts of events are kept as they happen; numbers that the store holds anyway (studies,
// trials, its own size) are read at each scrape, so that they cannot drift away from the
// truth. There is no global registry: every Metrics has its own.
package metrics
