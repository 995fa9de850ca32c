package metrics

import (
	"net/http"
	"runtime"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// namespace prefixes the names of the server's own metrics.
const namespace = "dpareto"

// Phases of a suggestion.
const (
	// PhaseHistory reads the study's history.
	PhaseHistory = "history"
	// PhaseFit fits the model.
	PhaseFit = "fit"
	// PhaseSearch maximises the acquisition function.
	PhaseSearch = "search"
	// PhaseCommit creates the trials in a transaction.
	PhaseCommit = "commit"
)

var (
	// fast are histogram buckets for milliseconds, in seconds.
	fast = []float64{0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}
	// slow are histogram buckets for up to minutes, in seconds.
	slow = []float64{0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120}
)

// Metrics are the metrics of a server, in a separate registry. It is safe for concurrent use.
type Metrics struct {
	registry *prometheus.Registry

	calls          calls
	transitions    transitions
	expiries       prometheus.Counter
	suggestions    *prometheus.CounterVec
	fallbacks      prometheus.Counter
	prepared       [2]prometheus.Counter
	phases         map[string]prometheus.Observer
	observations   prometheus.Histogram
	pool           pool
	updates        prometheus.Histogram
	failedUpdates  prometheus.Counter
	writable       prometheus.Gauge
	scrubbed       prometheus.Counter
	faults         prometheus.Gauge
	states         *states
	storeCollector *storeCollector
	connections    *connectionCollector
}

// New returns the metrics of a program with a version.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry()}
	m.calls.init()
	m.transitions.init()
	m.pool.init()
	m.expiries = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "lease_expiries_total",
		Help: "Expired leases, counted when their trials are handed out again, settled or given up.",
	})
	m.suggestions = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "suggestions_total",
		Help: "Trials created from suggestions, by the designer that made the suggestion.",
	}, []string{"designer"})
	m.fallbacks = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "suggestion_fallbacks_total",
		Help: "Trials created from suggestions of another designer because the study's designer failed.",
	})
	prepared := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "prepared_suggestions_total",
		Help: "Passes of a model-based designer, by whether the suggestion had been prepared in the background (hit) or not (miss).",
	}, []string{"result"})
	m.prepared = [2]prometheus.Counter{prepared.WithLabelValues("miss"), prepared.WithLabelValues("hit")}
	phases := prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "suggestion_phase_duration_seconds", Buckets: slow,
		Help: "Time that the phases of suggestions took: reading the history, fitting the model, searching, committing the trials.",
	}, []string{"phase"})
	m.phases = make(map[string]prometheus.Observer)
	for _, phase := range []string{PhaseHistory, PhaseFit, PhaseSearch, PhaseCommit} {
		m.phases[phase] = phases.WithLabelValues(phase)
	}
	m.observations = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "surrogate_observations", Buckets: prometheus.ExponentialBuckets(4, 2, 12),
		Help: "Evaluations in the histories that models were fitted to.",
	})
	m.updates = prometheus.NewHistogram(prometheus.HistogramOpts{
		Namespace: namespace, Name: "store_update_duration_seconds", Buckets: fast,
		Help: "Time from the start of a store update until it was durable, including waiting.",
	})
	m.failedUpdates = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "store_update_failures_total",
		Help: "Updates that the store could not make durable.",
	})
	m.writable = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "store_writable",
		Help: "Whether the last probe of the store could write (1) or not (0).",
	})
	m.scrubbed = prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: namespace, Name: "store_scrubbed_records_total",
		Help: "Records read in the background and compared with their checksums.",
	})
	m.faults = prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "store_faults",
		Help: "Records, studies and ledgers that the last pass over the store found damaged or incomplete.",
	})
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Namespace: namespace, Name: "build_info", Help: "Version of the program; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": runtime.Version()},
	})
	info.Set(1)
	m.states = newStates()
	m.storeCollector = newStoreCollector()
	m.connections = newConnectionCollector()
	m.registry.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), info,
		m.calls.total, m.calls.seconds, m.calls.inFlight, m.transitions.total, m.expiries,
		m.suggestions, m.fallbacks, prepared, phases, m.observations, m.pool.waiting, m.pool.seconds,
		m.updates, m.failedUpdates, m.writable, m.scrubbed, m.faults, m.states, m.storeCollector, m.connections,
	)
	return m
}

// Gatherer returns the registry of the metrics.
func (m *Metrics) Gatherer() prometheus.Gatherer { return m.registry }

// Handler returns the HTTP handler for scrapes.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{ErrorHandling: promhttp.ContinueOnError, EnableOpenMetrics: true})
}

// LeasesExpired counts leases that ran out.
func (m *Metrics) LeasesExpired(n int) { m.expiries.Add(float64(n)) }

// Suggested counts a trial created from a designer's suggestion. isFallback says that the designer
// replaced the study's own.
func (m *Metrics) Suggested(designer string, isFallback bool) {
	m.suggestions.WithLabelValues(designer).Inc()
	if isFallback {
		m.fallbacks.Inc()
	}
}

// Prepared counts a designer pass. hit says that its suggestion was already prepared.
func (m *Metrics) Prepared(hit bool) {
	if hit {
		m.prepared[1].Inc()
	} else {
		m.prepared[0].Inc()
	}
}

// Phase records the duration of a phase of a suggestion.
func (m *Metrics) Phase(phase string, elapsed time.Duration) {
	m.phases[phase].Observe(elapsed.Seconds())
}

// Fitted records the number of evaluations that a model is fitted to.
func (m *Metrics) Fitted(evaluations int) { m.observations.Observe(float64(evaluations)) }

// Updated records the duration of a store update, and whether the store failed.
func (m *Metrics) Updated(elapsed time.Duration, failed bool) {
	m.updates.Observe(elapsed.Seconds())
	if failed {
		m.failedUpdates.Inc()
	}
}

// Writable records whether the store can be written.
func (m *Metrics) Writable(ok bool) {
	value := 0.0
	if ok {
		value = 1
	}
	m.writable.Set(value)
}

// Scrubbed counts records compared with their checksums.
func (m *Metrics) Scrubbed(records int64) { m.scrubbed.Add(float64(records)) }

// StoreFaults records the number of faults found by the last pass over the store.
func (m *Metrics) StoreFaults(n int) { m.faults.Set(float64(n)) }

// StateName returns the label of a trial state: "none" before creation and after deletion.
func StateName(state dparetov1.TrialState) string { return stateNames[state] }

var stateNames = map[dparetov1.TrialState]string{
	dparetov1.TrialState_TRIAL_STATE_UNSPECIFIED: "none",
	dparetov1.TrialState_TRIAL_STATE_QUEUED:      "queued",
	dparetov1.TrialState_TRIAL_STATE_ACTIVE:      "active",
	dparetov1.TrialState_TRIAL_STATE_STOPPING:    "stopping",
	dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:   "succeeded",
	dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:  "infeasible",
	dparetov1.TrialState_TRIAL_STATE_FAILED:      "failed",
}
