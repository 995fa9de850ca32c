package examples

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// Defaults of [Experiment], as in the paper.
const (
	DefaultRuns = 50
	DefaultSide = 55
)

// Of [Experiment] with Quick.
const (
	quickRuns = 5
	quickSide = 13
)

// Experiment are some of Figures 1 to 4. It implements reproduce.Experiment. Figures 1 and 3 share
// their trainings, and so do Figures 2 and 4 their simulations, so that two figures of one Experiment cost
// little more than one.
type Experiment struct {
	// Figures are numbers from 1 to 4: 1 and 3 are of the private logistic regression on Adult, 2
	// and 4 of the sparse vector technique, which needs no data.
	Figures []int

	Runs int // behind each error, at least 2
	Side int // values of each parameter of the grid, at least 2
	Seed uint64

	// Quick takes 5 runs and 13 values of each parameter, whatever Runs and Side are.
	Quick bool

	DataDir   string
	Generated bool // made-up examples in the shape of Adult, for tests
}

// Name implements reproduce.Experiment.
func (*Experiment) Name() string { return "illustrative examples" }

// Validate implements reproduce.Experiment.
func (e *Experiment) Validate() error {
	switch {
	case len(e.Figures) == 0:
		return errors.New("no figure is given, want some of 1 to 4")
	case slices.Min(e.Figures) < 1 || slices.Max(e.Figures) > 4:
		return fmt.Errorf("figures must be from 1 to 4, are %v", e.Figures)
	case e.Runs < 2 && !e.Quick:
		return fmt.Errorf("--runs must be at least 2, is %d", e.Runs)
	case e.Side < 2 && !e.Quick:
		return fmt.Errorf("--side must be at least 2, is %d", e.Side)
	default:
		return nil
	}
}

// NeedsData reports whether some figure needs Adult.
func (e *Experiment) NeedsData() bool {
	return slices.Contains(e.Figures, 1) || slices.Contains(e.Figures, 3)
}

// progress counts the rows of the grids that are measured.
type progress struct {
	done, total int
	watch       reproduce.Watch
}

func (p *progress) step() {
	p.done++
	p.watch.Report(p.done, p.total)
}

// Run implements reproduce.Experiment.
func (e *Experiment) Run(ctx context.Context, watch reproduce.Watch) (*reproduce.Result, error) {
	settings := *e
	if e.Quick {
		settings.Runs, settings.Side = quickRuns, quickSide
	}
	e = &settings
	result := &reproduce.Result{Report: output.Report{
		Title: "The illustrative examples of Avent et al. (2020)",
		Notes: []string{
			"ε is an upper bound and covers one run of a configuration, not the search for it. In the paper the utilities are measured on the test records, which protects none of them.",
			fmt.Sprintf("Errors of Figures 1 and 3, and the errors that the search of Figure 4 sees, are means of %d runs; errors of Figure 2 are exact. Grids have %d values of each real parameter; seed %d. The paper has 50 runs and 55 values.", e.Runs, e.Side, e.Seed),
		},
	}}
	sparse := slices.Contains(e.Figures, 2) || slices.Contains(e.Figures, 4)
	p := &progress{watch: watch}
	if e.NeedsData() {
		p.total += e.Side + len(publishedErrors)
	}
	if sparse {
		p.total += maxCutoff
	}
	if e.NeedsData() {
		l, err := e.logistic(ctx, p)
		line, lacks := reproduce.Missing("the example of Figures 1 and 3", err)
		switch {
		case lacks:
			result.Missing = append(result.Missing, line)
		case err != nil:
			return nil, err
		default:
			if err := e.add(ctx, result, watch, l, 1, 3); err != nil {
				return nil, err
			}
		}
	}
	if sparse {
		l, err := e.sparseVector(ctx, p)
		if err != nil {
			return nil, err
		}
		if err := e.add(ctx, result, watch, l, 2, 4); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// add adds what is asked for of the two figures of an example: the oracles, and the search.
func (e *Experiment) add(ctx context.Context, result *reproduce.Result, watch reproduce.Watch, l *landscape, oracles, search int) error {
	if slices.Contains(e.Figures, oracles) {
		if err := watch.Show(l.addOracles(result, oracles)); err != nil {
			return err
		}
	}
	if !slices.Contains(e.Figures, search) {
		return nil
	}
	s, err := l.search(ctx, e.Seed)
	if err != nil {
		return err
	}
	return watch.Show(l.addSearch(result, s, search))
}
