package spec

import (
	lru "github.com/hashicorp/golang-lru/v2"
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
	kept *lru.Cache[string, computation]
}

func newMemo() memo {
	kept, err := lru.New[string, computation](maxComputations)
	if err != nil {
		panic(err) // maxComputations is positive
	}
	return memo{kept}
}

// computation is the computed metrics of a configuration. Its messages are not changed.
type computation struct {
	metrics  map[string]*dparetov1.MetricValue
	warnings []*dparetov1.Warning
}

// get returns a copy of what put kept for a configuration.
func (m memo) get(point space.Point) (metrics map[string]*dparetov1.MetricValue, warnings []*dparetov1.Warning, ok bool) {
	found, ok := m.kept.Get(point.Key())
	if !ok {
		return nil, nil, false
	}
	metrics, warnings = found.clone()
	return metrics, warnings, true
}

// has reports whether anything is kept of a configuration.
func (m memo) has(point space.Point) bool { return m.kept.Contains(point.Key()) }

// put keeps a copy of the computed metrics of a configuration.
func (m memo) put(point space.Point, metrics map[string]*dparetov1.MetricValue, warnings []*dparetov1.Warning) {
	var c computation
	c.metrics, c.warnings = computation{metrics, warnings}.clone()
	m.kept.Add(point.Key(), c)
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
