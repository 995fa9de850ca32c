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
	// maintenancePause is how many times as long as it works a pass pauses: it takes at most
	// 1 % of the time.
	maintenancePause = 100
)

// maintain passes over the store again and again until the server is closed: it forgets the
// answers to requests that are too old, and looks for damage before anybody needs what is
// damaged.
func (s *Server) maintain() {
	for pause := maintainEvery; wait(s.background, pause) == nil; {
		started := time.Now()
		if err := s.pass(s.background); err != nil && s.background.Err() == nil {
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
func (s *Server) pass(ctx context.Context) error {
	faults := 0
	for scope, more := store.Scope(""), true; more; {
		started := time.Now()
		var found []error
		scope, found = s.verifyNext(ctx, scope)
		if err := ctx.Err(); err != nil {
			return err
		}
		more = scope != ""
		faults += len(found)
		if len(found) > 0 {
			s.logger.ErrorContext(ctx, "the store is damaged", "scope", string(scope), "error", errors.Join(found...))
		} else if more {
			if _, err := s.store.ForgetRequests(ctx, scope, s.now().Add(-rememberFor)); err != nil && ctx.Err() == nil {
				s.logger.WarnContext(ctx, "old answers to requests cannot be forgotten", "scope", string(scope), "error", err)
			}
		}
		if err := wait(ctx, maintenancePause*time.Since(started)); err != nil {
			return err
		}
	}
	s.metrics.StoreFaults(faults)
	return nil
}

// verifyNext verifies the first scope above another one, and returns it, or "" if there is none
// or none can be found.
func (s *Server) verifyNext(ctx context.Context, after store.Scope) (next store.Scope, faults []error) {
	var records int64
	err := s.store.View(ctx, func(tx *store.ReadTx) error {
		err := tx.Scopes(after, func(scope store.Scope) (bool, error) {
			next = scope
			return false, nil
		})
		if next != "" {
			records, faults = tx.Verify(next)
		}
		return err
	})
	if err != nil {
		faults = append(faults, err)
	}
	s.metrics.Scrubbed(records)
	return next, faults
}
