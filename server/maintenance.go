package server

import (
	"context"
	"errors"
	"time"

	"github.com/dpareto/dpareto/server/store"
)

const (
	// maintainEvery is the least time between the beginnings of two passes over the store.
	maintainEvery = 10 * time.Minute
	// maintenanceShare is the share of the time that a pass takes at most: one part in so many.
	maintenanceShare = 100
)

// maintain passes over the store again and again until the server is closed: it forgets the
// answers to requests that are too old, and looks for damage before anybody needs what is
// damaged.
func (s *Server) maintain() {
	for pause := maintainEvery; wait(s.background, pause) == nil; {
		started := time.Now()
		if err := s.pass(s.background, wait); err != nil && s.background.Err() == nil {
			s.logger.ErrorContext(s.background, "maintenance of the store", "error", err)
		}
		pause = max(time.Minute, maintainEvery-time.Since(started))
	}
}

// wait waits, or returns the error of the context when that ends.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass maintains one scope of the store after the other, with pauses.
func (s *Server) pass(ctx context.Context, pause func(context.Context, time.Duration) error) error {
	damages := 0
	for scope, more := store.Scope(""), true; more; {
		started := time.Now()
		var records int64
		var faults []error
		err := s.store.View(ctx, func(tx *store.ReadTx) error {
			more = false
			err := tx.Scopes(scope, func(next store.Scope) (bool, error) {
				scope, more = next, true
				return false, nil
			})
			if more {
				records, faults = tx.Verify(scope)
			}
			return err
		})
		if err != nil {
			return err
		}
		s.metrics.Scrubbed(records)
		damages += len(faults)
		if len(faults) > 0 {
			s.logger.ErrorContext(ctx, "the store is damaged", "scope", string(scope), "error", errors.Join(faults...))
		} else if more {
			if _, err := s.store.ForgetRequests(ctx, scope, s.now().Add(-rememberFor)); err != nil {
				return err
			}
		}
		if err := pause(ctx, maintenanceShare*time.Since(started)); err != nil {
			return err
		}
	}
	s.metrics.Damages(damages)
	return nil
}
