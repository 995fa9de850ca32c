package study

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/dpareto/dpareto/server/background"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/store"
)

// Options configures Studies. All fields but Stopper and Observers are required.
type Options struct {
	Store      *store.Store
	Logger     *slog.Logger
	Now        func() time.Time
	Limits     limit.Limits
	Background *background.Group
	// Policies returns the policy of studies with a spec, nil for Ordinary. Policies with state
	// share it.
	Policies func(*Studies, *dparetov1.StudySpec) Policy
	Ledgers  Ledgers
}

// Studies implements the calls of StudyService that concern whole studies, and the one way
// to change a study (Change). It is safe for concurrent use.
type Studies struct {
	store      *store.Store
	logger     *slog.Logger
	now        func() time.Time
	limits     limit.Limits
	background *background.Group
	policies   func(*Studies, *dparetov1.StudySpec) Policy
	ledgers    Ledgers
	stopper    Stopper
	observers  []func(*Events)

	cache     cache
	watchers  watchers
	Importing IDSet // the studies that calls import or delete
}

// New returns the studies of a store.
func New(o Options) *Studies {
	return &Studies{
		store: o.Store, logger: o.Logger, now: o.Now, limits: o.Limits, background: o.Background,
		policies: o.Policies, ledgers: o.Ledgers,
		cache: cache{maximum: maxCachedStudies},
	}
}

// StopEarly has a stopper asked about every active trial. It is called before the first call.
func (s *Studies) StopEarly(stopper Stopper) { s.stopper = stopper }

// Observe has fn told the events of every change, once it is durable. It is called before the
// first call; fn must be quick, and not change the events.
func (s *Studies) Observe(fn func(*Events)) { s.observers = append(s.observers, fn) }

// Policy returns the policy of studies with a spec.
func (s *Studies) Policy(spec *dparetov1.StudySpec) Policy {
	if policy := s.policies(s, spec); policy != nil {
		return policy
	}
	return Ordinary{}
}

// Get returns a study's spec in compiled form and what is derived from it.
func (s *Studies) Get(study *dparetov1.Study) (*Cached, error) { return s.cache.get(study) }

// Holds reports whether what is derived from a study is what Get returns, and not what an
// operation goes on with that began earlier.
func (s *Studies) Holds(uid string, cached *Cached) bool { return s.cache.holds(uid, cached) }

// Forget drops what is derived from a study.
func (s *Studies) Forget(uid string) { s.cache.forget(uid) }

// Present returns a study as clients see it now. It changes record.
func (s *Studies) Present(record *storev1.StudyRecord) *dparetov1.Study {
	study := record.GetStudy()
	study.State, study.StateReason = s.State(record)
	return s.Policy(study.GetSpec()).Present(record)
}

// IsHidden reports whether there is a study with an id whose trials are secret.
func (s *Studies) IsHidden(ctx context.Context, id string) (hidden bool, err error) {
	err = s.store.View(ctx, func(tx *store.ReadTx) error {
		record, err := tx.Study(id)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		hidden = err == nil && s.Policy(record.GetStudy().GetSpec()).Traits().Hidden
		return err
	})
	return hidden, err
}

// ErrHidden says that a hidden study does not answer a call.
func ErrHidden(name string) error {
	return status.Errorf(codes.FailedPrecondition,
		"%s shows nothing but its best trial, see ReleaseBest: with random_stopping its guarantee rests on the secrecy of everything else", name)
}
