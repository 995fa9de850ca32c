package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

const (
	// maintainEvery is the least time between the beginnings of two passes over the store.
	maintainEvery = 10 * time.Minute
	// maintenancePause is how many times as long as it works a pass pauses: it takes at most
	// 1 % of the time.
	maintenancePause = 100
)

// Maintenance keeps the store in order in the background.
type Maintenance struct {
	store   *store.Store
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics.Metrics
}

// New returns the maintenance of a store.
func New(db *store.Store, logger *slog.Logger, now func() time.Time, m *metrics.Metrics) *Maintenance {
	return &Maintenance{db, logger, now, m}
}

// Run passes over the store again and again until ctx ends: it forgets the
// answers to requests that are too old, and looks for damage before anybody needs what is
// damaged.
func (m *Maintenance) Run(ctx context.Context) {
	for pause := maintainEvery; wait(ctx, pause) == nil; {
		started := time.Now()
		if err := m.pass(ctx); err != nil && ctx.Err() == nil {
			m.logger.ErrorContext(ctx, "maintenance of the store", "error", err)
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
func (m *Maintenance) pass(ctx context.Context) error {
	faults := 0
	for scope, more := store.Scope(""), true; more; {
		started := time.Now()
		var found []error
		scope, found = m.verifyNext(ctx, scope)
		if err := ctx.Err(); err != nil {
			return err
		}
		more = scope != ""
		faults += len(found)
		if len(found) > 0 {
			m.logger.ErrorContext(ctx, "the store is damaged", "scope", string(scope), "error", errors.Join(found...))
		} else if more {
			if _, err := m.store.ForgetRequests(ctx, scope, m.now().Add(-study.RememberFor)); err != nil && ctx.Err() == nil {
				m.logger.WarnContext(ctx, "old answers to requests cannot be forgotten", "scope", string(scope), "error", err)
			}
		}
		if err := wait(ctx, maintenancePause*time.Since(started)); err != nil {
			return err
		}
	}
	m.metrics.StoreFaults(faults)
	return nil
}

// verifyNext verifies the first scope above another one, and returns it, or "" if there is none
// or none can be found.
func (m *Maintenance) verifyNext(ctx context.Context, after store.Scope) (next store.Scope, faults []error) {
	var records int64
	err := m.store.View(ctx, func(tx *store.ReadTx) error {
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
	m.metrics.Scrubbed(records)
	return next, faults
}
