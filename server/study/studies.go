package study

import (
	"context"
	"errors"
	"log/slog"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/invalid"
	"github.com/dpareto/dpareto/server/limit"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/resource"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
)

// Options configures Studies. All fields are required.
type Options struct {
	Store      *store.Store
	Logger     *slog.Logger
	Clock      clock.Clock
	Limits     limit.Limits
	Background *background.Group
	Pool       *pool.Pool
	// Policies returns the policy for a spec, nil for Ordinary. It is called often; state lives in
	// what it closes over.
	Policies func(*Studies, *dparetov1.StudySpec) Policy
	Ledgers  Ledgers
}

// Studies implements the StudyService calls on whole studies, and Change, through which all changes
// of a study go. It is safe for concurrent use.
type Studies struct {
	store      *store.Store
	logger     *slog.Logger
	times      times
	limits     limit.Limits
	background *background.Group
	pool       *pool.Pool
	policies   func(*Studies, *dparetov1.StudySpec) Policy
	ledgers    Ledgers
	stopper    Stopper
	observers  []func(*Events)

	cache     *cache
	watchers  watchers
	preparing *Preparations
}

// New returns the studies in a store.
func New(o Options) *Studies {
	s := &Studies{
		store: o.Store, logger: o.Logger, times: newTimes(o.Store, o.Clock), limits: o.Limits, background: o.Background, pool: o.Pool,
		policies: o.Policies, ledgers: o.Ledgers,
		cache: newCache(maxCachedStudies, maxCachedMeasurements),
	}
	s.preparing = &Preparations{studies: s, running: make(map[string]*preparation)}
	o.Store.Listen(
		func(scope store.Scope) { s.watchers.notify(resource.StudyID(string(scope))) },
		func() {
			s.cache.clear()
			s.watchers.notifyAll()
		},
	)
	return s
}

// announce tells those who wait for changes of a study, here and on other servers, that one is durable.
func announce(s *Studies, id string) {
	s.watchers.notify(id)
	s.store.Announce(store.StudyScope(id))
}

// StopEarly sets the stopper, which is asked about every active trial. Call it before serving.
func (s *Studies) StopEarly(stopper Stopper) { s.stopper = stopper }

// Observe registers fn, which gets the events of every change once it is durable. Call it before
// serving. fn must be quick and must not modify the events.
func (s *Studies) Observe(fn func(*Events)) { s.observers = append(s.observers, fn) }

// Preparations returns the preparations of the studies.
func (s *Studies) Preparations() *Preparations { return s.preparing }

// Policy returns the policy for a spec.
func (s *Studies) Policy(spec *dparetov1.StudySpec) Policy {
	if policy := s.policies(s, spec); policy != nil {
		return policy
	}
	return Ordinary{}
}

// Get returns a study's compiled spec and derived values from the cache, and compiles the spec if
// needed. Its only error is a spec that does not compile.
func (s *Studies) Get(record *storev1.StudyRecord) (*Cached, error) {
	if cached := s.cache.find(record); cached != nil {
		return cached, nil
	}
	compiled, err := s.recompile(record)
	if err != nil {
		return nil, err
	}
	return s.cache.add(record, compiled), nil
}

// recompile compiles the spec of a stored study.
func (s *Studies) recompile(record *storev1.StudyRecord) (*spec.Study, error) {
	var fields invalid.Fields
	compiled := s.compile(&fields, record.GetStudy().GetSpec(), record)
	return compiled, fields.Err()
}

// compile compiles a spec, with what its policy adds. record is as in Policy.Compile. The study is usable
// if there are no violations.
func (s *Studies) compile(fields *invalid.Fields, asked *dparetov1.StudySpec, record *storev1.StudyRecord) *spec.Study {
	isStored := record != nil && record.GetStudy().GetSpec() == asked
	compiled := spec.CompileInto(fields, "study.spec", asked, isStored)
	s.Policy(asked).Compile(fields, spec.WithDefaults(asked), compiled, record)
	return compiled
}

// Holds reports whether cached is still what Get returns for its study, and not an evicted entry that
// a long operation keeps using.
func (s *Studies) Holds(cached *Cached) bool { return s.cache.holds(cached) }

// Grow records that a package derived measurements from a cached study, or dropped some if added is
// negative. The least recently used studies leave the cache while there are too many.
func (s *Studies) Grow(cached *Cached, added int) { s.cache.grow(cached, added) }

// Present returns a study as clients see it now. It modifies record.
func (s *Studies) Present(record *storev1.StudyRecord) *dparetov1.Study {
	study := record.GetStudy()
	study.State, study.StateReason = s.State(record)
	shown := s.Policy(study.GetSpec()).Present(record)
	if shown.GetState() == dparetov1.StudyState_STUDY_STATE_PREPARING {
		shown.Preparation = s.preparing.progress(study.GetUid())
	}
	return shown
}

// IsHidden reports whether a study exists and keeps its trials secret.
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

// ErrHidden returns the error of a call that a hidden study does not answer.
func ErrHidden(name string) error {
	return status.Errorf(codes.FailedPrecondition,
		"%s shows only its best trial (see ReleaseBest): with random_stopping the guarantee depends on everything else staying secret", name)
}
