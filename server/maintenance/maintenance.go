package maintenance

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

const (
	// maintainEvery is the minimum time between the starts of two passes.
	maintainEvery = 10 * time.Minute
	// maintenancePause is the ratio of pause to work in a pass, so that a pass works at most 1 % of
	// the time.
	maintenancePause = 100
)

// Maintenance verifies the store and removes expired responses in the background.
type Maintenance struct {
	store   *store.Store
	logger  *slog.Logger
	now     func() time.Time
	metrics *metrics.Metrics

	background *background.Group
}

// New returns the maintenance of a store.
func New(db *store.Store, logger *slog.Logger, now func() time.Time, m *metrics.Metrics, background *background.Group) *Maintenance {
	return &Maintenance{db, logger, now, m, background}
}

// Run passes over the store repeatedly until the server is closed. It removes expired responses to
// requests, and finds damage before a call meets it.
func (m *Maintenance) Run() {
	ctx := m.background.Context()
	for pause := maintainEvery; wait(ctx, pause) == nil; {
		started := time.Now()
		if err := m.pass(ctx); err != nil && ctx.Err() == nil {
			m.logger.ErrorContext(ctx, "store maintenance failed", "error", err)
		}
		pause = max(time.Minute, maintainEvery-time.Since(started))
	}
}

// wait sleeps. It returns the error of ctx if that ends first.
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

// pass maintains one scope after the other, with pauses, unless another server does on the same store.
func (m *Maintenance) pass(ctx context.Context) error {
	unlock, taken, err := m.store.TryLock(ctx, "maintenance")
	if err != nil || !taken {
		return err
	}
	defer unlock()
	faults := 0
	for scope, more := store.Scope(""), true; more; {
		started := time.Now()
		var found []error
		var now time.Time
		scope, now, found = m.verifyNext(ctx, scope)
		if err := ctx.Err(); err != nil {
			return err
		}
		more = scope != ""
		faults += len(found)
		if len(found) > 0 {
			m.logger.ErrorContext(ctx, "the store is damaged", "scope", string(scope), "error", errors.Join(found...))
		} else if more {
			if _, err := m.store.ForgetRequests(ctx, scope, now.Add(-study.RememberFor)); err != nil && ctx.Err() == nil {
				m.logger.WarnContext(ctx, "cannot remove expired responses to requests", "scope", string(scope), "error", err)
			}
		}
		if err := wait(ctx, maintenancePause*time.Since(started)); err != nil {
			return err
		}
	}
	m.metrics.StoreFaults(faults)
	return nil
}

// verifyNext verifies the first scope above another and returns it, or "" if there is none or the
// search fails, with the time by which answers grow old.
func (m *Maintenance) verifyNext(ctx context.Context, after store.Scope) (next store.Scope, now time.Time, faults []error) {
	var records int64
	now = m.now()
	err := m.store.View(ctx, func(tx *store.ReadTx) error {
		if shared, _, ok := tx.Time(); ok {
			now = shared
		}
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
	return next, now, faults
}
