package metrics

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// numStates is the number of trial states, including unspecified.
const numStates = dparetov1.TrialState_TRIAL_STATE_FAILED + 1

// transitions counts state transitions of trials.
type transitions struct {
	total *prometheus.CounterVec
	known [numStates][numStates]atomic.Pointer[prometheus.Counter]
}

func (t *transitions) init() {
	t.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "trial_transitions_total",
		Help: "State transitions of trials; from none at creation, to none at deletion.",
	}, []string{"from", "to"})
}

// TrialMoved counts a state transition of a trial.
func (m *Metrics) TrialMoved(from, to dparetov1.TrialState) {
	known := &m.transitions.known[from][to]
	counter := known.Load()
	if counter == nil {
		c := m.transitions.total.WithLabelValues(StateName(from), StateName(to))
		counter = &c
		known.Store(counter)
	}
	(*counter).Inc()
}

// Totals are the totals of a store.
type Totals struct {
	// Studies has the number of studies by the label of their state.
	Studies map[string]int64
	// Trials has the number of trials in all studies.
	Trials dparetov1.TrialCounts
	// Hypervolumes has the hypervolumes of the studies with the latest results, by study id. Their
	// number is bounded.
	Hypervolumes map[string]float64
}

// scrapePatience is how long a scrape may read the store.
const scrapePatience = 5 * time.Second

// states collects the totals at each scrape.
type states struct {
	studies, trials, hypervolume *prometheus.Desc

	source atomic.Pointer[func(context.Context) (*Totals, error)]
}

func newStates() *states {
	return &states{
		studies: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "studies"), "Studies in the store, by state.", []string{"state"}, nil),
		trials:  prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "trials"), "Trials in the store, by state.", []string{"state"}, nil),
		hypervolume: prometheus.NewDesc(prometheus.BuildFQName(namespace, "", "study_hypervolume"),
			"Hypervolume within the reference values that the measured results of a study dominate, for the studies with the latest results.",
			[]string{"study"}, nil),
	}
}

// CountStudies makes every scrape call source for the studies and trials in the store.
func (m *Metrics) CountStudies(source func(context.Context) (*Totals, error)) {
	m.states.source.Store(&source)
}

// Describe implements prometheus.Collector.
func (s *states) Describe(descs chan<- *prometheus.Desc) {
	descs <- s.studies
	descs <- s.trials
	descs <- s.hypervolume
}

// Collect implements prometheus.Collector.
func (s *states) Collect(metrics chan<- prometheus.Metric) {
	source := s.source.Load()
	if source == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	totals, err := (*source)(ctx)
	if err != nil {
		metrics <- prometheus.NewInvalidMetric(s.trials, err)
		return
	}
	gauge := func(desc *prometheus.Desc, value float64, label string) {
		metrics <- prometheus.MustNewConstMetric(desc, prometheus.GaugeValue, value, label)
	}
	for state, n := range totals.Studies {
		gauge(s.studies, float64(n), state)
	}
	for state, n := range map[dparetov1.TrialState]int64{
		dparetov1.TrialState_TRIAL_STATE_QUEUED:     totals.Trials.GetQueued(),
		dparetov1.TrialState_TRIAL_STATE_ACTIVE:     totals.Trials.GetActive(),
		dparetov1.TrialState_TRIAL_STATE_STOPPING:   totals.Trials.GetStopping(),
		dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:  totals.Trials.GetSucceeded(),
		dparetov1.TrialState_TRIAL_STATE_INFEASIBLE: totals.Trials.GetInfeasible(),
		dparetov1.TrialState_TRIAL_STATE_FAILED:     totals.Trials.GetFailed(),
	} {
		gauge(s.trials, float64(n), StateName(state))
	}
	for study, hypervolume := range totals.Hypervolumes {
		gauge(s.hypervolume, hypervolume, study)
	}
}
