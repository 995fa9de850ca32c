package trial

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/studyfile"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// imported is a trial of a file.
type imported struct {
	line   int
	source string // its name in the file, for replicates; "" if it has none
	of     string // the source that it replicates
	digest string
	trial  *dparetov1.Trial
}

// ends are the words of programs for how a trial ended.
var ends = map[string]dparetov1.TrialState{
	"": dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "succeeded": dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
	"complete": dparetov1.TrialState_TRIAL_STATE_SUCCEEDED, "completed": dparetov1.TrialState_TRIAL_STATE_SUCCEEDED,
	"infeasible": dparetov1.TrialState_TRIAL_STATE_INFEASIBLE,
	"failed":     dparetov1.TrialState_TRIAL_STATE_FAILED, "fail": dparetov1.TrialState_TRIAL_STATE_FAILED,
}

// unfinished are the words for trials without an outcome, or with the outcome of a part of a run.
var unfinished = []string{
	"queued", "active", "stopping", "requested", // dpareto, Vizier
	"running", "waiting", "pruned", // Optuna
	"candidate", "staged", "dispatched", "abandoned", "early_stopped", // Ax
}

// errUnfinished says that a trial is left out.
var errUnfinished = errors.New("the trial has no outcome")

// endOf returns the state of a word such as "succeeded", "TrialState.COMPLETE" or "TRIAL_STATE_FAILED".
func endOf(written any) (dparetov1.TrialState, error) {
	word, ok := textOf(written)
	if !ok {
		return 0, errors.New("state: must be a word")
	}
	word = strings.ToLower(word[strings.LastIndexByte(word, '.')+1:])
	word = strings.TrimPrefix(word, "trial_state_")
	if state, ok := ends[word]; ok {
		return state, nil
	}
	if slices.Contains(unfinished, word) {
		return 0, errUnfinished
	}
	return 0, fmt.Errorf("state: must be one of %s, or of an unfinished trial, is %q", strings.Join(slices.Sorted(maps.Keys(ends))[1:], ", "), word)
}

// importedTrials returns the trials of a file, and how many it has without an outcome.
func importedTrials(spec *dparetov1.StudySpec, mapping Mapping, t *table) (trials []imported, c *columns, skipped int, err error) {
	if c = newColumns(spec, mapping, t.names); t.comma == 0 && len(t.results) > 0 {
		c = newColumns(spec, mapping, slices.Collect(maps.Keys(t.results[0].Values)))
	}
	if err := c.add(t.names); err != nil {
		return nil, nil, 0, lineError(t.header, "%w", err)
	}
	for _, r := range t.results {
		if t.comma != 0 || isTrialMessage(spec, r.Values) {
			continue
		}
		if err := c.add(slices.Sorted(maps.Keys(r.Values))); err != nil {
			return nil, nil, 0, lineError(r.Line, "%w", err)
		}
	}
	if err := t.decimalPoints(c.isNumber); err != nil {
		return nil, nil, 0, err
	}
	add := func(line int, one imported, err error) error {
		if errors.Is(err, errUnfinished) {
			skipped++
			return nil
		}
		if err != nil {
			return lineError(line, "%w", err)
		}
		one.line = line
		trials = append(trials, one)
		return nil
	}
	groups, err := c.curves(t.results)
	if err != nil {
		return nil, nil, 0, err
	}
	for _, group := range groups {
		last := group[len(group)-1]
		var one imported
		var err error
		if len(group) == 1 && isTrialMessage(spec, last.Values) {
			one, err = c.message(last.Values)
		} else {
			one, err = c.rows(group)
		}
		if err := add(last.Line, one, err); err != nil {
			return nil, nil, 0, err
		}
	}
	return trials, c, skipped, c.checkUsed()
}

// value returns what a line has in a column of trials, nil if it has none.
func (c *columns) value(r Result, id string) any {
	for name, value := range r.Values {
		if c.fields[name] == (field{kindTrial, id}) {
			return value
		}
	}
	return nil
}

// step returns the step of a line, if it has one.
func (c *columns) step(r Result) (step int64, ok bool, err error) {
	value := c.value(r, columnStep)
	if value == nil {
		return 0, false, nil
	}
	step, err = wholeNumber(value)
	if err != nil {
		return 0, false, fmt.Errorf("step: %w", err)
	}
	return step, true, nil
}

func wholeNumber(value any) (int64, error) {
	written, _ := textOf(value)
	n, err := strconv.ParseInt(strings.TrimSuffix(written, ".0"), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("must be an integer, is %q", fmt.Sprint(value))
	}
	return n, nil
}

// curves returns the lines of each trial. The lines of a curve have ascending steps and the same trial
// or, without that column, the same configuration, perhaps between the lines of others. There the next run
// of a configuration begins where the steps fall; what could be a curve in another order is refused.
func (c *columns) curves(results []Result) (groups [][]Result, err error) {
	of := make(map[string]int) // last groups of trials and configurations
	for _, r := range results {
		step, hasStep, err := c.step(r)
		if err != nil {
			return nil, lineError(r.Line, "%w", err)
		}
		name, _ := textOf(c.value(r, columnTrial))
		key := c.configuration(r)
		if name != "" {
			key = "trial " + name
		}
		i, ok := of[key]
		if !ok || name != "" && !hasStep {
			of[key] = len(groups)
			groups = append(groups, []Result{r})
			continue
		}
		first, last := groups[i][0], groups[i][len(groups[i])-1]
		begin, begins, _ := c.step(first) // read above
		before, _, _ := c.step(last)
		switch {
		case hasStep != begins:
			return nil, lineError(r.Line, "step: must be set in all lines of a curve, or in none: line %d is of the same one", last.Line)
		case hasStep && step > before:
			if c.configuration(r) != c.configuration(first) {
				return nil, lineError(r.Line, "trial %s has other parameters in line %d", name, first.Line)
			}
			groups[i] = append(groups[i], r)
		case name != "":
			return nil, lineError(r.Line, "step: must be above %d, the step of trial %s before, is %d", before, name, step)
		case hasStep && step != begin && (step == before || len(groups[i]) == 1):
			return nil, lineError(r.Line, "step: must be above %d, the step in line %d, is %d: order the lines by step, and separate runs of the same parameters by a column trial",
				before, last.Line, step)
		default:
			of[key] = len(groups)
			groups = append(groups, []Result{r})
		}
	}
	return groups, nil
}

// configuration returns the parameters of a line in a form that can be compared.
func (c *columns) configuration(r Result) string {
	parameters := make(map[string]any)
	for name, value := range r.Values {
		if c.fields[name].kind == kindParameter {
			parameters[name] = value
		}
	}
	return "parameters " + canonical(parameters)
}

// canonical returns a value of JSON with its keys in order.
func canonical(value any) string {
	encoded, err := json.Marshal(value)
	if err != nil {
		panic(err) // it was read from text
	}
	return string(encoded)
}

func digestOf(value any) string {
	sum := sha256.Sum256([]byte(canonical(value)))
	return hex.EncodeToString(sum[:16])
}

// rows returns the trial of lines of a curve, or of one line.
func (c *columns) rows(lines []Result) (imported, error) {
	last := lines[len(lines)-1]
	state, err := endOf(c.value(last, columnState))
	if err != nil {
		return imported{}, err
	}
	trial := &dparetov1.Trial{State: state, Parameters: make(map[string]*dparetov1.Value)}
	out := imported{trial: trial}
	var kept []any // for the digest
	for _, r := range lines {
		values := make(map[string]any)
		for name, value := range r.Values {
			f := c.fields[name]
			if value == nil || f.kind == kindIgnored || f == (field{kindTrial, columnTrial}) {
				continue
			}
			values[f.key()] = value
			if f.kind != kindParameter {
				continue
			}
			if trial.Parameters[f.id], err = view.ParameterValue(c.parameter(f.id), value); err != nil {
				return imported{}, fmt.Errorf("parameter %s: %w", f.id, err)
			}
		}
		kept = append(kept, values)
		m, err := c.measurement(r)
		if err != nil {
			return imported{}, err
		}
		trial.Measurements = append(trial.Measurements, m)
	}
	if err := c.curve(trial, c.value(last, columnMeasurements)); err != nil {
		return imported{}, err
	}
	if trial.Note, _ = textOf(c.value(last, columnNote)); state != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		if trial.StateReason, _ = textOf(c.value(last, columnReason)); trial.GetStateReason() == "" {
			trial.StateReason = "imported"
		}
	}
	c.settle(trial)
	if out.digest = digestOf(kept); len(kept) == 1 {
		out.digest = digestOf(kept[0])
	}
	return out, nil
}

// key returns the name of a field for the digest.
func (f field) key() string {
	switch f.kind {
	case kindRuns:
		return f.id + "." + view.RunsColumn
	case kindStandardError:
		return f.id + "." + view.StandardErrorColumn
	case kindTrial:
		return view.TrialPrefix + f.id
	case kindIgnored, kindParameter, kindMetric:
	}
	return f.id
}

// settle makes the last measurement of a successful trial its final one. What others were measured at no
// step is no result.
func (c *columns) settle(trial *dparetov1.Trial) {
	last := len(trial.GetMeasurements()) - 1
	if trial.GetState() == dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		trial.FinalMeasurement, trial.Measurements = trial.GetMeasurements()[last], trial.GetMeasurements()[:last]
		return
	}
	if m := trial.GetMeasurements()[last]; m.GetStep() == 0 || len(m.GetMetrics()) == 0 {
		trial.Measurements = trial.GetMeasurements()[:last]
	}
}

// measurement returns what a line says was measured.
func (c *columns) measurement(r Result) (*dparetov1.Measurement, error) {
	metrics := make(map[string]*dparetov1.MetricValue)
	m := &dparetov1.Measurement{Metrics: metrics}
	metric := func(id string) *dparetov1.MetricValue {
		if metrics[id] == nil {
			metrics[id] = new(dparetov1.MetricValue)
		}
		return metrics[id]
	}
	for _, name := range slices.Sorted(maps.Keys(r.Values)) {
		f, value := c.fields[name], r.Values[name]
		if value == nil {
			continue
		}
		var err error
		switch f.kind {
		case kindMetric, kindRuns:
			err = metricValue(metric(f.id), value)
		case kindStandardError:
			var x float64
			x, err = number(value)
			metric(f.id).StandardError = &x
		case kindTrial:
			if f.id == columnSeconds {
				var x float64
				x, err = number(value)
				m.Elapsed = durationpb.New(time.Duration(x * float64(time.Second)))
			}
		case kindIgnored, kindParameter:
		}
		if err != nil {
			if f.kind != kindTrial {
				return nil, fmt.Errorf("metric %s: %w", f.id, err)
			}
			return nil, fmt.Errorf("%s: %w", f.id, err)
		}
	}
	for id, v := range metrics {
		if len(v.GetRuns()) > 0 {
			v.Value = nil // the server derives it
		} else if v.Value == nil {
			return nil, fmt.Errorf("metric %s: has a standard error and no value", id)
		}
	}
	var err error
	m.Step, _, err = c.step(r)
	return m, err
}

// curve puts the measurements in a list of JSON before those that a trial has. If the trial's own has no
// metric, the last of the list is the final one.
func (c *columns) curve(trial *dparetov1.Trial, value any) error {
	if value == nil {
		return nil
	}
	elements, ok, err := list(value)
	if err != nil || !ok {
		return errors.New("measurements: must be a list of objects such as {\"step\": 1, \"error\": 0.5}")
	}
	var before []*dparetov1.Measurement
	for i, element := range elements {
		object, ok := element.(map[string]any)
		if !ok {
			return fmt.Errorf("measurements[%d]: must be an object", i)
		}
		inner := newColumns(c.spec, c.mapping, nil)
		if err := inner.add(slices.Sorted(maps.Keys(object))); err != nil {
			return fmt.Errorf("measurements[%d]: %w", i, err)
		}
		maps.Copy(c.used, inner.used)
		for name, f := range inner.fields {
			if f.kind == kindParameter || f.kind == kindTrial && f.id != columnStep && f.id != columnSeconds {
				return fmt.Errorf("measurements[%d]: %q is no metric", i, name)
			}
		}
		m, err := inner.measurement(Result{Values: object})
		if err != nil {
			return fmt.Errorf("measurements[%d]: %w", i, err)
		}
		before = append(before, m)
	}
	if own := trial.GetMeasurements(); len(before) > 0 && len(own[len(own)-1].GetMetrics()) == 0 {
		trial.Measurements = own[:len(own)-1]
	}
	trial.Measurements = slices.Concat(before, trial.GetMeasurements())
	return nil
}

// metricValue sets the value of one run, or the values of several.
func metricValue(to *dparetov1.MetricValue, value any) error {
	elements, isList, err := list(value)
	if err != nil {
		return err
	}
	if !isList {
		x, err := number(value)
		to.Value = &x
		return err
	}
	if len(elements) == 0 {
		return errors.New("must be a number or a list of numbers, is an empty list")
	}
	to.Runs = make([]float64, len(elements))
	for i, element := range elements {
		if to.Runs[i], err = number(element); err != nil {
			return fmt.Errorf("run %d: %w", i+1, err)
		}
	}
	return nil
}

// number returns the number in a cell, or a value of JSON.
func number(value any) (float64, error) {
	written, ok := textOf(value)
	if _, isBool := value.(bool); !ok || isBool {
		return 0, fmt.Errorf("must be a number, is %v", value)
	}
	return view.Number(written)
}

// isTrialMessage reports whether an object is a trial as the server, or Vizier, writes it.
func isTrialMessage(spec *dparetov1.StudySpec, values map[string]any) bool {
	switch values["parameters"].(type) {
	case map[string]any, []any:
		return (&columns{spec: spec}).metric("parameters") == nil
	default:
		return false
	}
}

// message returns the trial in an object that the server, or Vizier, wrote.
func (c *columns) message(values map[string]any) (imported, error) {
	state, err := endOf(values["state"])
	if err != nil {
		return imported{}, err
	}
	if _, ok := values["parameters"].([]any); ok {
		values = fromVizier(values)
	}
	delete(values, "state") // words of other programs are none of the contract's
	inside, err := c.renamed(values)
	if err != nil {
		return imported{}, err
	}
	from := new(dparetov1.Trial)
	if err := studyfile.Decode([]byte(canonical(inside)), from); err != nil {
		return imported{}, err
	}
	trial := &dparetov1.Trial{
		Parameters: make(map[string]*dparetov1.Value), Labels: from.GetLabels(), Note: from.GetNote(),
		Attributes: from.GetAttributes(), Artifacts: from.GetArtifacts(),
	}
	for id, value := range from.GetParameters() {
		p := c.parameter(id)
		if p == nil {
			return imported{}, fmt.Errorf("parameters[%q]: is not a parameter of the study", id)
		}
		written := view.Value(value)
		if x, ok := written.(float64); ok {
			written = strconv.FormatFloat(x, 'g', -1, 64)
		}
		if trial.Parameters[id], err = view.ParameterValue(p, written); err != nil {
			return imported{}, fmt.Errorf("parameter %s: %w", id, err)
		}
	}
	for _, m := range from.GetMeasurements() {
		trial.Measurements = append(trial.Measurements, c.reported(m))
	}
	switch {
	case state != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		if trial.State, trial.StateReason = state, from.GetStateReason(); trial.GetStateReason() == "" {
			trial.StateReason = "imported"
		}
	case from.GetFinalMeasurement() != nil:
		trial.FinalMeasurement = c.reported(from.GetFinalMeasurement())
	case len(trial.GetMeasurements()) == 0:
		return imported{}, errUnfinished
	default:
		last := len(trial.GetMeasurements()) - 1
		trial.FinalMeasurement, trial.Measurements = trial.GetMeasurements()[last], trial.GetMeasurements()[:last]
	}
	encoded, err := protojson.Marshal(&dparetov1.Trial{
		Parameters: trial.GetParameters(), FinalMeasurement: trial.GetFinalMeasurement(), Measurements: trial.GetMeasurements(), State: trial.GetState(), StateReason: trial.GetStateReason(),
	})
	if err != nil {
		return imported{}, err
	}
	var outcome any
	if err := json.Unmarshal(encoded, &outcome); err != nil {
		return imported{}, err
	}
	return imported{source: from.GetName(), of: from.GetReplicateOf(), digest: digestOf(outcome), trial: trial}, nil
}

// reported returns what a worker reports of a measurement that the server has completed.
func (c *columns) reported(m *dparetov1.Measurement) *dparetov1.Measurement {
	out := &dparetov1.Measurement{Step: m.GetStep(), Elapsed: m.GetElapsed(), Seeded: m.GetSeeded(), Metrics: make(map[string]*dparetov1.MetricValue)}
	for id, v := range m.GetMetrics() {
		switch {
		case c.metric(id).GetComputed() != nil:
			if v.Reported != nil {
				out.Metrics[id] = &dparetov1.MetricValue{Value: v.Reported}
			}
		case len(v.GetRuns()) > 0:
			out.Metrics[id] = &dparetov1.MetricValue{Runs: v.GetRuns()}
		default:
			out.Metrics[id] = &dparetov1.MetricValue{Value: v.Value, StandardError: v.StandardError}
		}
	}
	return out
}

// renamed returns the fields of a trial with the parameters and metrics of the mapping, and without what
// the server adds.
func (c *columns) renamed(values map[string]any) (map[string]any, error) {
	out := maps.Clone(values)
	for _, name := range []string{
		"computed_metrics", "computedMetrics", "provenance", "warnings", "lease", "worker_id", "workerId", "past_attempts", "pastAttempts",
		"create_time", "createTime", "start_time", "startTime", "end_time", "endTime", columnOrigin,
	} {
		delete(out, name)
	}
	var failed error
	rename := func(holder map[string]any, key string) {
		entries, ok := holder[key].(map[string]any)
		if !ok {
			return
		}
		renamed := make(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(entries)) {
			f, err := c.find(name)
			if err != nil && failed == nil {
				failed = err
			}
			if err != nil || f.kind == kindIgnored {
				continue
			}
			if _, ok := renamed[f.id]; ok && failed == nil {
				failed = fmt.Errorf("two of %s are %s", key, f.id)
			}
			renamed[f.id] = entries[name]
		}
		holder[key] = renamed
	}
	rename(out, "parameters")
	for _, key := range []string{"final_measurement", "finalMeasurement"} {
		if m, ok := out[key].(map[string]any); ok {
			rename(m, "metrics")
		}
	}
	measurements, _ := out["measurements"].([]any)
	for _, element := range measurements {
		if m, ok := element.(map[string]any); ok {
			rename(m, "metrics")
		}
	}
	return out, failed
}

// fromVizier returns the fields of a trial of Vizier by their names in the contract.
func fromVizier(values map[string]any) map[string]any {
	get := func(from map[string]any, names ...string) any {
		for _, name := range names {
			if value, ok := from[name]; ok {
				return value
			}
		}
		return nil
	}
	entries := func(value any, ids ...string) map[string]any {
		out := make(map[string]any)
		elements, _ := value.([]any)
		for _, element := range elements {
			entry, _ := element.(map[string]any)
			id, _ := textOf(get(entry, ids...))
			out[id] = get(entry, "value")
		}
		return out
	}
	measurement := func(value any) any {
		from, ok := value.(map[string]any)
		if !ok {
			return nil
		}
		metrics := make(map[string]any)
		for id, value := range entries(get(from, "metrics"), "metricId", "metric_id", "name") {
			metrics[id] = map[string]any{"value": value}
		}
		return map[string]any{
			"metrics": metrics, "step": get(from, "stepCount", "step_count"), "elapsed": get(from, "elapsedDuration", "elapsed_duration"),
		}
	}
	out := map[string]any{
		"name":         get(values, "name"),
		"parameters":   entries(get(values, "parameters"), "parameterId", "parameter_id", "name"),
		"state_reason": get(values, "infeasibleReason", "infeasible_reason"),
	}
	if final := measurement(get(values, "finalMeasurement", "final_measurement")); final != nil {
		out["final_measurement"] = final
	}
	var curve []any
	measurements, _ := get(values, "measurements").([]any)
	for _, m := range measurements {
		curve = append(curve, measurement(m))
	}
	if curve != nil {
		out["measurements"] = curve
	}
	return out
}
