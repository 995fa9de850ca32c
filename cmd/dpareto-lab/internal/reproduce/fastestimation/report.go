package fastestimation

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
)

// result makes tables of the outcomes.
func (e *Experiment) result(outcomes []*outcome) *reproduce.Result {
	measured := slices.DeleteFunc(slices.Clone(outcomes), func(o *outcome) bool { return o.missing != nil })
	r := &reproduce.Result{Report: output.Report{
		Title: "Fast Estimation for Privacy and Utility in Differentially Private Machine Learning: Table 1, Figures 1 and 2, Theorem 3",
		Notes: []string{
			fmt.Sprintf("%d training records, %d draws of the noise, seed %d; λ = %v, which has no effect at these ε: "+
				"both calibrations add more.", e.Rows, e.Draws, e.Seed, regularization),
			"true_epsilon is the ε that is proved for a training as a multiple of the ε that a table names, and empty where nothing " +
				"is proved; the last table says of what it is the ε.",
			"Nothing here may be released: losses, slopes, curves and a choice of ε by them are functions of the raw records.",
		},
	}}
	sections := []output.Section{
		table1Section(e, outcomes), estimatorSection(measured), figure2Section(e, measured),
		lossSection(measured), heldOutSection(measured), boundSection(e, outcomes), guaranteeSection(outcomes),
	}
	r.Report.Sections = slices.DeleteFunc(sections, func(s output.Section) bool { return len(s.Table.Rows) == 0 })
	return r
}

// keys are the columns that identify a row.
var keys = []string{columnDataset, "loss", columnTraining, columnTrue}

const (
	columnDataset  = "dataset"
	columnTraining = "training"
	columnTrue     = "true_epsilon"
)

// keys returns the beginning of the row of a training.
func (o *outcome) keys(t *training) []any {
	return []any{o.source.name, o.loss.name, t.name, t.trueEpsilon(o.source)}
}

// epsilonColumn returns the name of the column of a target.
func epsilonColumn(target int) string { return fmt.Sprintf("%.2f", targets[target]) }

func numbers(row []any, values ...float64) []any {
	for _, v := range values {
		row = append(row, v)
	}
	return row
}

// summaries returns the ways to train in words.
func summaries() []string {
	lines := make([]string, len(trainings))
	for i := range trainings {
		lines[i] = trainings[i].name + ": " + trainings[i].summary
	}
	return lines
}

func table1Section(e *Experiment, outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "table1",
		Title: "Table 1: mean error of the estimated loss over ε = 0.05, 0.10, ..., 1.00, by the ε of the measured model",
		Table: &output.Table{Columns: slices.Clone(keys)},
		Notes: append([]string{
			fmt.Sprintf("An estimate is the line of equation 9 through the measured loss; estimates and losses are means over %d draws "+
				"before they are compared. published is the paper's own table. any_line is the error of the best of all straight "+
				"lines: with these losses no estimate of the paper's kind has less.", e.Draws),
		}, summaries()...),
	}
	for _, m := range measuring {
		s.Table.Columns = append(s.Table.Columns, epsilonColumn(m))
	}
	s.Table.Columns = append(s.Table.Columns, "any_line")
	for _, o := range outcomes {
		add := func(name string, trueEpsilon any, errors []float64, anyLine any) {
			row := numbers([]any{o.source.name, o.loss.name, name, trueEpsilon}, errors...)
			s.Table.Rows = append(s.Table.Rows, append(row, anyLine))
		}
		if row, ok := o.published(); ok {
			add("published", nil, row.errors[:], nil)
		}
		if o.missing != nil {
			row := []any{o.source.name, o.loss.name, "not run: no files"}
			s.Table.Rows = append(s.Table.Rows, append(row, make([]any, len(s.Table.Columns)-len(row))...))
		}
		for _, t := range o.trained {
			trueEpsilon := t.trueEpsilon(o.source)
			add(t.name, trueEpsilon, t.table1(t.truth[0]), t.truth[0].leastLineError())
			if len(t.truth) > 1 {
				least, greatest := t.spread()
				add(t.name+", least", trueEpsilon, least, nil)
				add(t.name+", greatest", trueEpsilon, greatest, nil)
			}
		}
	}
	s.Notes = append(s.Notes, fmt.Sprintf("least and greatest: over %d repetitions of all draws.", repetitions))
	return s
}

// table1 returns the errors of lines through the measuring points of a curve.
func (t *trainedOutcome) table1(truth curve) []float64 {
	errors := make([]float64, len(measuring))
	for i, through := range measuring {
		errors[i] = truth.lineError(through)
	}
	return errors
}

// spread returns the least and the greatest errors over the repetitions.
func (t *trainedOutcome) spread() (least, greatest []float64) {
	least, greatest = t.table1(t.truth[0]), t.table1(t.truth[0])
	for _, truth := range t.truth[1:] {
		for i, x := range t.table1(truth) {
			least[i], greatest[i] = min(least[i], x), max(greatest[i], x)
		}
	}
	return least, greatest
}

func estimatorSection(outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "estimators",
		Title: "Mean error of the estimated loss: the lines of the paper's figures, and cubic interpolation in log ε",
		Table: &output.Table{Columns: slices.Clone(keys)},
		Notes: []string{
			"hermite_K interpolates between K models with their slopes in ε, at equal distances of log ε from 0.05 to 1; " +
				"K = 3 costs as much as the three lines. step is the error at ε = 0.20 of the line through 0.10, " +
				"which the paper puts at about 1e-6. newton trains at every ε from the model before, and is exact. " +
				"groups_4 has a line for each of four groups of five targets, through their mean, as the paper's section 4.3 proposes; " +
				"it costs as much as hermite_4. gain_K is the error of the best of the three lines over the error of hermite_K.",
			"Losses are shown for the trainings that reach the minimum: the others have no slope to estimate with.",
		},
	}
	for _, d := range drawn {
		s.Table.Columns = append(s.Table.Columns, "line_"+epsilonColumn(d))
	}
	for _, by := range estimators {
		s.Table.Columns = append(s.Table.Columns, by.name)
	}
	s.Table.Columns = append(s.Table.Columns, "groups_4", "gain_3", "gain_4", "step")
	for _, o := range outcomes {
		for _, t := range o.trained {
			if t.estimated == nil {
				continue
			}
			row := o.keys(t.training)
			best := math.Inf(1)
			for _, through := range drawn {
				distance := t.truth[0].lineError(through)
				best = min(best, distance)
				row = numbers(row, distance)
			}
			var errors []float64
			for _, estimated := range t.estimated {
				errors = append(errors, distance(estimated.losses(), t.truth[0].losses()))
			}
			row = numbers(row, errors...)
			from, to := drawn[0], 3
			step := math.Abs(t.truth[0].line(from)[to] - t.truth[0][to].loss)
			s.Table.Rows = append(s.Table.Rows, numbers(row, t.truth[0].groupedError(), best/errors[0], best/errors[1], step))
		}
	}
	return s
}

func figure2Section(e *Experiment, outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "figure2",
		Title: "Figure 2: mean error of the line by the number of training records",
		Table: &output.Table{Columns: append(slices.Clone(keys), "epsilon")},
		Notes: []string{"epsilon is the measuring point, as the paper chooses it: the ε with the least error in its Table 1."},
	}
	for _, rows := range e.sizes() {
		s.Table.Columns = append(s.Table.Columns, fmt.Sprintf("n=%d", rows))
	}
	for _, o := range outcomes {
		for _, t := range o.trained {
			if t.bySize != nil {
				row := append(o.keys(t.training), targets[o.through()])
				s.Table.Rows = append(s.Table.Rows, numbers(row, t.bySize...))
			}
		}
	}
	return s
}

// shown are the targets whose losses are printed: 0.05, 0.10, 0.25, 0.50, 1.00.
var shown = []int{0, 1, 4, 9, 19}

// spreadAt is the target whose spread is printed: 0.25.
const spreadAt = 4

func lossSection(outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "losses",
		Title: "Mean loss on the training records by ε, what the lines approximate",
		Table: &output.Table{Columns: slices.Clone(keys)},
		Notes: []string{"zero is the loss of the model 0, and free the loss of the minimiser without privacy. " +
			"A model whose loss is above zero's is worth less than none. spread is the standard deviation over the draws at ε = 0.25: " +
			"how far the loss of another model may be off for its noise alone, whatever estimates it."},
	}
	for _, k := range shown {
		s.Table.Columns = append(s.Table.Columns, epsilonColumn(k))
	}
	s.Table.Columns = append(s.Table.Columns, "zero", "free", "spread")
	for _, o := range outcomes {
		for _, t := range o.trained {
			row := o.keys(t.training)
			for _, k := range shown {
				row = numbers(row, t.truth[0][k].loss)
			}
			row = numbers(row, o.zero.loss, o.free.loss)
			if spread := t.truth[0][spreadAt].spread; math.IsNaN(spread) {
				row = append(row, nil)
			} else {
				row = numbers(row, spread)
			}
			s.Table.Rows = append(s.Table.Rows, row)
		}
	}
	return s
}

func heldOutSection(outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "held_out",
		Title: "Error rate on held-out records by ε, and what the interpolated models say of it",
		Table: &output.Table{Columns: slices.Clone(keys)},
		Notes: []string{"hermite_K are mean distances, over the twenty ε, between the error rates of the estimated and the " +
			"trained models, and loss_K between their losses on held-out records; both as means over the draws."},
	}
	for _, k := range shown {
		s.Table.Columns = append(s.Table.Columns, epsilonColumn(k))
	}
	s.Table.Columns = append(s.Table.Columns, "free", "hermite_3", "hermite_4", "loss_3", "loss_4")
	errorRate := func(p point) float64 { return p.heldOut.Error }
	loss := func(p point) float64 { return p.heldOut.Loss }
	for _, o := range outcomes {
		for _, t := range o.trained {
			row := o.keys(t.training)
			for _, k := range shown {
				row = numbers(row, t.truth[0][k].heldOut.Error)
			}
			row = numbers(row, o.free.heldOut.Error)
			if t.estimated == nil {
				row = append(row, nil, nil, nil, nil)
			} else {
				for _, value := range []func(point) float64{errorRate, loss} {
					for _, estimated := range t.estimated[:2] {
						row = numbers(row, distance(values(estimated, value), values(t.truth[0], value)))
					}
				}
			}
			s.Table.Rows = append(s.Table.Rows, row)
		}
	}
	return s
}

func guaranteeSection(outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "guarantees",
		Title: "What the ε guarantee",
		Table: &output.Table{Columns: []string{columnDataset, columnTraining, columnTrue, "features", "l1_bound"}},
		Notes: []string{
			"Pure ε-differential privacy of one released model of one draw, when one training record is replaced; it is for " +
				"real numbers, records of norm at most 1 and the exact minimiser. It covers no loss, curve, or choice of ε.",
			"Under laplace the noise costs ε/2 times a bound on ‖v‖₁/‖v‖₂ in place of ε/2: (1 + √d)/2 ε for d features, or " +
				"(1 + κ)/2 ε where ‖x‖₁ <= κ, the l1_bound, for all records, whichever is less. " +
				"steps and passes end at no minimum, and nothing is proved.",
		},
	}
	var last *source // outcomes of a source follow each other
	for _, o := range outcomes {
		if o.source == last {
			continue
		}
		last = o.source
		for _, t := range trainings {
			s.Table.Rows = append(s.Table.Rows, []any{last.name, t.name, t.trueEpsilon(last), int64(last.dim), last.kappa})
		}
	}
	return s
}

// trueEpsilon returns the cell of guarantee.
func (t *training) trueEpsilon(s *source) any {
	if factor, ok := t.guarantee(s); ok {
		return output.Bound(factor)
	}
	return nil
}

// guarantee returns how many times its label the ε of a training is, for privacy.Chaudhuri
// below its pole where the noise is not the one of the proof: with the regulariser's share
// J = ε/2 and the rate β = ε/4 it is J + β·sup‖v‖₁ over differences v of two gradients,
// ‖v‖₂ <= 2 and ‖v‖₁ <= 2·min(√d, κ). It reports false where nothing is proved.
func (t *training) guarantee(s *source) (factor float64, ok bool) {
	switch {
	case t.solver != exact:
		return 0, false
	case t.noise == laplace:
		return (1 + min(math.Sqrt(float64(s.dim)), s.kappa)) / 2, true
	default:
		return 1, true
	}
}

// boundSection is Theorem 3 in numbers.
func boundSection(e *Experiment, outcomes []*outcome) output.Section {
	s := output.Section{
		Name:  "theorem3",
		Title: "Theorem 3: what it says of the mean error of Table 1, and what can be proved",
		Table: &output.Table{Columns: append(slices.Clone(keys), "quantity")},
		Notes: []string{
			"paper is (ε′ − ε)²/(n²ε⁴), with the constant 1 as in the paper's example; bound is proved for every logistic loss, for the " +
				"norms of the noise that was drawn. Both are means over ε′, as the measured error of Table 1 is, and need no data. The Huber loss has no " +
				"third derivative, and no bound.",
			"The loss is hardly convex in some directions, and the noise has a norm about as large as the number of features: the bound " +
				"holds and is of no use, and what the paper says is far below the error.",
		},
	}
	for _, m := range measuring {
		s.Table.Columns = append(s.Table.Columns, epsilonColumn(m))
	}
	for _, o := range outcomes {
		sizes, main := o.source.rows(e)
		said := make([]float64, len(measuring))
		for i, m := range measuring {
			for _, to := range targets {
				said[i] += estimate.PublishedLineError(sizes[main], targets[m], to) / float64(len(targets))
			}
		}
		for i, t := range trainings {
			bounds, ok := o.bounds[t]
			if !ok {
				continue
			}
			add := func(name string, values []float64) {
				s.Table.Rows = append(s.Table.Rows, numbers(append(o.keys(t), name), values...))
			}
			add("paper", said)
			if o.missing == nil {
				add("measured", o.trained[i].table1(o.trained[i].truth[0]))
			}
			add("bound", bounds)
		}
	}
	return s
}
