package bench

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// nearlyAll is the share of its final hypervolume with which a front counts as found.
const nearlyAll = 0.99

// Report returns one row for each method among records of one surface and variant, and each budget: a
// number of runs, or of epochs. The spent epochs of a study are counted up to its last run that is
// within the budget. A study that ends before a budget is spent does not count for it. best is the
// hypervolume of the best front known.
//
// against is the method that others are compared with, "" for none: the mean over the seeds that both have of
// the differences in log10_missing, negative where the method is ahead, with a 95 % interval by Student's t.
func Report(records []*Record, runs, epochs []int, best float64, against string) *output.Table {
	t := &output.Table{Columns: []string{
		"surface", "variant", "method", columnBudget, "unit", "seeds",
		"reported_mean", "reported_sd", "observed_mean", "log10_missing_mean", "log10_missing_sd",
		"runs_to_99_median", "epochs_to_99_median", "runs_mean", "epochs_mean", "seconds_per_suggestion", "stand_ins",
	}}
	if against != "" {
		t.Columns = append(t.Columns, "difference_mean", "difference_lower", "difference_upper")
	}
	groups := make(map[string][]*Record)
	for _, r := range records {
		groups[r.Method] = append(groups[r.Method], r)
	}
	add := func(method string, budget int, unit string, within func(*Record, int) int) {
		row := reportRow(groups[method], budget, unit, within, best)
		if row != nil && against != "" {
			row = append(row, difference(groups[method], groups[against], budget, within, best)...)
		}
		if row != nil {
			t.Rows = append(t.Rows, row)
		}
	}
	for _, method := range slices.Sorted(maps.Keys(groups)) {
		for _, budget := range runs {
			add(method, budget, "runs", (*Record).withinRuns)
		}
		for _, budget := range epochs {
			add(method, budget, "epochs", (*Record).withinEpochs)
		}
	}
	return t
}

// missing returns the logarithm of the missing hypervolume of the reported front after a number of runs.
func (r *Record) missing(runs int, best float64) float64 {
	return math.Log10(math.Max(best-r.Reported[runs-1], leastDifference))
}

// difference returns the mean of the differences between studies of two methods with the same seed, and
// its 95 % interval. What too few studies have is missing.
func difference(group, against []*Record, budget int, within func(*Record, int) int, best float64) []any {
	others := make(map[uint64]float64)
	for _, r := range against {
		if n := within(r, budget); n > 0 {
			others[r.Seed] = r.missing(n, best)
		}
	}
	var values []float64
	for _, r := range group {
		other, ok := others[r.Seed]
		if n := within(r, budget); n > 0 && ok && r.Method != against[0].Method {
			values = append(values, r.missing(n, best)-other)
		}
	}
	if len(values) == 0 {
		return []any{nil, nil, nil}
	}
	mean, sd := stat.MeanStdDev(values, nil)
	if len(values) == 1 {
		return []any{mean, nil, nil}
	}
	n := float64(len(values))
	half := distuv.StudentsT{Mu: 0, Sigma: 1, Nu: n - 1}.Quantile(0.975) * sd / math.Sqrt(n)
	return []any{mean, mean - half, mean + half}
}

// withinRuns returns the number of runs if the study has it, otherwise 0.
func (r *Record) withinRuns(budget int) int {
	if len(r.Epochs) < budget {
		return 0
	}
	return budget
}

// withinEpochs returns the number of runs that a budget of epochs pays for, 0 if there are none or the
// study has not spent it.
func (r *Record) withinEpochs(budget int) int {
	if r.Epochs[len(r.Epochs)-1] < float64(budget) {
		return 0
	}
	n := 0
	for n < len(r.Epochs) && r.Epochs[n] <= float64(budget) {
		n++
	}
	return n
}

// reportRow returns the row of the studies of one method that have a budget, nil if there are none.
func reportRow(group []*Record, budget int, unit string, within func(*Record, int) int, best float64) []any {
	group = slices.DeleteFunc(slices.Clone(group), func(r *Record) bool { return within(r, budget) == 0 })
	if len(group) == 0 {
		return nil
	}
	over := func(value func(r *Record, runs int) float64) (mean, sd any, median float64) {
		values := make([]float64, len(group))
		for i, r := range group {
			values[i] = value(r, within(r, budget))
		}
		m, s := stat.MeanStdDev(values, nil)
		return cell(m), cell(s), middle(values)
	}
	// An empty front is never found.
	until := func(value func(r *Record, runs int) float64) func(*Record, int) float64 {
		return func(r *Record, runs int) float64 {
			if n := found(r.Reported[:runs]); n > 0 {
				return value(r, n)
			}
			return math.Inf(1)
		}
	}
	runCount := func(_ *Record, runs int) float64 { return float64(runs) }
	epochCount := func(r *Record, runs int) float64 { return r.Epochs[runs-1] }
	reported, reportedSD, _ := over(func(r *Record, runs int) float64 { return r.Reported[runs-1] })
	observed, _, _ := over(func(r *Record, runs int) float64 { return r.Observed[runs-1] })
	missing, missingSD, _ := over(func(r *Record, runs int) float64 { return r.missing(runs, best) })
	_, _, runsUntil := over(until(runCount))
	_, _, epochsUntil := over(until(epochCount))
	meanRuns, _, _ := over(runCount)
	meanEpochs, _, _ := over(epochCount)
	seconds, _, _ := over(func(r *Record, _ int) float64 { return r.Seconds })
	standIns := 0
	for _, r := range group {
		standIns += r.StandIns
	}
	first := group[0]
	return []any{
		first.Surface, first.Words(), first.Method, int64(budget), unit, int64(len(group)),
		reported, reportedSD, observed, missing, missingSD, runsUntil, epochsUntil, meanRuns, meanEpochs, seconds, int64(standIns),
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
