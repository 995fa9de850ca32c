package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
)

// Result is the outcome of a comparison.
type Result struct {
	problem   *Problem
	options   Options
	designers []designerResult
}

type designerResult struct {
	name  string
	seeds []*outcome
}

func newResult(p *Problem, o Options) *Result {
	r := &Result{problem: p, options: o}
	for _, name := range o.Designers {
		r.designers = append(r.designers, designerResult{name, make([]*outcome, o.Seeds)})
	}
	return r
}

// budgets returns the budgets at which fronts are measured, in increasing order.
func (o *Options) budgets() []int {
	all := append(slices.Clone(o.At), o.Budget)
	slices.Sort(all)
	return slices.Compact(all)
}

// Table returns one row per designer and budget. Cells without a value are nil.
func (r *Result) Table() *output.Table {
	t := &output.Table{Columns: []string{
		"problem", "designer", "seeds", columnBudget,
		"observed_hypervolume_mean", "observed_hypervolume_sd", "true_hypervolume_mean", "true_hypervolume_sd",
		"evaluated_hypervolume_mean",
		"log10_difference_mean", "log10_difference_sd", "claimed_hypervolume_mean",
		"remeasured_hypervolume_mean", "remeasured_hypervolume_sd",
		"runs_to_target_median", "epochs_to_target_median", "epochs_mean", "repetitions_mean", "cpu_seconds_per_suggestion",
	}}
	for _, d := range r.designers {
		for b, budget := range r.options.budgets() {
			over := func(value func(*score) float64) (mean, sd any) {
				values := make([]float64, len(d.seeds))
				for i, o := range d.seeds {
					values[i] = value(&o.scores[b])
				}
				m, s := stat.MeanStdDev(values, nil)
				return cell(m), cell(s)
			}
			observed, observedSD := over(func(s *score) float64 { return s.observed })
			truth, truthSD := over(func(s *score) float64 { return s.truth })
			evaluated, _ := over(func(s *score) float64 { return s.evaluated })
			difference, differenceSD := over(func(s *score) float64 { return s.difference })
			claimed, _ := over(func(s *score) float64 { return s.claimed })
			remeasured, remeasuredSD := over(func(s *score) float64 { return s.remeasured })
			epochs, _ := over(func(s *score) float64 { return s.epochs })
			repetitions, _ := over(func(s *score) float64 { return s.repetitions })
			processor, _ := over(func(s *score) float64 { return s.processor })
			toTarget, epochsToTarget := make([]float64, len(d.seeds)), make([]float64, len(d.seeds))
			for i, o := range d.seeds {
				toTarget[i], epochsToTarget[i] = o.scores[b].runsToTarget, o.scores[b].epochsToTarget
			}
			t.Rows = append(t.Rows, []any{
				r.problem.Name, d.name, int64(r.options.Seeds), int64(budget),
				observed, observedSD, truth, truthSD, evaluated, difference, differenceSD, claimed,
				remeasured, remeasuredSD, cell(median(toTarget)), cell(median(epochsToTarget)), epochs, repetitions, processor,
			})
		}
	}
	return t
}

// SeedTable returns one row per designer, seed and budget, with which two programs or settings
// can be compared seed by seed. Cells without a value are nil.
func (r *Result) SeedTable() *output.Table {
	t := &output.Table{Columns: []string{
		"problem", "designer", "seed", columnBudget, "observed_hypervolume", "true_hypervolume", "evaluated_hypervolume", "log10_difference",
	}}
	for _, d := range r.designers {
		for seed, o := range d.seeds {
			for b, budget := range r.options.budgets() {
				s := &o.scores[b]
				t.Rows = append(t.Rows, []any{
					r.problem.Name, d.name, int64(seed + 1), int64(budget), cell(s.observed), cell(s.truth), cell(s.evaluated), cell(s.difference),
				})
			}
		}
	}
	return t
}

// columnBudget is the column of the number of runs in all tables.
const columnBudget = "budget"

// median returns the median of values, of which some may be infinite: the larger of the
// two in the middle.
func median(values []float64) float64 {
	return slices.Sorted(slices.Values(values))[len(values)/2]
}

// cell returns a number as the cell of a table: nil for NaN.
func cell(x float64) any {
	if math.IsNaN(x) {
		return nil
	}
	return x
}

// Remarks returns notes for readers of the numbers, a line each.
func (r *Result) Remarks() []string {
	var lines []string
	for _, d := range r.designers {
		n, reason := 0, ""
		for _, o := range d.seeds {
			if n += o.standIns; o.standIns > 0 {
				reason = o.reason
			}
		}
		if n > 0 {
			lines = append(lines, fmt.Sprintf("%s: another designer stood in for %d suggestions, for example because: %s", d.name, n, reason))
		}
	}
	return lines
}

// WriteMarkdown prints a table as Markdown, without the columns that have no values.
func WriteMarkdown(w io.Writer, t *output.Table) error {
	var out strings.Builder
	line := func(cells []string) { out.WriteString("| " + strings.Join(cells, " | ") + " |\n") }
	var columns []int
	var names, rule []string
	for c, name := range t.Columns {
		if slices.ContainsFunc(t.Rows, func(row []any) bool { return row[c] != nil }) {
			columns = append(columns, c)
			names = append(names, strings.ReplaceAll(name, "_", " "))
			rule = append(rule, "---")
		}
	}
	line(names)
	line(rule)
	for _, row := range t.Rows {
		cells := make([]string, len(columns))
		for i, c := range columns {
			switch v := row[c].(type) {
			case nil:
			case float64:
				cells[i] = show.Number(v)
			default:
				cells[i] = fmt.Sprint(v)
			}
		}
		line(cells)
	}
	_, err := io.WriteString(w, out.String())
	return err
}
