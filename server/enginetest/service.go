package enginetest

import (
	"context"
	"log/slog"
	"path/filepath"
	"testing"

	"go.opentelemetry.io/otel/trace/noop"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/clock"
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/list"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/store/bolt"
	"github.com/dpareto/dpareto/server/store/fault"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/random"
)

// Options configures a Service. All fields are optional.
type Options struct {
	// Designer makes the designer of a study. Default: the one of its algorithm.
	Designer func(*spec.Study) suggest.Designer
	// Around returns the store that the service works on, around the real one. See Hooks.
	Around func(store.KV) store.KV
	// Clock tells the time. Default: clock.System.
	Clock clock.Clock
	// Policies tells which policy a study has. Default: all studies are ordinary.
	Policies func(*study.Studies, *dparetov1.StudySpec) study.Policy
	// Ledgers checks ledgers. Default: the test fails when a study comes to them.
	Ledgers study.Ledgers
	// Damages says that the test damages the store, which is not checked at the end.
	Damages bool
}

// Service is an engine with its studies. Its methods are the calls of StudyService.
type Service struct {
	*study.Studies
	*study.Trials
	*list.Lists

	Engine     *engine.Engine
	Histories  *history.Histories
	Store      *store.Store
	Background *background.Group
	Metrics    *metrics.Metrics
	Pool       *pool.Pool // of one slot

	options Options
}

// New returns a service over an empty store, which is checked when the test ends. The store calls
// the function of every Update twice.
func New(t testing.TB, o Options) *Service {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "store.db"))
	require.NoError(t, err)
	var kv store.KV = fault.Twice(db)
	if o.Around != nil {
		kv = o.Around(kv)
	}
	records, err := store.New(t.Context(), kv)
	require.NoError(t, err)
	s := newService(t, records, o)
	t.Cleanup(func() {
		s.Close()
		if !o.Damages {
			for _, fault := range records.Check(context.Background()) {
				t.Error(fault)
			}
		}
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// With returns a service all of whose studies have one designer.
func With(t testing.TB, d suggest.Designer) *Service {
	t.Helper()
	return New(t, Options{Designer: Always(d)})
}

// Always returns the option of one designer for all studies.
func Always(d suggest.Designer) func(*spec.Study) suggest.Designer {
	return func(*spec.Study) suggest.Designer { return d }
}

// newService connects the parts over a store.
func newService(t testing.TB, records *store.Store, o Options) *Service {
	if o.Clock == nil {
		o.Clock = clock.System()
	}
	if o.Policies == nil {
		o.Policies = func(*study.Studies, *dparetov1.StudySpec) study.Policy { return nil }
	}
	if o.Ledgers == nil {
		o.Ledgers = noLedgers{t}
	}
	logger := slog.New(slog.DiscardHandler)
	s := &Service{Store: records, Background: background.New(logger), Metrics: metrics.New("test"), options: o}
	s.Pool = pool.New(1, s.Metrics)
	s.Studies = study.New(study.Options{
		Store: records, Logger: logger, Clock: o.Clock, Background: s.Background, Pool: s.Pool, Policies: o.Policies, Ledgers: o.Ledgers,
	})
	s.Trials = study.NewTrials(s.Studies)
	s.Lists = list.New(s.Studies, records, s.Pool)
	s.Histories = history.New(s.Studies, records)
	s.Engine = engine.New(engine.Options{
		Studies: s.Studies, Store: records, Histories: s.Histories, Logger: logger, Now: clock.Steady(o.Clock), Background: s.Background,
		Metrics: s.Metrics, Pool: s.Pool, Tracer: noop.NewTracerProvider().Tracer(""), Version: "test", Designer: o.Designer,
	})
	return s
}

// Fresh returns another service over the same store, which has read nothing yet.
func (s *Service) Fresh(t testing.TB) *Service {
	t.Helper()
	fresh := newService(t, s.Store, s.options)
	t.Cleanup(fresh.Close)
	return fresh
}

// Close ends the work in the background and waits for it.
func (s *Service) Close() { s.Background.Close() }

// SuggestTrials implements StudyService.
func (s *Service) SuggestTrials(ctx context.Context, req *dparetov1.SuggestTrialsRequest) (*dparetov1.SuggestTrialsResponse, error) {
	return s.Engine.SuggestTrials(ctx, req)
}

// noLedgers fails a test when a study comes to its ledgers.
type noLedgers struct{ t testing.TB }

// CheckCaller implements study.Ledgers.
func (l noLedgers) CheckCaller(_ context.Context, before, after *dparetov1.StudySpec) error {
	l.t.Errorf("the ledgers of an ordinary study are checked for its caller: %v, before %v", after, before)
	return nil
}

// Check implements study.Ledgers.
func (l noLedgers) Check(_ *store.ReadTx, spec *dparetov1.StudySpec) error {
	l.t.Errorf("the ledgers of an ordinary study are checked: %v", spec)
	return nil
}

// Designer is a designer that does what a test says.
type Designer func(context.Context, *suggest.Problem, *suggest.History, suggest.Request) ([]suggest.Suggestion, error)

// Name implements suggest.Designer.
func (Designer) Name() string { return "fake" }

// Version implements suggest.Designer.
func (Designer) Version() string { return "1" }

// Suggest implements suggest.Designer.
func (d Designer) Suggest(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
	return d(ctx, p, h, r)
}

// Random is a designer that draws at random but counts as any other: it does not draw within
// transactions, as the engine has random.New do.
func Random() Designer { return random.New().Suggest }

// Learning is Random, and shows what it learns from.
func Learning(history **suggest.History) Designer {
	return func(ctx context.Context, p *suggest.Problem, h *suggest.History, r suggest.Request) ([]suggest.Suggestion, error) {
		*history = h
		return random.New().Suggest(ctx, p, h, r)
	}
}

// Hooks are functions that a store calls before it views or updates, where they are set.
type Hooks struct {
	View   func(context.Context)
	Update func(context.Context) error // an error fails the Update
}

// Around returns a store with the hooks around another.
func (h Hooks) Around(kv store.KV) store.KV { return hooked{kv, h} }

type hooked struct {
	store.KV

	hooks Hooks
}

// View implements store.KV.
func (h hooked) View(ctx context.Context, fn func(store.Reader) error) error {
	if h.hooks.View != nil {
		h.hooks.View(ctx)
	}
	return h.KV.View(ctx, fn)
}

// Update implements store.KV.
func (h hooked) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	if h.hooks.Update != nil {
		if err := h.hooks.Update(ctx); err != nil {
			return err
		}
	}
	return h.KV.Update(ctx, scopes, fn)
}
