package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Kinds of long computations.
const (
	// PoolSuggestion is for a worker that waits.
	PoolSuggestion = "suggestion"
	// PoolAnalysis is for a caller that looks at results or asks for an ε.
	PoolAnalysis = "analysis"
	// PoolBackground is for later.
	PoolBackground = "background"
)

// pool counts the computations that wait for a processor.
type pool struct {
	waiting *prometheus.GaugeVec
	seconds *prometheus.HistogramVec
}

func (p *pool) init() {
	p.waiting = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "pool_waiting_computations",
		Help: "Fits, analyses and accounting that wait for a processor, by kind.",
	}, []string{"kind"})
	p.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "pool_wait_seconds", Buckets: slow,
		Help: "Time that fits, analyses and accounting waited for a processor before they began, by kind.",
	}, []string{"kind"})
	for _, kind := range []string{PoolSuggestion, PoolAnalysis, PoolBackground} {
		p.waiting.WithLabelValues(kind)
		p.seconds.WithLabelValues(kind)
	}
}

// PoolWaiting adds to the number of computations of a kind that wait for a processor.
func (m *Metrics) PoolWaiting(kind string, n int) {
	m.pool.waiting.WithLabelValues(kind).Add(float64(n))
}

// PoolWaited records how long a computation of a kind waited before it began.
func (m *Metrics) PoolWaited(kind string, waited time.Duration) {
	m.pool.seconds.WithLabelValues(kind).Observe(waited.Seconds())
}
