package spec

import (
	"github.com/dpareto/dpareto/server/accounting"
	"github.com/dpareto/dpareto/suggest/space"
)

// Mechanism returns the function behind a privacy metric, and its id: the first one for
// the id "". It returns nil if there is no such metric.
func (s *Study) Mechanism(id string) (string, *accounting.Function) {
	for i := range s.metrics {
		m := &s.metrics[i]
		if g, ok := m.computed.(guarantee); ok && (id == "" || m.spec.GetId() == id) {
			return m.spec.GetId(), g.function
		}
	}
	return id, nil
}

// Variables returns the values of a configuration for expressions, of their Go types:
// none for parameters that do not exist there.
func (s *Study) Variables(point space.Point) map[string]any { return s.variables(point) }
