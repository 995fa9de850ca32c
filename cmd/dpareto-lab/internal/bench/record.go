package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/space"
)

// Record is the outcome of one study on a surface, one line of a file of results.
type Record struct {
	Surface string `json:"surface"`
	// Table is the SHA-256 of the table behind the surface.
	Table string `json:"table"`
	Variant

	Method string `json:"method"`
	Seed   uint64 `json:"seed"`
	// Initial is the number of shared points at the beginning, 0 if the method chose its own.
	Initial int `json:"initial"`
	// Epochs are the epochs trained in all after 1, 2, ... runs.
	Epochs []float64 `json:"epochs"`
	// Reported and Observed are hypervolumes after 1, 2, ... runs of exact values: of the states on the
	// front that the lab's model of all measurements reports, and on the front of the measurements.
	Reported []float64 `json:"reported"`
	Observed []float64 `json:"observed"`
	// Seconds are those that a suggestion took, 0 if unknown: of processor time of the process.
	Seconds float64 `json:"seconds"`
	// StandIns counts suggestions that another designer had to make.
	StandIns int `json:"stand_ins,omitempty"`
}

// record measures the study of a method. All measurements count, also of the epochs that the method did
// not ask for.
func (c *course) record(ctx context.Context, method string, initial int) (*Record, error) {
	s := c.surface
	r := &Record{
		Surface: s.model.Surface.Name, Table: s.digest, Variant: s.Variant, Method: method, Seed: c.seed, Initial: initial,
		Epochs: c.trained[1:], Reported: make([]float64, c.runs()), Observed: make([]float64, c.runs()),
	}
	p := *s.problem
	p.Objectives = append([]suggest.Objective(nil), p.Objectives...)
	known := p.Objectives[0].Known
	p.Objectives[0].Known = func(q space.Point) float64 {
		if v, ok := c.epsilons[key(q)]; ok {
			return v // an accountant takes longer than all else here
		}
		return known(q)
	}
	fits := new(model.Cache)
	for n := 1; n <= c.runs(); n++ {
		evaluations := c.history.Evaluations[:c.ends[n]]
		r.Observed[n-1] = c.hypervolume(observedFront(&p, evaluations))
		if s.Noiseless {
			r.Reported[n-1] = r.Observed[n-1]
			continue
		}
		front, err := reportedFront(ctx, &p, evaluations, c.seed, fits)
		if err != nil {
			return nil, fmt.Errorf("front after %d runs: %w", n, err)
		}
		r.Reported[n-1] = c.hypervolume(front)
	}
	return r, nil
}

// hypervolume returns the hypervolume of states by their exact values.
func (c *course) hypervolume(states []space.Point) float64 {
	exact := make([][]float64, len(states))
	for i, q := range states {
		exact[i] = []float64{c.epsilons[key(q)], c.surface.model.Error(q)}
	}
	return pareto.Hypervolume(exact, c.surface.problem.ReferenceCosts())
}

// observedFront returns the states of which no other has measured better.
func observedFront(p *suggest.Problem, evaluations []suggest.Evaluation) []space.Point {
	costs := make([][]float64, len(evaluations))
	for i := range costs {
		costs[i] = evaluations[i].Values
	}
	reference := p.ReferenceCosts()
	var front []space.Point
	for _, i := range pareto.NonDominated(costs) {
		if costs[i][0] < reference[0] && costs[i][1] < reference[1] {
			front = append(front, evaluations[i].Point)
		}
	}
	return front
}

// reportedFront returns the states on the front of the posterior medians that are better than the
// reference, as a study reports them.
func reportedFront(ctx context.Context, p *suggest.Problem, evaluations []suggest.Evaluation, seed uint64, fits *model.Cache) ([]space.Point, error) {
	m, err := model.Fit(ctx, p, &suggest.History{Evaluations: evaluations}, model.Options{Seed: seed, Cache: fits, ForReading: true})
	if err != nil {
		return nil, err
	}
	reference := p.ReferenceCosts()
	var front []space.Point
	for _, e := range m.Estimates() {
		if e.OnFront && e.Predictions[0].Median < reference[0] && e.Predictions[1].Median < reference[1] {
			front = append(front, e.Point)
		}
	}
	return front, nil
}

// ReadRecords returns the records of a file of results, none if there is no such file. An error about a record names
// the file and the line.
func ReadRecords(path string) ([]*Record, error) {
	all, err := lines.Read[Record](path)
	if err != nil {
		return nil, err
	}
	var records []*Record
	for i := range all {
		if err := all[i].validate(); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, i+1, err)
		}
		records = append(records, &all[i])
	}
	return records, nil
}

// Own returns the records of the surface's variant with a number of shared points: of a method's study
// that is there repeatedly the longest. It returns an error if one is of another table.
func (s *Surface) Own(records []*Record, initial int) ([]*Record, error) {
	var own []*Record
	for _, r := range records {
		if r.Surface != s.model.Surface.Name || r.Variant != s.Variant || r.Initial != initial {
			continue
		}
		if r.Table != s.digest {
			return nil, fmt.Errorf("%s, seed %d: the record is of another table of %s, %s", r.Method, r.Seed, r.Surface, r.Table)
		}
		i := slices.IndexFunc(own, func(o *Record) bool { return o.Method == r.Method && o.Seed == r.Seed })
		switch {
		case i < 0:
			own = append(own, r)
		case len(own[i].Epochs) < len(r.Epochs):
			own[i] = r
		}
	}
	return own, nil
}

// validate returns an error for a record that no study gives.
func (r *Record) validate() error {
	switch n := len(r.Epochs); {
	case r.Surface == "" || r.Method == "":
		return errors.New("surface and method must be given")
	case n == 0 || len(r.Reported) != n || len(r.Observed) != n:
		return fmt.Errorf("epochs, reported and observed must have one value for each run, have %d, %d and %d", n, len(r.Reported), len(r.Observed))
	case math.IsNaN(r.Seconds) || r.Seconds < 0:
		return fmt.Errorf("seconds must be at least 0, is %g", r.Seconds)
	}
	return nil
}
