package server

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// maxComputations bounds the computations that are kept of one study: those of the
// trials that several passes of its designer are about to create.
const maxComputations = 8 * maxBatch

// computations keeps the computed metrics of configurations that are about to become
// trials. Some accountants take a good part of a second, for which no transaction may keep
// the others waiting: what will be needed in one is computed before.
type computations struct {
	mu   sync.Mutex
	kept map[string]computation
	keys []string // of kept, the oldest first
}

// computation is the computed metrics of a configuration. Its messages are not changed.
type computation struct {
	metrics  map[string]*dparetov1.MetricValue
	warnings []*dparetov1.Warning
}

// prepareComputed computes the metrics of a configuration outside of a transaction.
func (s *cachedStudy) prepareComputed(point space.Point) {
	c, key := &s.computations, keyOf(point)
	c.mu.Lock()
	_, found := c.kept[key]
	c.mu.Unlock()
	if found || computesAtOnce(s.compiled) {
		return
	}
	metrics, warnings := s.compiled.Compute(point)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept == nil {
		c.kept = make(map[string]computation)
	}
	if _, found := c.kept[key]; found {
		return
	}
	if len(c.keys) == maxComputations {
		delete(c.kept, c.keys[0])
		c.keys = slices.Delete(c.keys, 0, 1)
	}
	c.kept[key] = computation{metrics, warnings}
	c.keys = append(c.keys, key)
}

// prepareSuggested computes the metrics of suggestions, as prepareComputed does.
func (s *cachedStudy) prepareSuggested(ctx context.Context, suggestions []suggest.Suggestion) error {
	for i := range suggestions {
		if err := ctx.Err(); err != nil {
			return err
		}
		s.prepareComputed(suggestions[i].Point)
	}
	return nil
}

// prepareRequested computes the metrics of a trial that a user asks for. What is wrong
// with the request is found again in the transaction that creates it.
func (s *Server) prepareRequested(ctx context.Context, id string, requested *dparetov1.Trial) error {
	var cached *cachedStudy
	var point space.Point
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		study, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		if cached, err = s.studies.get(study.GetStudy()); err != nil || computesAtOnce(cached.compiled) {
			return err
		}
		parameters := requested.GetParameters()
		if original := requested.GetReplicateOf(); original != "" && len(parameters) == 0 {
			of, number, err := parseTrialName("trial.replicate_of", original)
			if err != nil || of != id {
				return nil
			}
			record, err := tx.Trial(id, number)
			if errors.Is(err, store.ErrNotFound) {
				return nil
			} else if err != nil {
				return err
			}
			parameters = record.GetTrial().GetParameters()
		}
		if valid, err := cached.compiled.Point("trial.parameters", parameters); err == nil {
			point = valid
		}
		return nil
	})
	if err == nil && point != nil {
		cached.prepareComputed(point)
	}
	return err
}

// compute returns the computed metrics of a configuration, from an earlier call of
// prepareComputed if possible.
func (s *cachedStudy) compute(point space.Point) (map[string]*dparetov1.MetricValue, []*dparetov1.Warning) {
	s.computations.mu.Lock()
	found, ok := s.computations.kept[keyOf(point)]
	s.computations.mu.Unlock()
	if !ok {
		return s.compiled.Compute(point)
	}
	metrics := make(map[string]*dparetov1.MetricValue, len(found.metrics))
	for id, value := range found.metrics {
		metrics[id] = proto.CloneOf(value)
	}
	warnings := make([]*dparetov1.Warning, 0, len(found.warnings))
	for _, warning := range found.warnings {
		warnings = append(warnings, proto.CloneOf(warning))
	}
	return metrics, warnings
}

// computesAtOnce reports whether the computed metrics of a study take so little time that
// they can be computed in a transaction: they are expressions and closed forms.
func computesAtOnce(study *spec.Study) bool {
	return !slices.ContainsFunc(study.Spec.GetMetrics(), func(m *dparetov1.MetricSpec) bool {
		private := m.GetComputed().GetPrivacy()
		switch private.GetAccountant() {
		case dparetov1.Accountant_ACCOUNTANT_PURE, dparetov1.Accountant_ACCOUNTANT_PURE_ADVANCED, dparetov1.Accountant_ACCOUNTANT_GDP:
			return false
		default:
			return private != nil
		}
	})
}

// keyOf returns a key of a configuration.
func keyOf(point space.Point) string {
	key := make([]byte, 0, 8*len(point))
	for _, x := range point {
		key = binary.BigEndian.AppendUint64(key, math.Float64bits(x))
	}
	return string(key)
}
