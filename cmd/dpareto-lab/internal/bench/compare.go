package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/designers/engine"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/space"
)

// learnsFromCheckpoints are the designers that are shown every epoch of a run, as by the server. Others
// are shown its end.
var learnsFromCheckpoints = []string{engine.Name, engine.NameEHVI, engine.NameEHVIExact}

// Ends of the names of methods that show a designer of these something else: the ends of runs only or
// that a run costs its epochs, and then the parameters themselves in place of features of them, or these without
// what public runs say.
const (
	suffixFinal  = "_final"
	suffixEpochs = "_epochs"
	suffixRaw    = "_raw"
	suffixAlone  = "_alone"
)

// method is how a designer takes part in a comparison.
type method struct {
	designer string
	final    bool // the ends of runs are shown, not every epoch
	epochs   bool // a run costs its epochs
	raw      bool // without features
	alone    bool // without what public runs say
}

// parseMethod returns the method of a name, or false if there is none.
func parseMethod(name string) (method, bool) {
	if _, ok := designers.ByName(name, designers.Options{}); ok {
		return method{designer: name, final: !slices.Contains(learnsFromCheckpoints, name)}, true
	}
	m := method{designer: name}
	for _, s := range []struct {
		suffix string
		set    *bool
	}{{suffixAlone, &m.alone}, {suffixRaw, &m.raw}, {suffixEpochs, &m.epochs}, {suffixFinal, &m.final}} {
		m.designer, *s.set = strings.CutSuffix(m.designer, s.suffix)
	}
	return m, slices.Contains(learnsFromCheckpoints, m.designer) && (!m.final || !m.epochs) && (!m.raw || !m.alone)
}

// CompareOptions say how designers are compared on a surface.
type CompareOptions struct {
	// Methods are names of [designers.Names], or of those that learn from checkpoints with the suffixes
	// "_final", which shows them the ends of runs only, or "_epochs", which tells them that a run costs
	// its epochs, and then "_raw", which shows their models the parameters in place of features, or "_alone", which
	// keeps what public runs say from them.
	Methods []string
	// Tools are other programs that take part, after the Methods. They are shown the ends of runs.
	Tools []Tool
	// Seeds is the number of seeds: 1, 2, ..., Seeds.
	Seeds int
	// Budget is the number of runs of a study.
	Budget int
	// Initial is the number of initial points that all methods share. 0 means that each has its own.
	Initial int
}

// Validate returns an error for options that are invalid.
func (o *CompareOptions) Validate() error {
	for _, name := range o.Methods {
		if _, ok := parseMethod(name); !ok {
			return fmt.Errorf("--designer must be some of %s, or %s with %s or %s, and %s or %s, is %q", strings.Join(designers.Names(), ", "),
				strings.Join(learnsFromCheckpoints, ", "), suffixFinal, suffixEpochs, suffixRaw, suffixAlone, name)
		}
	}
	if name := repeated(o.names()); name != "" {
		return fmt.Errorf("--designer and --tool must not name %s twice", name)
	}
	switch {
	case o.Seeds < 1:
		return fmt.Errorf("--seeds must be at least 1, is %d", o.Seeds)
	case o.Budget < 1:
		return fmt.Errorf("--budget must be at least 1, is %d", o.Budget)
	case o.Initial < 0 || o.Initial > o.Budget:
		return fmt.Errorf("--initial must be 0 to %d, the budget, is %d", o.Budget, o.Initial)
	}
	return nil
}

// names returns the names of all methods.
func (o *CompareOptions) names() []string {
	names := slices.Clone(o.Methods)
	for i := range o.Tools {
		names = append(names, o.Tools[i].Name)
	}
	return names
}

// Compare runs the studies that are not among the surface's own records, or have fewer runs there, and
// gives each to keep, seed by seed. It fails if an option is invalid, a designer fails, or keep does.
func Compare(ctx context.Context, s *Surface, o CompareOptions, records []*Record, keep func(*Record) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for seed := uint64(1); seed <= uint64(o.Seeds); seed++ {
		for _, name := range o.names() {
			if slices.ContainsFunc(records, func(r *Record) bool {
				return r.Method == name && r.Seed == seed && len(r.Epochs) >= o.Budget
			}) {
				continue
			}
			r, err := s.study(ctx, o, name, seed)
			if err == nil {
				err = keep(r)
			}
			if err != nil {
				return fmt.Errorf("designer %s, seed %d: %w", name, seed, err)
			}
		}
	}
	return nil
}

// study runs one study.
func (s *Surface) study(ctx context.Context, o CompareOptions, name string, seed uint64) (*Record, error) {
	m := method{designer: name, final: true}
	if toolByName(o.Tools, name) == nil {
		var ok bool
		if m, ok = parseMethod(name); !ok {
			return nil, errors.New("is unknown")
		}
	}
	c := newCourse(s, seed)
	shown := s.seen(!m.final)
	if m.epochs {
		shown.Cost = suggest.CostCheckpoint
	}
	switch {
	case m.raw:
		shown.Features = nil
	case m.alone:
		features := *shown.Features
		features.Mean = nil
		shown.Features = &features
	}
	work := &study{
		problem: &Problem{
			Problem: shown, Name: s.model.Surface.Name, Initial: quasirandom.New(),
			Start: func() Evaluator {
				return func(_ context.Context, q space.Point, _ uint64) ([]suggest.Evaluation, error) {
					evaluations := c.run(q)
					if m.final {
						evaluations = evaluations[len(evaluations)-1:]
					}
					return evaluations, nil
				}
			},
		},
		options:  Options{Tools: o.Tools, Budget: o.Budget, Initial: o.Initial, OwnInitial: o.Initial == 0, Batch: 1},
		designer: m.designer, seed: seed, done: func() {},
	}
	if err := work.run(ctx); err != nil {
		return nil, err
	}
	if c.runs() == 0 {
		return nil, errors.New("suggested nothing")
	}
	r, err := c.record(ctx, name, o.Initial)
	if err != nil {
		return nil, err
	}
	if last := work.after[len(work.after)-1]; last.suggestions > 0 {
		r.Seconds = last.processor.Seconds() / float64(last.suggestions)
	}
	r.StandIns = work.standIns
	return r, nil
}
