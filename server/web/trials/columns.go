package trials

import (
	"slices"
	"strconv"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/words"
)

// The fields of columns that trials cannot be sorted by.
const (
	curveField = "curve"
	stepField  = "step"
)

// column is a column of the table between the state and the remarks.
type column struct {
	Label, Field string
	Number       bool
	cell         func(trial *dparetov1.Trial) trialsCell
}

// columnChoice is a column to choose.
type columnChoice struct {
	Label, Field string
	Shown        bool
}

// allColumns returns the columns of a study, in their order.
func allColumns(spec *dparetov1.StudySpec) []column {
	var all []column
	for _, p := range spec.GetParameters() {
		all = append(all, column{p.GetId(), "parameters." + p.GetId(), p.GetCategoricalDomain() == nil, func(trial *dparetov1.Trial) trialsCell {
			return trialsCell{Text: words.Value(trial.GetParameters()[p.GetId()])}
		}})
	}
	for _, m := range spec.GetMetrics() {
		all = append(all, column{words.Metric(m), "metrics." + m.GetId(), true, func(trial *dparetov1.Trial) trialsCell {
			return trialsCell{Text: words.Measured(m, metricOf(trial, m.GetId()))}
		}})
	}
	if spec.GetCheckpointParameter() != "" {
		if m := curvedMetric(spec); m != nil {
			all = append(all, column{m.GetId() + " over " + spec.GetCheckpointParameter(), curveField, false, func(*dparetov1.Trial) trialsCell { return trialsCell{} }})
		}
		all = append(all, column{"Step", stepField, true, func(trial *dparetov1.Trial) trialsCell {
			if last := lastStep(spec, trial); last > 0 {
				return trialsCell{Text: strconv.FormatInt(last, 10)}
			}
			return trialsCell{}
		}})
	}
	return append(all, column{"Worker", "worker", false, func(trial *dparetov1.Trial) trialsCell {
		return trialsCell{Text: trial.GetWorkerId()}
	}}, column{"Ended", "end_time", false, func(trial *dparetov1.Trial) trialsCell {
		return trialsCell{Time: trial.GetEndTime()}
	}})
}

// curvedMetric returns the metric whose curves the table shows: the first objective that is measured, nil
// without one.
func curvedMetric(spec *dparetov1.StudySpec) *dparetov1.MetricSpec {
	all := show.Objectives(spec)
	if i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetReported() != nil }); i >= 0 {
		return all[i]
	}
	return nil
}

// shown returns the columns that a reader has chosen, or all but the metrics that are no objectives.
func shown(spec *dparetov1.StudySpec, q *trialsQuery) []column {
	chosen := q.Columns
	if len(chosen) == 0 {
		for _, m := range spec.GetMetrics() {
			if m.GetRole() != dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
				chosen = append(chosen, "metrics."+m.GetId())
			}
		}
		return slices.DeleteFunc(allColumns(spec), func(c column) bool { return slices.Contains(chosen, c.Field) })
	}
	return slices.DeleteFunc(allColumns(spec), func(c column) bool { return !slices.Contains(chosen, c.Field) })
}

// choices returns the columns to choose from.
func choices(spec *dparetov1.StudySpec, q *trialsQuery) []columnChoice {
	now := shown(spec, q)
	var all []columnChoice
	for _, c := range allColumns(spec) {
		all = append(all, columnChoice{c.Label, c.Field, slices.ContainsFunc(now, func(s column) bool { return s.Field == c.Field })})
	}
	return all
}
