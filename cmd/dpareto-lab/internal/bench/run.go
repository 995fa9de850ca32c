package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers"
	"github.com/dpareto/dpareto/suggest/model"
)

// Options say how designers are compared. Fields are checked by [Run].
type Options struct {
	// Designers are names of [designers.Names], or of Tools.
	Designers []string
	// Tools are other programs that take part.
	Tools []Tool
	// Seeds is the number of seeds: 1, 2, ..., Seeds.
	Seeds int
	// Budget is the number of runs of a study, with the initial points.
	Budget int
	// At are smaller budgets at which fronts are measured as well.
	At []int
	// Initial is the number of initial points. 0 means the problem's own.
	Initial int
	// OwnInitial lets every designer draw its own initial points, as in a study, instead of
	// sharing them.
	OwnInitial bool
	// Batch is the number of suggestions per request. 0 means 1.
	Batch int
	// UnknownNoise leaves out the standard errors of measurements, so that designers have to
	// learn the noise, also where there is none.
	UnknownNoise bool
	// InferReference keeps the references of measured objectives from designers, which infer them
	// from the results. Fronts are measured within the references of the problem. Not with Tools.
	InferReference bool
	// Remeasure is how often every reported configuration is run again. 0 means never.
	Remeasure int
	// Target is the hypervolume to be reached, 0 for none.
	Target float64
	// Parallel is the number of studies that run at the same time. More than one blurs
	// processor times, which are measured for the whole process. 0 means 1.
	Parallel int
	// Progress, when not nil, is called after every run with the number of all runs so
	// far, but for repeated ones, from one goroutine.
	Progress func(runs int)
}

// Validate returns an error for options that are invalid for the problem.
func (o *Options) Validate(p *Problem) error {
	for _, name := range o.Designers {
		if _, ok := designers.ByName(name, designers.Options{}); !ok && toolByName(o.Tools, name) == nil {
			return fmt.Errorf("--designer must be some of %s, is %q", strings.Join(designers.Names(), ", "), name)
		}
	}
	if name := repeated(o.Designers); name != "" {
		return fmt.Errorf("--designer and --tool must not name %s twice", name)
	}
	switch {
	case len(o.Designers) == 0:
		return errors.New("--designer or --tool is required")
	case o.Seeds < 1:
		return fmt.Errorf("--seeds must be at least 1, is %d", o.Seeds)
	case o.Budget < 1:
		return fmt.Errorf("--budget must be at least 1, is %d", o.Budget)
	case o.Initial < 0 || o.Batch < 0 || o.Remeasure < 0 || o.Parallel < 0 || o.Target < 0:
		return errors.New("an option is negative")
	case o.InferReference && len(o.Tools) > 0:
		return errors.New("--infer-reference is not for tools")
	case o.Remeasure > 0 && p.Exact:
		return fmt.Errorf("problem %s has no noise: there is nothing to measure again", p.Name)
	}
	for _, at := range o.At {
		if at < 1 || at > o.Budget {
			return fmt.Errorf("--at must be 1 to %d, the budget, is %d", o.Budget, at)
		}
	}
	return nil
}

// Run runs all designers under all seeds. It fails if an option is invalid, a run or a
// designer fails, or ctx is done.
func Run(ctx context.Context, p *Problem, o Options) (*Result, error) {
	if err := o.Validate(p); err != nil {
		return nil, err
	}
	if o.Initial == 0 {
		o.Initial = p.InitialPoints
	}
	o.Batch, o.Parallel = max(o.Batch, 1), max(o.Parallel, 1)
	result := newResult(p, o)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.Parallel)
	runs := make(chan struct{})
	counted := make(chan struct{})
	go func() {
		defer close(counted)
		n := 0
		for range runs {
			if n++; o.Progress != nil {
				o.Progress(n)
			}
		}
	}()
	// Seed by seed, so that an early look at the progress compares designers.
	for seed := range o.Seeds {
		for d, name := range o.Designers {
			group.Go(func() error {
				s := &study{problem: p, options: o, designer: name, seed: uint64(seed + 1), done: func() { runs <- struct{}{} }}
				if err := s.run(ctx); err != nil {
					return fmt.Errorf("designer %s, seed %d: %w", name, s.seed, err)
				}
				scores, err := s.scores(ctx)
				if err != nil {
					return fmt.Errorf("designer %s, seed %d: %w", name, s.seed, err)
				}
				result.designers[d].seeds[seed] = scores
				return nil
			})
		}
	}
	err := group.Wait()
	close(runs)
	<-counted
	if err != nil {
		return nil, err
	}
	return result, nil
}

// study is one designer at work under one seed.
type study struct {
	problem  *Problem
	options  Options
	designer string
	seed     uint64
	done     func() // called after every run

	fits    model.Cache
	history suggest.History
	after   []state // after 0, 1, 2, ... runs
	// standIns counts suggestions that another designer had to make, for the reason.
	standIns int
	reason   string
}

// state is the progress of a study.
type state struct {
	evaluations int     // in the history
	epochs      float64 // trained so far
	suggestions int     // by the designer under test
	repetitions int     // suggestions to run a configuration again
	processor   time.Duration
}

// The independent random streams of a study.
const (
	streamRuns      = iota + 1 // the noise of runs
	streamRemeasure            // the noise of repeated runs
)

// derive returns the seed of a stream's n-th use, by the finaliser of SplitMix64 (Steele,
// Lea, Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014).
func derive(seed uint64, stream, n int) uint64 {
	for _, v := range []int{stream, n} {
		seed += 0x9e3779b97f4a7c15 + uint64(v)
		seed = (seed ^ seed>>30) * 0xbf58476d1ce4e5b9
		seed = (seed ^ seed>>27) * 0x94d049bb133111eb
		seed ^= seed >> 31
	}
	return seed
}

// run spends the budget, or ends early if the designer has no more suggestions.
func (s *study) run(ctx context.Context) error {
	designer, stop, spent, err := s.start(ctx)
	if err == nil {
		err = s.spend(ctx, designer, spent)
		stop(err == nil)
	}
	if ctx.Err() != nil {
		return ctx.Err() // and not that a tool was killed
	}
	return err
}

// spend has a designer spend the budget. spent returns the processor time that the designer has taken so far.
func (s *study) spend(ctx context.Context, designer suggest.Designer, spent func() time.Duration) error {
	evaluate := s.problem.Start()
	s.after = []state{{}}
	for runs := 0; runs < s.options.Budget; {
		asked, initial := designer, false
		count := min(s.options.Batch, s.options.Budget-runs)
		if left := min(s.options.Initial, s.options.Budget) - runs; left > 0 && !s.options.OwnInitial {
			asked, initial, count = s.problem.Initial, true, left
		}
		before := spent()
		suggestions, err := asked.Suggest(ctx, s.asked(), &s.history,
			suggest.Request{Count: count, Seed: s.seed, Number: int64(runs + 1)})
		if err != nil && !errors.Is(err, suggest.ErrExhausted) {
			return err
		}
		if len(suggestions) == 0 {
			return nil
		}
		share := (spent() - before) / time.Duration(len(suggestions))
		for _, suggestion := range suggestions {
			runs++
			evaluations, err := evaluate(ctx, suggestion.Point, derive(s.seed, streamRuns, runs))
			if err != nil {
				return fmt.Errorf("run %d: %w", runs, err)
			}
			s.add(suggestion, evaluations, initial, share)
			s.done()
		}
	}
	return ctx.Err()
}

// asked returns the problem as designers see it.
func (s *study) asked() *suggest.Problem {
	if !s.options.InferReference {
		return s.problem.Problem
	}
	p := *s.problem.Problem
	p.Objectives = slices.Clone(p.Objectives)
	for j := range p.Objectives {
		if o := &p.Objectives[j]; o.Known == nil {
			o.InferReference, o.Reference = true, suggest.UnknownReference(o.Goal, o.Transform)
		}
	}
	return p.Inferred(&s.history)
}

// add records a run.
func (s *study) add(suggestion suggest.Suggestion, evaluations []suggest.Evaluation, initial bool, processor time.Duration) {
	number := len(s.after)
	if len(evaluations) == 0 {
		s.history.Infeasible = append(s.history.Infeasible, suggestion.Point)
	}
	for _, e := range evaluations {
		if s.problem.Checkpoint != "" {
			e.Run = int64(number)
		}
		if s.options.UnknownNoise {
			e.StdErrors = nil
		}
		s.history.Evaluations = append(s.history.Evaluations, e)
	}
	next := s.after[number-1]
	next.evaluations = len(s.history.Evaluations)
	if s.problem.Epochs != nil {
		next.epochs += s.problem.Epochs(suggestion.Point)
	}
	if !initial {
		next.suggestions++
		if suggestion.Replicate {
			next.repetitions++
		}
		next.processor += processor
	}
	s.after = append(s.after, next)
	if suggestion.FallbackReason != "" {
		s.standIns++
		s.reason = suggestion.FallbackReason
	}
}
