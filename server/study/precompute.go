package study

import (
	"context"
	"errors"
	"slices"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/suggest/space"
)

// Some values take too long for a transaction, which would hold up other changes: ε of a
// configuration, the last useful step of a run, the slot that pays for a run. A call therefore computes
// them first, in the pool, and caches them with the study, where the transaction finds them. Decoding a
// study takes time, so the call uses the study as the last call has read it. If another server has
// changed the spec since, the transaction computes the missing values itself.

// computation is a value that takes too long for a transaction.
type computation func(context.Context) error

// precompute calls look, which returns the missing values of a study, and computes them in the pool. The
// spec may be older than the trials. Nil elements are ignored. A study that does not exist is an error of
// the transaction.
func precompute(ctx context.Context, s *Studies, id string, look func(*Cached) ([]computation, error)) error {
	cached, err := lastRead(ctx, s, id)
	if status.Code(err) == codes.NotFound {
		return nil
	}
	if err != nil {
		return err
	}
	missing, err := look(cached)
	missing = slices.DeleteFunc(missing, func(c computation) bool { return c == nil })
	if err != nil || len(missing) == 0 {
		return err
	}
	return s.pool.Run(ctx, pool.Suggestion, func(ctx context.Context) error {
		for _, compute := range missing {
			if err := compute(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

// lastRead returns a study from the cache, however old, or reads it from the store.
func lastRead(ctx context.Context, s *Studies, id string) (cached *Cached, err error) {
	if cached = s.cache.latest(resource.StudyName(id)); cached != nil {
		return cached, nil
	}
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := FindStudy(tx, id)
		if err == nil {
			cached, err = s.Get(record)
		}
		return err
	})
	return cached, err
}

// metricsAt returns the computation of the metrics of a configuration at a step (0: the end), nil if
// they are cached or cheap.
func metricsAt(compiled *spec.Study, point space.Point, step int64) computation {
	if last := compiled.Points.LastStep(point); step >= 1 && step < last {
		point = compiled.Points.At(point, step)
	}
	if compiled.Metrics.AtHand(point) {
		return nil
	}
	return func(context.Context) error {
		compiled.Metrics.Compute(point)
		return nil
	}
}

// reported is a measurement that a worker reports of a trial under a lease token.
type reported struct {
	study       string
	number      int64
	token       string
	measurement *dparetov1.Measurement
	final       bool
}

// configuration is the configuration of a trial under a compiled spec. The parameters of a trial
// never change.
type configuration struct {
	compiled *spec.Study
	point    space.Point
}

// of returns the configuration of a trial in a transaction: the one that was read before, unless the
// study has another spec now.
func (r configuration) of(c *trialChange) (space.Point, error) {
	if r.compiled == c.Compiled {
		return r.point, nil
	}
	return PointOf(c.Compiled, c.record.GetTrial())
}

// precomputeReport reads the configuration of a trial that a worker reports about, and computes what
// the report needs: the metrics at its step, and whether the run is of further use.
func (t *Trials) precomputeReport(ctx context.Context, r reported) (read configuration, err error) {
	err = precompute(ctx, t.studies, r.study, func(of *Cached) ([]computation, error) {
		if r.final && of.Compiled.Metrics.ComputesAtOnce() {
			return nil, nil
		}
		var record *storev1.TrialRecord
		err := t.studies.store.View(ctx, func(tx *store.ReadTx) (err error) {
			record, err = tx.BareTrial(r.study, r.number)
			return err
		})
		trial := record.GetTrial()
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, nil
		case err != nil || IsTerminal(trial.GetState()) || !slices.Contains(record.GetLeaseTokens(), r.token):
			return nil, err // the transaction refuses it, or has answered it before
		}
		point, err := PointOf(of.Compiled, trial)
		if err != nil {
			return nil, nil //nolint:nilerr // the spec may have changed; the transaction finds the fault
		}
		read = configuration{of.Compiled, point}
		missing := []computation{metricsAt(of.Compiled, point, r.measurement.GetStep())}
		if !r.final {
			_, later := verdict(t.studies.stopper, of, trial, r.measurement.GetStep())
			missing = append(missing, later)
		}
		return missing, nil
	})
	return read, err
}

// Assess computes what the policy of a study needs to afford the open trials that a worker may get.
func (s *Studies) Assess(ctx context.Context, id, worker string, resume bool) error {
	return precompute(ctx, s, id, func(of *Cached) (missing []computation, err error) {
		assessor, ok := s.Policy(of.Compiled.Spec).(Assessor)
		if !ok {
			return nil, nil
		}
		return missing, s.store.View(ctx, func(tx *store.ReadTx) error {
			open, err := findOpen(tx, id, s.times.read(tx), worker, resume)
			if err != nil {
				return err
			}
			for _, number := range open.inTurn() {
				record, err := tx.BareTrial(id, number)
				if errors.Is(err, store.ErrNotFound) {
					continue // the study is being deleted, as the transaction will say
				}
				if err != nil {
					return err
				}
				missing = append(missing, assessor.Assess(of.Compiled, record.GetTrial()))
			}
			return nil
		})
	})
}
