package output

import (
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Trials returns a table of trials of a study, one row each: the configuration, and the
// metrics at the end of the run.
func Trials(spec *dparetov1.StudySpec, trials []*dparetov1.Trial) *Table {
	t := &Table{Columns: []string{"trial", "state"}}
	for _, p := range spec.GetParameters() {
		t.Columns = append(t.Columns, p.GetId())
	}
	for _, m := range spec.GetMetrics() {
		t.Columns = append(t.Columns, m.GetId())
	}
	t.Columns = append(t.Columns, "seconds", "attempts", "worker", "note")
	for _, trial := range trials {
		row := []any{trial.GetNumber(), short(trial.GetState().String(), "TRIAL_STATE_")}
		for _, p := range spec.GetParameters() {
			row = append(row, Value(trial.GetParameters()[p.GetId()]))
		}
		for _, m := range spec.GetMetrics() {
			row = append(row, result(trial, m.GetId()))
		}
		var seconds any
		if elapsed := trial.GetFinalMeasurement().GetElapsed(); elapsed != nil {
			seconds = elapsed.AsDuration().Seconds()
		}
		row = append(row, seconds, int64(trial.GetAttempt()), trial.GetLease().GetWorkerId(), note(trial))
		t.Rows = append(t.Rows, row)
	}
	return t
}

// Value returns the cell of a parameter's value.
func Value(v *dparetov1.Value) any {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return kind.DoubleValue
	case *dparetov1.Value_IntValue:
		return kind.IntValue
	case *dparetov1.Value_StringValue:
		return kind.StringValue
	default:
		return nil
	}
}

// result returns the cell of a metric of a trial: what was measured, or what is known of
// the configuration before.
func result(trial *dparetov1.Trial, metric string) any {
	value := trial.GetFinalMeasurement().GetMetrics()[metric]
	if value == nil {
		value = trial.GetComputedMetrics()[metric]
	}
	if value == nil || value.Value == nil {
		return nil
	}
	if value.GetPrivacy() != nil {
		return Bound(value.GetValue())
	}
	return value.GetValue()
}

// note returns what else a reader of a trial should know.
func note(trial *dparetov1.Trial) string {
	var parts []string
	if trial.GetStateReason() != "" {
		parts = append(parts, trial.GetStateReason())
	}
	for _, w := range trial.GetWarnings() {
		parts = append(parts, w.GetMessage())
	}
	if reason := trial.GetProvenance().GetFallbackReason(); reason != "" {
		parts = append(parts, reason)
	}
	return strings.Join(strings.Fields(strings.Join(parts, "; ")), " ")
}
