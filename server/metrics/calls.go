package metrics

import (
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
)

// methodLabels are the labels of call metrics.
var methodLabels = []string{"service", "method"}

// calls counts calls. It looks up the counters once for every method.
type calls struct {
	total    *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	inFlight *prometheus.GaugeVec

	methods sync.Map // *Method by full name
}

func (c *calls) init() {
	c.total = prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: namespace, Name: "requests_total", Help: "Completed calls, by method and code.",
	}, append(methodLabels, "code"))
	c.seconds = prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Namespace: namespace, Name: "request_duration_seconds", Buckets: slow, Help: "Time that calls took in the server.",
	}, methodLabels)
	c.inFlight = prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: namespace, Name: "requests_in_flight", Help: "Calls in progress, including streams.",
	}, methodLabels)
}

// Method counts the calls of one method.
type Method struct {
	service, name string
	inFlight      prometheus.Gauge
	seconds       prometheus.Observer
	total         *prometheus.CounterVec
	codes         [codes.Unauthenticated + 1]atomic.Pointer[prometheus.Counter]
}

// Method returns the counters of a method given as /package.Service/Method.
func (m *Metrics) Method(fullName string) *Method {
	if method, ok := m.calls.methods.Load(fullName); ok {
		return method.(*Method)
	}
	service, name, _ := strings.Cut(strings.TrimPrefix(fullName, "/"), "/")
	service = service[strings.LastIndexByte(service, '.')+1:]
	method, _ := m.calls.methods.LoadOrStore(fullName, &Method{
		service:  service,
		name:     name,
		inFlight: m.calls.inFlight.WithLabelValues(service, name),
		seconds:  m.calls.seconds.WithLabelValues(service, name),
		total:    m.calls.total,
	})
	return method.(*Method)
}

// Begin counts the start of a call.
func (m *Method) Begin() { m.inFlight.Inc() }

// End counts the end of a call.
func (m *Method) End(code codes.Code, elapsed time.Duration) {
	m.inFlight.Dec()
	m.seconds.Observe(elapsed.Seconds())
	if int(code) >= len(m.codes) {
		code = codes.Unknown
	}
	counter := m.codes[code].Load()
	if counter == nil {
		c := m.total.WithLabelValues(m.service, m.name, code.String())
		counter = &c
		m.codes[code].Store(counter)
	}
	(*counter).Inc()
}
