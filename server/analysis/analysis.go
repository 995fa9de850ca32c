package analysis

import (
	"github.com/dpareto/dpareto/server/engine"
	"github.com/dpareto/dpareto/server/front"
	"github.com/dpareto/dpareto/server/pool"
)

// Options configures Analyses. All fields are required.
type Options struct {
	Fronts *front.Fronts
	Engine *engine.Engine
	Pool   *pool.Pool
}

// Analyses implements AnalysisService. It is safe for concurrent use.
type Analyses struct {
	fronts *front.Fronts
	engine *engine.Engine
	pool   *pool.Pool
}

// New returns the analyses of the studies behind fronts.
func New(o Options) *Analyses {
	return &Analyses{fronts: o.Fronts, engine: o.Engine, pool: o.Pool}
}
