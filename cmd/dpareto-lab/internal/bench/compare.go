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

// suffixFinal is the end of a method's name where a designer is shown the ends of runs only though it
// learns from checkpoints.
const suffixFinal = "_final"

// CompareOptions say how designers are compared on a surface.
type CompareOptions struct {
	// Methods are names of [designers.Names], or of those that learn from checkpoints with the suffix
	// "_final", which shows them the ends of runs only.
	Methods []string
	// Seeds is the number of seeds: 1, 2, ..., Seeds.
	Seeds int
	// Budget is the number of runs of a study.
	Budget int
	// Initial is the number of initial points that all methods share. 0 means that each has its own.
	Initial int
	// EpochCost tells designers that a run costs its epochs.
	EpochCost bool
}

// Validate returns an error for options that are invalid.
func (o *CompareOptions) Validate() error {
	for _, name := range o.Methods {
		base, final := strings.CutSuffix(name, suffixFinal)
		if _, ok := designers.ByName(base, designers.Options{}); !ok || final && !slices.Contains(learnsFromCheckpoints, base) {
			return fmt.Errorf("--designer must be some of %s, or %s with %s, is %q",
				strings.Join(designers.Names(), ", "), strings.Join(learnsFromCheckpoints, ", "), suffixFinal, name)
		}
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

// Compare runs the studies that are not among the records and gives each to keep, seed by seed. It
// fails if an option is invalid, a designer fails, or keep does.
func Compare(ctx context.Context, s *Surface, o CompareOptions, records []*Record, keep func(*Record) error) error {
	if err := o.Validate(); err != nil {
		return err
	}
	for seed := uint64(1); seed <= uint64(o.Seeds); seed++ {
		for _, name := range o.Methods {
			wanted := &Record{Surface: s.model.Surface.Name, Variant: s.Variant, Method: name, Seed: seed}
			if slices.ContainsFunc(records, wanted.same) {
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
	c := newCourse(s, seed)
	designer := strings.TrimSuffix(name, suffixFinal)
	checkpoints := slices.Contains(learnsFromCheckpoints, name)
	shown := s.seen(checkpoints)
	if o.EpochCost && checkpoints {
		shown.Cost = suggest.CostCheckpoint
	}
	work := &study{
		problem: &Problem{
			Problem: shown, Name: s.model.Surface.Name, Initial: quasirandom.New(),
			Start: func() Evaluator {
				return func(_ context.Context, q space.Point, _ uint64) ([]suggest.Evaluation, error) {
					evaluations := c.run(q)
					if !checkpoints {
						evaluations = evaluations[len(evaluations)-1:]
					}
					return evaluations, nil
				}
			},
		},
		options:  Options{Budget: o.Budget, Initial: o.Initial, OwnInitial: o.Initial == 0, Batch: 1},
		designer: designer, seed: seed, done: func() {},
	}
	if err := work.run(ctx); err != nil {
		return nil, err
	}
	if c.runs() == 0 {
		return nil, errors.New("suggested nothing")
	}
	r, err := c.record(ctx, name)
	if err != nil {
		return nil, err
	}
	if last := work.after[len(work.after)-1]; last.suggestions > 0 {
		r.Seconds = last.processor.Seconds() / float64(last.suggestions)
	}
	r.StandIns = work.standIns
	return r, nil
}
