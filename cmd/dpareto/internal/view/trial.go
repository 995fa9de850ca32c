package view

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// EndReason returns why no trial was handed out, in words.
func EndReason(r dparetov1.EndReason) string {
	return strings.ReplaceAll(enum.Name(r), "-", " ")
}

// Trials returns a table of trials of a study, one row each: the configuration, and the
// metrics at the end of the run. A run that was stopped early ends at an earlier step than
// its configuration says.
func Trials(spec *dparetov1.StudySpec, trials []*dparetov1.Trial) *output.Table {
	var ids []string
	for _, p := range spec.GetParameters() {
		ids = append(ids, p.GetId())
	}
	for _, m := range spec.GetMetrics() {
		ids = append(ids, m.GetId())
	}
	t := new(output.Table)
	add := func(names ...string) {
		for _, name := range names {
			if slices.Contains(ids, name) {
				name = TrialPrefix + name
			}
			t.Columns = append(t.Columns, name)
		}
	}
	add("trial", "state", "origin")
	t.Columns = append(t.Columns, ids...)
	hasSteps := spec.GetCheckpointParameter() != ""
	if hasSteps {
		add("step")
	}
	add("seconds", "attempts", "worker", "note")
	first := firstOf(trials)
	for _, trial := range trials {
		row := []any{trial.GetNumber(), enum.Name(trial.GetState()), origin(trial)}
		for _, p := range spec.GetParameters() {
			row = append(row, Value(trial.GetParameters()[p.GetId()]))
		}
		for _, m := range spec.GetMetrics() {
			row = append(row, result(trial, m.GetId()))
		}
		if hasSteps {
			row = append(row, lastStep(trial))
		}
		var seconds any
		if elapsed := trial.GetFinalMeasurement().GetElapsed(); elapsed != nil {
			seconds = elapsed.AsDuration().Seconds()
		}
		row = append(row, seconds, int64(trial.GetAttempt()), trial.GetWorkerId(), note(spec, trial, repeated(trial, first), true))
		t.Rows = append(t.Rows, row)
	}
	return t
}

// State returns the state of a trial in a word.
func State(trial *dparetov1.Trial) string { return enum.Name(trial.GetState()) }

// origin returns the cell of a trial's origin.
func origin(trial *dparetov1.Trial) any {
	if trial.GetOrigin() == dparetov1.TrialOrigin_TRIAL_ORIGIN_UNSPECIFIED {
		return nil
	}
	return enum.Name(trial.GetOrigin())
}

// lastStep returns the cell of the step of the latest measurement of a trial.
func lastStep(trial *dparetov1.Trial) any {
	if step := trial.GetFinalMeasurement().GetStep(); step > 0 {
		return step
	}
	if m := trial.GetMeasurements(); len(m) > 0 {
		return m[len(m)-1].GetStep()
	}
	return nil
}

// StoppedEarly reports whether a successful trial of a study with a checkpoint parameter
// ended before the step that its configuration says.
func StoppedEarly(spec *dparetov1.StudySpec, trial *dparetov1.Trial) bool {
	step := trial.GetFinalMeasurement().GetStep()
	return step > 0 && step < trial.GetParameters()[spec.GetCheckpointParameter()].GetIntValue()
}

// firstOf returns the lowest number of a trial with each configuration. Trials may be in any order.
func firstOf(trials []*dparetov1.Trial) map[string]int64 {
	first := make(map[string]int64)
	for _, trial := range trials {
		key := configuration(trial)
		if n, ok := first[key]; !ok || trial.GetNumber() < n {
			first[key] = trial.GetNumber()
		}
	}
	return first
}

// repeated returns the number of the trial that a trial repeats, by its origin or its
// configuration, or "".
func repeated(trial *dparetov1.Trial, first map[string]int64) string {
	if of := trial.GetReplicateOf(); of != "" {
		return ID(of)
	}
	if n := first[configuration(trial)]; n != trial.GetNumber() {
		return strconv.FormatInt(n, 10)
	}
	return ""
}

// CountReplicates returns how many trials repeat an earlier one.
func CountReplicates(trials []*dparetov1.Trial) int {
	n, first := 0, firstOf(trials)
	for _, trial := range trials {
		if repeated(trial, first) != "" {
			n++
		}
	}
	return n
}

// configuration returns the parameters of a trial in a form that can be compared.
func configuration(trial *dparetov1.Trial) string {
	var b strings.Builder
	for _, id := range slices.Sorted(maps.Keys(trial.GetParameters())) {
		fmt.Fprintf(&b, "%s=%q\n", id, output.Full(Value(trial.GetParameters()[id])))
	}
	return b.String()
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

// result returns the cell of a metric of a trial: measured, or computed from the
// configuration.
func result(trial *dparetov1.Trial, metric string) any {
	value := trial.GetFinalMeasurement().GetMetrics()[metric]
	if value == nil {
		value = trial.GetComputedMetrics()[metric]
	}
	if value == nil || value.Value == nil {
		return nil
	}
	if value.GetPrivacy() != nil {
		return output.Bound(value.GetValue())
	}
	return value.GetValue()
}

// note returns what else a reader of a trial should know: the users' note, the number of the
// trial that it repeats, if any, and the server's remarks. In a list, where many trials have the same,
// a seeded run is named by a word.
func note(spec *dparetov1.StudySpec, trial *dparetov1.Trial, repeats string, isListed bool) string {
	var parts []string
	if trial.GetNote() != "" {
		parts = append(parts, trial.GetNote())
	}
	if repeats != "" {
		parts = append(parts, "replicate of "+repeats)
	}
	if StoppedEarly(spec, trial) {
		parts = append(parts, "stopped early")
	}
	if trial.GetStateReason() != "" {
		parts = append(parts, trial.GetStateReason())
	}
	for _, w := range trial.GetWarnings() {
		if isListed && w.GetCode() == show.CodeSeeded {
			parts = append(parts, "seeded")
			continue
		}
		parts = append(parts, w.GetMessage())
	}
	if reason := trial.GetProvenance().GetFallbackReason(); reason != "" {
		parts = append(parts, reason)
	}
	return strings.Join(strings.Fields(strings.Join(parts, "; ")), " ")
}

// Trial returns a table of one trial, a row for every field.
func Trial(spec *dparetov1.StudySpec, trial *dparetov1.Trial) *output.Table {
	t := output.FieldTable()
	add := func(field string, value any) {
		if cell := output.Cell(value); cell != "" {
			t.Rows = append(t.Rows, []any{field, cell})
		}
	}
	add("trial", ID(trial.GetName()))
	add("state", enum.Name(trial.GetState()))
	add("origin", origin(trial))
	add("created", trial.GetCreateTime().AsTime())
	if trial.GetEndTime() != nil {
		add("ended", trial.GetEndTime().AsTime())
	}
	add("attempts", int64(trial.GetAttempt()))
	add("worker", trial.GetWorkerId())
	for _, p := range spec.GetParameters() {
		if value := Value(trial.GetParameters()[p.GetId()]); value != nil {
			add("parameter", p.GetId()+" "+output.Cell(value))
		}
	}
	for _, m := range spec.GetMetrics() {
		value := result(trial, m.GetId())
		if value == nil {
			continue
		}
		cell := m.GetId() + " " + output.Cell(value)
		if p := trial.GetProvenance().GetPredictions()[m.GetId()]; p.GetLower() < p.GetUpper() { // others were computed
			cell += ", expected " + show.Number(p.GetMedian()) + " (" + show.Number(p.GetLower()) + " to " + show.Number(p.GetUpper()) + ")"
		}
		add("metric", cell)
	}
	add("privacy", show.PrivacyStatement(spec))
	add("step", lastStep(trial))
	if n := len(trial.GetMeasurements()); n > 0 {
		add("measurements", int64(n))
	}
	if elapsed := trial.GetFinalMeasurement().GetElapsed(); elapsed != nil {
		add("seconds", elapsed.AsDuration().Seconds())
	}
	for _, a := range trial.GetPastAttempts() {
		cell := fmt.Sprintf("%d, worker %s: %s, measurements %d", a.GetNumber(), a.GetWorkerId(), enum.Name(a.GetOutcome()), len(a.GetMeasurements()))
		if a.GetReason() != "" {
			cell += ", " + a.GetReason()
		}
		add("past attempt", cell)
	}
	add("suggested by", trial.GetProvenance().GetAlgorithm())
	add("labels", labelList(trial.GetLabels()))
	for _, key := range slices.Sorted(maps.Keys(trial.GetAttributes())) {
		if value, err := json.Marshal(trial.GetAttributes()[key].AsInterface()); err == nil {
			add("attribute", key+" "+string(value))
		}
	}
	for _, a := range trial.GetArtifacts() {
		add("artifact", a.GetId()+" "+a.GetUri())
	}
	add("note", note(spec, trial, replicateOf(trial), false))
	return t
}

const (
	// TrialPrefix stands before the name of a column of trials where an id of the study has that name.
	TrialPrefix = "trial."
	// RunsColumn comes after the id of a metric and a point: the values of its runs.
	RunsColumn = "runs"
	// StandardErrorColumn comes after the id of a metric and a point: the standard error of its value.
	StandardErrorColumn = "standard_error"
)

// TrialsInFull is Trials with the columns that only programs read: the values of several runs as a list
// of JSON, standard errors without runs, and the reasons of states, as far as there are any.
func TrialsInFull(spec *dparetov1.StudySpec, trials []*dparetov1.Trial) *output.Table {
	t := Trials(spec, trials)
	add := func(name string, cell func(*dparetov1.Trial) any) {
		cells := make([]any, len(trials))
		for i, trial := range trials {
			cells[i] = cell(trial)
		}
		if !slices.ContainsFunc(cells, func(cell any) bool { return cell != nil }) {
			return
		}
		t.Columns = append(t.Columns, name)
		for i := range t.Rows {
			t.Rows[i] = append(t.Rows[i], cells[i])
		}
	}
	for _, m := range spec.GetMetrics() {
		add(m.GetId()+"."+RunsColumn, func(trial *dparetov1.Trial) any {
			runs := trial.GetFinalMeasurement().GetMetrics()[m.GetId()].GetRuns()
			if len(runs) < 2 {
				return nil
			}
			list, err := json.Marshal(runs)
			if err != nil {
				return nil // they are finite
			}
			return string(list)
		})
		add(m.GetId()+"."+StandardErrorColumn, func(trial *dparetov1.Trial) any {
			if v := trial.GetFinalMeasurement().GetMetrics()[m.GetId()]; len(v.GetRuns()) == 0 && v.GetStandardError() > 0 {
				return v.GetStandardError()
			}
			return nil
		})
	}
	reason := "state_reason"
	if slices.Contains(t.Columns, reason) {
		reason = TrialPrefix + reason
	}
	add(reason, func(trial *dparetov1.Trial) any {
		if trial.GetStateReason() == "" {
			return nil
		}
		return trial.GetStateReason()
	})
	return t
}
