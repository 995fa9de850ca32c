package server

import (
	"context"
	"errors"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest"
)

// There is one writer, and some accountants take a good part of a second. So that no
// transaction keeps other studies waiting for one, what a transaction will compute is
// computed before, outside of it; the study remembers it for a while. Whatever is wrong
// with a request is left to the transaction, which finds it again.

// prepareSuggested computes the metrics of suggestions that are about to become trials.
func prepareSuggested(ctx context.Context, compiled *spec.Study, suggestions []suggest.Suggestion) error {
	for i := range suggestions {
		if err := ctx.Err(); err != nil {
			return err
		}
		compiled.Compute(suggestions[i].Point)
	}
	return nil
}

// prepareRequested computes the metrics of a trial that a user asks for.
func (s *Server) prepareRequested(ctx context.Context, id string, requested *dparetov1.Trial) error {
	if original := requested.GetReplicateOf(); original != "" && len(requested.GetParameters()) == 0 {
		if study, _, err := parseTrialName("", original); err != nil || study != id {
			return nil //nolint:nilerr // see above
		}
		return s.prepareMeasured(ctx, original, 0)
	}
	return s.prepareComputed(ctx, id, func(*store.ReadTx) (map[string]*dparetov1.Value, error) {
		return requested.GetParameters(), nil
	}, 0)
}

// prepareMeasured computes the metrics of the state of a trial that was measured at a
// step; step 0 is the end.
func (s *Server) prepareMeasured(ctx context.Context, name string, step int64) error {
	id, number, err := parseTrialName("name", name)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	return s.prepareComputed(ctx, id, func(tx *store.ReadTx) (map[string]*dparetov1.Value, error) {
		record, err := tx.Trial(id, number)
		return record.GetTrial().GetParameters(), err
	}, step)
}

// prepareComputed computes the metrics at a step of the configuration that find returns,
// if they may take long.
func (s *Server) prepareComputed(ctx context.Context, id string, find func(*store.ReadTx) (map[string]*dparetov1.Value, error), step int64) error {
	if known := s.studies.named(studyName(id)); known != nil && known.compiled.ComputesAtOnce() {
		return nil
	}
	var compiled *spec.Study
	var parameters map[string]*dparetov1.Value
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		study, err := findStudy(tx, id)
		if err != nil {
			return err
		}
		cached, err := s.studies.get(study.GetStudy())
		if err != nil {
			return err
		}
		compiled = cached.compiled
		parameters, err = find(tx)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		return err
	})
	if err != nil || compiled.ComputesAtOnce() {
		return err
	}
	point, err := compiled.Point("trial.parameters", parameters)
	if err != nil {
		return nil //nolint:nilerr // see above
	}
	if last := compiled.LastStep(point); step >= 1 && step < last {
		point = compiled.At(point, step)
	}
	compiled.Compute(point)
	return nil
}
