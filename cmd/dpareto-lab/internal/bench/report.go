package bench

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// nearlyAll is the share of its final hypervolume with which a front counts as found.
const nearlyAll = 0.99

// Report returns one row for each method among records of one surface and variant, and each of some
// budgets: numbers of runs. A study with fewer runs than a budget does not count for it. best is the
// hypervolume of the best front known.
func Report(records []*Record, budgets []int, best float64) *output.Table {
	t := &output.Table{Columns: []string{
		"surface", "variant", "method", "budget", "seeds",
		"reported_mean", "reported_sd", "observed_mean", "log10_missing_mean", "log10_missing_sd",
		"runs_to_99_median", "epochs_to_99_median", "epochs_mean", "seconds_per_suggestion", "stand_ins",
	}}
	groups := make(map[string][]*Record)
	for _, r := range records {
		groups[r.Method] = append(groups[r.Method], r)
	}
	for _, method := range slices.Sorted(maps.Keys(groups)) {
		for _, budget := range budgets {
			if row := reportRow(groups[method], budget, best); row != nil {
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t
}

// reportRow returns the row of the studies of one method, or nil if none has the budget.
func reportRow(group []*Record, budget int, best float64) []any {
	group = slices.DeleteFunc(slices.Clone(group), func(r *Record) bool { return len(r.Epochs) < budget })
	if len(group) == 0 {
		return nil
	}
	over := func(value func(*Record) float64) (mean, sd any, median float64) {
		values := make([]float64, len(group))
		for i, r := range group {
			values[i] = value(r)
		}
		m, s := stat.MeanStdDev(values, nil)
		return cell(m), cell(s), middle(values)
	}
	reported, reportedSD, _ := over(func(r *Record) float64 { return r.Reported[budget-1] })
	observed, _, _ := over(func(r *Record) float64 { return r.Observed[budget-1] })
	missing, missingSD, _ := over(func(r *Record) float64 {
		return math.Log10(math.Max(best-r.Reported[budget-1], leastDifference))
	})
	// An empty front is never found.
	until := func(value func(r *Record, runs int) float64) func(*Record) float64 {
		return func(r *Record) float64 {
			if n := found(r.Reported[:budget]); n > 0 {
				return value(r, n)
			}
			return math.Inf(1)
		}
	}
	_, _, runs := over(until(func(_ *Record, runs int) float64 { return float64(runs) }))
	_, _, untilFound := over(until(func(r *Record, runs int) float64 { return r.Epochs[runs-1] }))
	epochs, _, _ := over(func(r *Record) float64 { return r.Epochs[budget-1] })
	seconds, _, _ := over(func(r *Record) float64 { return r.Seconds })
	standIns := 0
	for _, r := range group {
		standIns += r.StandIns
	}
	first := group[0]
	return []any{
		first.Surface, first.Variant.String(), first.Method, int64(budget), int64(len(group)),
		reported, reportedSD, observed, missing, missingSD, runs, untilFound, epochs, seconds, int64(standIns),
	}
}

// found returns the number of runs from which on hypervolumes are never less than 99 % of the last, or
// 0 if there is none: the front is empty.
func found(hypervolumes []float64) int {
	last := hypervolumes[len(hypervolumes)-1]
	if last == 0 {
		return 0
	}
	for n := len(hypervolumes); n > 1; n-- {
		if hypervolumes[n-2] < nearlyAll*last {
			return n
		}
	}
	return 1
}

// middle returns the median: of an even number of values the mean of the two in the middle.
func middle(values []float64) float64 {
	sorted := slices.SortedFunc(slices.Values(values), cmp.Compare)
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
