package honesty

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/pareto"
	"github.com/dpareto/dpareto/suggest/query"
	"github.com/dpareto/dpareto/suggest/space"
)

const (
	runsPerStudy = 15
	heldOut      = 8   // configurations that a study has not run, at which its intervals are checked
	confidence   = 0.9 // of recommendations
	tolerance    = 0.1 // of the claimed hypervolume, relative
)

// Diverged are the numbers of runs of a study that diverge.
var Diverged = []int{0, 1, 3}

// Record is what one study reported, and whether it held: a line of a file of results.
type Record struct {
	Surface  string `json:"surface"`
	Diverged int    `json:"diverged"`
	Seed     uint64 `json:"seed"`
	// Claimed is the hypervolume of the reported front. Remeasured is the hypervolume of the means of fresh runs
	// of the same states, and Observed the hypervolume of all measurements.
	Claimed    float64 `json:"claimed"`
	Remeasured float64 `json:"remeasured"`
	Observed   float64 `json:"observed"`
	// Of the intervals at states on the front and at states that were held out, how many hold the mean of fresh runs.
	Front   share `json:"front"`
	HeldOut share `json:"held_out"`
	// Recommended are the recommendations that held, of those given; Refused had no answer.
	Recommended share `json:"recommended"`
	Refused     int   `json:"refused"`
	// Contradicted is set where the report shows the measurements as they are.
	Contradicted bool `json:"contradicted"`
	// Impossible counts values that no run can have: below 0 where the metric is positive, outside of [0, 1] for fractions.
	Impossible int `json:"impossible"`
}

// share is a number out of another.
type share struct {
	Held int `json:"held"`
	Of   int `json:"of"`
}

func (s *share) count(held bool) {
	if s.Of++; held {
		s.Held++
	}
}

// study is one study.
type study struct {
	surface  *surface
	pool     *pool
	problem  *suggest.Problem
	diverged map[int]bool // members whose runs diverge
	drawn    []int        // members that it ran
	others   []int        // members that it has not run
	record   *Record
}

// newStudy draws the runs of a study, and which of them diverge.
func newStudy(s *surface, p *pool, problem *suggest.Problem, diverged int, seed uint64) *study {
	order := rand.New(rand.NewPCG(seed, 21)).Perm(poolSize)
	st := &study{
		surface: s, pool: p, problem: problem, diverged: make(map[int]bool),
		drawn: order[:runsPerStudy], others: order[runsPerStudy:][:heldOut],
		record: &Record{Surface: s.name(), Diverged: diverged, Seed: seed},
	}
	for _, i := range rand.New(rand.NewPCG(seed, 22)).Perm(runsPerStudy)[:diverged] {
		st.diverged[st.drawn[i]] = true
	}
	return st
}

// state returns a configuration after some epochs.
func state(q space.Point, epoch int) space.Point {
	q = q.Clone()
	q[epochs] = float64(epoch)
	return q
}

// history returns the measurements of the study. A run that diverges has its usual values until some epoch. Then its
// metric leaves the range of all others, by orders of magnitude where it has no bound.
func (s *study) history() *suggest.History {
	h := new(suggest.History)
	rng := rand.New(rand.NewPCG(s.record.Seed, 23))
	for number, i := range s.drawn {
		m := &s.pool.members[i]
		at := checkpoints(m.Point)
		from, size := rng.IntN(len(at)), math.Pow(10, 1+11*rng.Float64())
		for k, o := range m.Runs[0] {
			q, v := state(m.Point, at[k]), o[s.surface.metric]
			if s.diverged[i] && k >= from {
				grown := float64(k-from+1) / float64(len(at)-from)
				switch s.surface.metric {
				case metricError:
					v = 1 - (1-v)*math.Exp(-4*grown)
				case metricAUC:
					v *= math.Exp(-2 * grown)
				default:
					v = s.surface.reference * math.Pow(size, grown)
				}
			}
			h.Evaluations = append(h.Evaluations, suggest.Evaluation{
				Point: q, Values: []float64{s.problem.Objectives[0].Known(q), v}, StdErrors: []float64{0, math.NaN()}, Run: int64(number + 1),
			})
		}
	}
	return h
}

// truth returns the mean of the metric over fresh runs of a member after its k-th checkpoint.
func (s *study) truth(i, k int) (mean float64) {
	fresh := s.pool.members[i].Runs[1:]
	for _, run := range fresh {
		mean += run[k][s.surface.metric] / float64(len(fresh))
	}
	return mean
}

// run measures the results that the study reports.
func (s *study) run(ctx context.Context) error {
	h := s.history()
	m, err := model.Fit(ctx, s.problem, h, model.Options{ForReading: true, Seed: s.record.Seed})
	if err != nil {
		return fmt.Errorf("%s, %d diverged, seed %d: %w", s.record.Surface, s.record.Diverged, s.record.Seed, err)
	}
	s.record.Contradicted = m.Check().Contradicted
	s.front(m, h)
	for _, i := range s.others {
		at := checkpoints(s.pool.members[i].Point)
		for _, k := range []int{len(at) / 2, len(at) - 1} {
			s.interval(&s.record.HeldOut, m.Predict(state(s.pool.members[i].Point, at[k])), s.truth(i, k))
		}
	}
	return s.recommend(ctx, m, h)
}

// interval counts an interval of the metric, which has a true value.
func (s *study) interval(in *share, all []suggest.Prediction, truth float64) {
	p := all[1]
	if math.IsNaN(p.Lower) {
		return // none is reported
	}
	in.count(p.Lower <= truth && truth <= p.Upper)
	for _, v := range []float64{p.Lower, p.Median, p.Upper} {
		if v < 0 || math.IsNaN(v) || s.surface.metric != metricLoss && v > 1 {
			s.record.Impossible++
		}
	}
}

// front compares the reported front with fresh runs.
func (s *study) front(m *model.Model, h *suggest.History) {
	epsilon, o := &s.problem.Objectives[0], &s.problem.Objectives[1]
	reference := s.problem.ReferenceCosts()
	var claimed, fresh, observed [][]float64
	members := make(map[string][2]int) // and checkpoints
	for _, i := range s.drawn {
		for k, epoch := range checkpoints(s.pool.members[i].Point) {
			members[state(s.pool.members[i].Point, epoch).Key()] = [2]int{i, k}
		}
	}
	for i := range h.Evaluations {
		observed = append(observed, []float64{h.Evaluations[i].Values[0], o.Cost(h.Evaluations[i].Values[1])})
	}
	for _, e := range m.Estimates() {
		if !e.OnFront {
			continue
		}
		at := members[e.Point.Key()]
		claimed = append(claimed, []float64{epsilon.Cost(e.Predictions[0].Median), o.Cost(e.Predictions[1].Median)})
		if s.diverged[at[0]] {
			continue // fresh runs also diverge
		}
		truth := s.truth(at[0], at[1])
		fresh = append(fresh, []float64{epsilon.Cost(e.Predictions[0].Median), o.Cost(truth)})
		if claimed[len(claimed)-1][0] < reference[0] {
			s.interval(&s.record.Front, e.Predictions, truth)
		}
	}
	s.record.Claimed = pareto.Hypervolume(claimed, reference)
	s.record.Remeasured = pareto.Hypervolume(fresh, reference)
	s.record.Observed = pareto.Hypervolume(observed, reference)
}

// recommend asks for the best metric within a budget of ε, and for the least ε with a metric that a third of
// the runs have reached, and trains what is recommended.
func (s *study) recommend(ctx context.Context, m *model.Model, h *suggest.History) error {
	o := &s.problem.Objectives[1]
	costs := make([]float64, len(h.Evaluations))
	for i := range costs {
		costs[i] = o.Cost(h.Evaluations[i].Values[1])
	}
	slices.Sort(costs)
	third := o.Cost(costs[len(costs)/3])
	for number, q := range []query.Query{
		{Optimize: 1, Bounds: []float64{3, math.NaN()}, Confidence: confidence, Seed: s.record.Seed},
		{Optimize: 0, Bounds: []float64{math.NaN(), third}, Confidence: confidence, Seed: s.record.Seed},
	} {
		answer, ok := q.Measured(m)
		predicted, found, err := q.Search(ctx, m)
		if err != nil {
			return err
		}
		if found && (!ok || q.Better(s.problem, &predicted, &answer)) {
			answer, ok = predicted, true
		}
		if !ok || !answer.Met() {
			s.record.Refused++
			continue
		}
		runs, err := s.pool.runs(ctx, answer.Point, s.record.Seed<<8+uint64(128+number), freshRuns)
		if err != nil {
			return err
		}
		truth := 0.0
		for _, run := range runs {
			truth += run[len(run)-1][s.surface.metric] / float64(len(runs))
		}
		limit := answer.Reached[1]
		if number == 1 {
			limit = third
		}
		s.record.Recommended.count(o.Cost(truth) <= o.Cost(limit))
	}
	return nil
}

// near reports whether the claimed hypervolume is near the one that was measured again.
func (r *Record) near() bool { return math.Abs(r.Claimed-r.Remeasured) <= tolerance*r.Remeasured }
