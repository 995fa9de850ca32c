// Package metrics counts what the server does, for Prometheus. docs/reference/observability.md
// lists the metrics.
//
// Counts of events are kept as they happen; what the store knows anyway (studies,
// trials, its own size) is asked for at each scrape, so that it cannot drift away from
// the truth. There is no global registry: every Metrics has its own.
package metrics
