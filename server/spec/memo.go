package spec

import (
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxComputations bounds the computations kept per study. A study has fewer workers that
// report at once.
const maxComputations = 256

// memo keeps the latest computed metrics by configuration, so that the server can compute them
// outside of the transaction that needs them. It is safe for concurrent use.
type memo struct {
	mu   sync.Mutex
	kept map[string]computation
	keys []string // of kept, the oldest first
}

// computation is the computed metrics of a configuration. Its messages are not changed.
type computation struct {
	metrics  map[string]*dparetov1.MetricValue
	warnings []*dparetov1.Warning
}

// get returns a copy of what put kept for a configuration.
func (m *memo) get(point space.Point) (metrics map[string]*dparetov1.MetricValue, warnings []*dparetov1.Warning, ok bool) {
	m.mu.Lock()
	found, ok := m.kept[point.Key()]
	m.mu.Unlock()
	if !ok {
		return nil, nil, false
	}
	metrics, warnings = found.clone()
	return metrics, warnings, true
}

// has reports whether anything is kept of a configuration.
func (m *memo) has(point space.Point) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, ok := m.kept[point.Key()]
	return ok
}

// put keeps a copy of the computed metrics of a configuration.
func (m *memo) put(point space.Point, metrics map[string]*dparetov1.MetricValue, warnings []*dparetov1.Warning) {
	var c computation
	c.metrics, c.warnings = computation{metrics, warnings}.clone()
	key := point.Key()
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.kept[key]; ok {
		return
	}
	if m.kept == nil {
		m.kept = make(map[string]computation)
	}
	if len(m.keys) == maxComputations {
		delete(m.kept, m.keys[0])
		m.keys = slices.Delete(m.keys, 0, 1)
	}
	m.kept[key] = c
	m.keys = append(m.keys, key)
}

func (c computation) clone() (metrics map[string]*dparetov1.MetricValue, warnings []*dparetov1.Warning) {
	metrics = make(map[string]*dparetov1.MetricValue, len(c.metrics))
	for id, value := range c.metrics {
		metrics[id] = proto.CloneOf(value)
	}
	for _, warning := range c.warnings {
		warnings = append(warnings, proto.CloneOf(warning))
	}
	return metrics, warnings
}
