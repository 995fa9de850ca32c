package designers

import (
	"maps"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/dpareto"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/grid"
	"github.com/dpareto/dpareto/suggest/designers/nsga2"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/designers/random"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/surrogate"
)

// registry makes the designers by name. A new designer is one line here.
var registry = map[string]func(Options) suggest.Designer{
	random.Name:          func(Options) suggest.Designer { return random.New() },
	grid.Name:            func(Options) suggest.Designer { return grid.New() },
	quasirandom.Name:     func(Options) suggest.Designer { return quasirandom.New() },
	nsga2.Name:           func(o Options) suggest.Designer { return nsga2.New(nsga2.Options{InitialPoints: o.InitialPoints}) },
	dpareto.Name:         func(o Options) suggest.Designer { return dpareto.New(o.dpareto()) },
	engine.Name:          func(o Options) suggest.Designer { return engine.New(o.engine()) },
	engine.NameEHVI:      func(o Options) suggest.Designer { return engine.NewEHVI(o.engine()) },
	engine.NameEHVIExact: func(o Options) suggest.Designer { return engine.NewEHVIExact(o.engine()) },
}

// Options are options that several designers have. Each takes those that it knows and
// ignores the others.
type Options struct {
	// InitialPoints is the number of configurations before the first model, or before
	// the first offspring. 0 means the designer's default.
	InitialPoints int

	// Published is [dpareto.Options].Published.
	Published bool

	// Cache is for the fits of models, see [model.Options]. Default: a cache that belongs
	// to the designer.
	Cache *model.Cache

	// Workers do what a suggestion can do in parallel. The zero value uses GOMAXPROCS
	// goroutines.
	Workers surrogate.Workers
}

func (o Options) engine() engine.Options {
	return engine.Options{InitialPoints: o.InitialPoints, Cache: o.Cache, Workers: o.Workers}
}

func (o Options) dpareto() dpareto.Options {
	return dpareto.Options{InitialPoints: o.InitialPoints, Published: o.Published, Cache: o.Cache, Workers: o.Workers}
}

// ByName returns the designer of a name, see [suggest.Designer].Name, or false if there is
// none.
func ByName(name string, o Options) (suggest.Designer, bool) {
	newDesigner, ok := registry[name]
	if !ok {
		return nil, false
	}
	return newDesigner(o), true
}

// Names returns the names that [ByName] knows, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }
