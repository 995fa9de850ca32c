package engine

import (
	"log/slog"
	"time"

	"go.opentelemetry.io/otel/trace"

	storev1 "github.com/dpareto/dpareto/gen/dpareto/store/v1"
	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/history"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/spec"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/restrict"
)

// Options configures an Engine. All fields except Designer are required.
type Options struct {
	Studies    *study.Studies
	Store      *store.Store
	Histories  *history.Histories
	Logger     *slog.Logger
	Now        func() time.Time
	Background *background.Group
	Metrics    *metrics.Metrics
	Pool       *pool.Pool
	Tracer     trace.Tracer
	// Version is the program's version, for provenance.
	Version string
	// Designer makes the designer of a study. Default: the one of its algorithm.
	Designer func(*spec.Study) suggest.Designer
}

// Engine creates trials from suggestions of designers. It is safe for concurrent use.
type Engine struct {
	studies    *study.Studies
	store      *store.Store
	histories  *history.Histories
	logger     *slog.Logger
	now        func() time.Time
	background *background.Group
	metrics    *metrics.Metrics
	pool       *pool.Pool
	tracer     trace.Tracer
	version    string
	designer   func(*spec.Study) suggest.Designer

	phases phases
	queue  queue
	fits   model.Cache // of all studies' models
}

// New returns an engine, and registers it as stopper and observer of the studies.
func New(o Options) *Engine {
	e := &Engine{
		studies: o.Studies, store: o.Store, histories: o.Histories, logger: o.Logger, now: o.Now, background: o.Background,
		metrics: o.Metrics, pool: o.Pool, tracer: o.Tracer, version: o.Version, designer: o.Designer,
		phases: phases{o.Tracer, o.Metrics},
	}
	if e.designer == nil {
		e.designer = e.designerOf
	}
	o.Studies.StopEarly(e)
	o.Studies.Observe(e.observe)
	return e
}

// observe updates the engine's state after a change of a study.
func (e *Engine) observe(events *study.Events) {
	known := e.cacheOf(events.Cached)
	for _, move := range events.Moves {
		if study.IsTerminal(move.To) || move.To == 0 {
			known.stopping.forget(move.Number)
		}
	}
	for _, run := range events.Measured {
		e.judge(events.Cached, events.Study, run)
	}
	if events.Completed {
		e.prepare(events.Cached, events.Study)
	}
}

// Chooser is a policy that influences which configurations run.
type Chooser interface {
	// Designer returns the designer to use in place of d under a condition.
	Designer(record *storev1.StudyRecord, compiled *spec.Study, d suggest.Designer, condition restrict.Condition) suggest.Designer
	// Affords returns how many of the suggestions, from the first on, can be handed out together.
	Affords(record *storev1.StudyRecord, compiled *spec.Study, suggestions []suggest.Suggestion) int
	// Exhausts records that the designer finds no affordable configuration. It returns false if
	// there may be another cause.
	Exhausts(c *study.Change) bool
}

// designerFor returns the designer of a study under a condition, subject to the study's policy.
func (e *Engine) designerFor(from *snapshot, condition restrict.Condition) suggest.Designer {
	d := e.designer(from.compiled)
	if chooser, ok := from.policy.(Chooser); ok {
		return chooser.Designer(from.record, from.compiled, d, condition)
	}
	return within(d, condition)
}

// within returns a designer restricted to a condition. Without a condition it is d itself.
func within(d suggest.Designer, condition restrict.Condition) suggest.Designer {
	if len(condition.AtMost)+len(condition.Fixed) == 0 {
		return d
	}
	return restrict.Within(d, condition)
}

// exhausts records that the designer found nothing, and reports whether that ends the study.
func exhausts(c *study.Change) bool {
	chooser, ok := c.Policy.(Chooser)
	return ok && chooser.Exhausts(c)
}
