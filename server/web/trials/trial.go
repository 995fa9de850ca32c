package trials

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// maxComparedTrials bounds the trials that are compared at a time.
const maxComparedTrials = 8

// sortedKeys returns the keys of a map in ascending order.
func sortedKeys[K cmp.Ordered, V any](m map[K]V) []K { return slices.Sorted(maps.Keys(m)) }

// trialPage is what trial.html shows.
type trialPage struct {
	site.Page

	Detail *trialData
	Form   *site.Form // of labels and note
	Again  string     // URL of the form that queues the configuration
}

// showTrial shows a trial: /studies/{study}/trials/{trial}.
func (s views) showTrial(w http.ResponseWriter, r *http.Request) error {
	return s.renderTrial(w, r, http.StatusOK, nil)
}

// renderTrial shows a trial with a form that was refused, or nil.
func (s views) renderTrial(w http.ResponseWriter, r *http.Request, code int, refused *site.Form) error {
	frame, err := s.NewPage(r, "Trial "+r.PathValue("trial"))
	if err != nil {
		return err
	}
	resp, err := s.Studies.GetTrial(site.Outgoing(r), &dparetov1.GetTrialRequest{Name: trialName(r)})
	if err != nil {
		return err
	}
	frame.View = trialsView
	trial := resp.GetTrial()
	p := &trialPage{Page: *frame, Detail: newTrial(frame.Study, trial), Form: refused}
	if refused == nil {
		p.Form = &site.Form{Values: url.Values{labelsField: {labelLines(trial.GetLabels())}, noteField: {trial.GetNote()}}}
	}
	if trial.GetEndTime() == nil {
		p.Live = frame.Path() + "/live?part=trial-detail&trial=" + url.QueryEscape(r.PathValue("trial"))
	}
	again := make(url.Values)
	for name, value := range trial.GetParameters() {
		again.Set("parameters."+name, show.Value(value))
	}
	p.Again = frame.Path() + "/queue?" + again.Encode()
	s.Render(w, code, "trial", p)
	return nil
}

// trialName returns the name of the trial in a request's path.
func trialName(r *http.Request) string { return site.StudyName(r) + "/trials/" + r.PathValue("trial") }

// trialData is the content of the part "trial-detail".
type trialData struct {
	Study      *dparetov1.Study
	Trial      *dparetov1.Trial
	Parameters []exactText
	Metrics    []metricRow
	Statement  string // the meaning of an ε
	Seeded     bool
	Expected   []expectedRow
	Curves     []*curve
	Steps      *stepTable
	Attributes []namedText
	Artifacts  []artifactLink
}

// Pill is the class of the pill of the state.
func (d *trialData) Pill() string { return pillOf(d.Trial.GetState()) }

// namedText is a text with its name.
type namedText struct{ Name, Text string }

// exactText is a rounded value with its name, and the value as it is.
type exactText struct{ Name, Text, Exact string }

// metricRow is a metric of a trial.
type metricRow struct {
	Spec  *dparetov1.MetricSpec
	Label string
	Value *dparetov1.MetricValue
	Text  string
	Runs  string
}

// expectedRow compares the model's prediction of a metric with its value.
type expectedRow struct {
	Label      string
	Prediction *dparetov1.MetricPrediction
	Came       string // "" if it is not there yet
	Within     bool
}

// artifactLink is a file of a trial. Link is "" for what must not be a link.
type artifactLink struct {
	*dparetov1.Artifact

	Link string
}

func newTrial(study *dparetov1.Study, trial *dparetov1.Trial) *trialData {
	spec := study.GetSpec()
	d := &trialData{Study: study, Trial: trial, Statement: show.PrivacyStatement(spec), Seeded: show.IsSeeded(trial.GetWarnings())}
	for _, p := range spec.GetParameters() {
		if v := trial.GetParameters()[p.GetId()]; v != nil {
			d.Parameters = append(d.Parameters, exactText{p.GetId(), words.Value(v), show.Value(v)})
		}
	}
	for _, m := range spec.GetMetrics() {
		value := metricOf(trial, m.GetId())
		if value != nil && value.Value != nil {
			d.Metrics = append(d.Metrics, metricRow{m, words.Metric(m), value, words.Measured(m, value), runsText(value.GetRuns())})
		}
		// A computed metric was known before.
		if p := trial.GetProvenance().GetPredictions()[m.GetId()]; p != nil && m.GetComputed() == nil {
			row := expectedRow{Label: words.Metric(m), Prediction: p}
			if value != nil && value.Value != nil {
				row.Came, row.Within = show.Number(value.GetValue()), value.GetValue() >= p.GetLower() && value.GetValue() <= p.GetUpper()
			}
			d.Expected = append(d.Expected, row)
		}
	}
	d.Curves = curvesOf(spec, trial)
	d.Steps = newStepTable(spec, trial)
	for _, key := range sortedKeys(trial.GetAttributes()) {
		d.Attributes = append(d.Attributes, namedText{key, attributeText(trial.GetAttributes()[key])})
	}
	for _, a := range trial.GetArtifacts() {
		d.Artifacts = append(d.Artifacts, artifactLink{a, webLink(a.GetUri())})
	}
	return d
}

// shownRuns bounds the single runs that are listed.
const shownRuns = 50

// runsText lists the values of single runs.
func runsText(runs []float64) string {
	if len(runs) < 2 {
		return "" // the metric has the value
	}
	shown := make([]string, min(len(runs), shownRuns))
	for i := range shown {
		shown[i] = show.Number(runs[i])
	}
	text := strings.Join(shown, ", ")
	if more := len(runs) - shownRuns; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// attributeText returns an attribute as JSON.
func attributeText(v *structpb.Value) string {
	text, err := json.Marshal(v.AsInterface())
	if err != nil {
		return "(not finite)"
	}
	return string(text)
}

// webLink returns a URI that a browser may open as a page, "" for any other: a link such as
// javascript:... would run a script, and one with a password would send it.
func webLink(uri string) string {
	u, err := url.Parse(uri)
	if err != nil || u.Host == "" || u.User != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return ""
	}
	return u.String()
}

// trialPart makes the part "trial-detail": /studies/{study}/parts/trial-detail?trial=NUMBER.
func (s views) trialPart(ctx context.Context, r *site.PartRequest) (any, error) {
	study, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	trial, err := s.Studies.GetTrial(ctx, &dparetov1.GetTrialRequest{Name: r.Study + "/trials/" + site.ValidText(r.Query.Get("trial"))})
	if err != nil {
		return nil, err
	}
	return newTrial(study.GetStudy(), trial.GetTrial()), nil
}

// stepsOf returns the measurements of a trial with their steps, the final one included if it has a
// step of its own.
func stepsOf(spec *dparetov1.StudySpec, trial *dparetov1.Trial) []*dparetov1.Measurement {
	steps := trial.GetMeasurements()
	final := trial.GetFinalMeasurement()
	if final == nil {
		return steps
	}
	at := final.GetStep()
	if at == 0 {
		at = trial.GetParameters()[spec.GetCheckpointParameter()].GetIntValue() // 0 without
	}
	if at == 0 || len(steps) > 0 && steps[len(steps)-1].GetStep() >= at {
		return steps
	}
	last := &dparetov1.Measurement{Step: at, Elapsed: final.GetElapsed(), Metrics: final.GetMetrics(), ReportTime: final.GetReportTime()}
	return append(slices.Clone(steps), last)
}

// curve is a metric over the steps of trials.
type curve struct {
	Metric  string
	Picture template.HTML
	Legend  []curveKey // for several trials
}

// curveKey names a line of a curve.
type curveKey struct {
	Key  template.HTML
	Name string
}

// The looks of lines in one picture: with their marks they differ for every one of maxComparedTrials.
var (
	curveClasses = []string{"", "second", "third", "fourth"}
	curveShapes  = []string{"circle", "square"}
)

// curvesOf returns a curve for each metric that one of the trials has at two steps or more.
func curvesOf(spec *dparetov1.StudySpec, trials ...*dparetov1.Trial) []*curve {
	var curves []*curve
	for k, metric := range spec.GetMetrics() {
		c := &chart.Chart{ID: fmt.Sprintf("curve-%d", k), Title: words.Metric(metric) + " over " + stepLabel(spec), Description: "A line for each trial; the table has the numbers."}
		lines := make([][]chart.Point, len(trials))
		var xs, ys []float64
		for i, trial := range trials {
			lines[i] = pointsOf(spec, trial, metric)
			for _, p := range lines[i] {
				xs, ys = append(xs, p.X), append(ys, p.Y)
			}
		}
		if len(xs) < 2 || slices.Min(xs) == slices.Max(xs) {
			continue
		}
		scale := chart.Linear
		if metric.GetTransform() == dparetov1.Transform_TRANSFORM_LOG && slices.Min(ys) > 0 {
			scale = chart.Log
		}
		c.X, c.Y = chart.Fit(stepLabel(spec), chart.Linear, xs...), chart.Fit(words.Metric(metric), scale, ys...)
		c.X.Whole = true
		made := &curve{Metric: words.Metric(metric)}
		for i, line := range lines {
			class, shape := curveClasses[i%len(curveClasses)], curveShapes[i/len(curveClasses)%len(curveShapes)]
			c.Line(class, line)
			name := "trial " + site.ID(trials[i].GetName())
			if n := len(line); n > 0 {
				c.Marks(class, shape, []chart.Mark{{Point: line[n-1], Label: name + ", at the end: " + words.MetricValue(metric, line[n-1].Y)}})
			}
			if len(trials) > 1 {
				made.Legend = append(made.Legend, curveKey{chart.Key(class, shape, true), name})
			}
		}
		made.Picture = c.SVG()
		curves = append(curves, made)
	}
	return curves
}

// pointsOf returns the finite values of a metric over the steps of a trial.
func pointsOf(spec *dparetov1.StudySpec, trial *dparetov1.Trial, metric *dparetov1.MetricSpec) []chart.Point {
	var line []chart.Point
	for _, m := range stepsOf(spec, trial) {
		if v := m.GetMetrics()[metric.GetId()]; v != nil && v.Value != nil && !math.IsInf(v.GetValue(), 0) && !math.IsNaN(v.GetValue()) {
			line = append(line, chart.Point{X: float64(m.GetStep()), Y: v.GetValue()})
		}
	}
	return line
}

// stepLabel names the steps of measurements.
func stepLabel(spec *dparetov1.StudySpec) string {
	if checkpoint := spec.GetCheckpointParameter(); checkpoint != "" {
		return checkpoint
	}
	return "step"
}

// stepTable is the table of the measurements on the way.
type stepTable struct {
	StepLabel string
	Columns   []string
	Rows      []stepRow
}

type stepRow struct {
	Step  int64
	Cells []string
}

// newStepTable returns the table of a trial's measurements, nil for fewer than two.
func newStepTable(spec *dparetov1.StudySpec, trials ...*dparetov1.Trial) *stepTable {
	t := &stepTable{StepLabel: stepLabel(spec)}
	rows := make(map[int64][]string)
	width := len(trials) * len(spec.GetMetrics())
	for i, trial := range trials {
		for _, metric := range spec.GetMetrics() {
			label := words.Metric(metric)
			if len(trials) > 1 {
				label = "trial " + site.ID(trial.GetName()) + ": " + label
			}
			t.Columns = append(t.Columns, label)
		}
		for _, m := range stepsOf(spec, trial) {
			row := rows[m.GetStep()]
			if row == nil {
				row = make([]string, width)
				rows[m.GetStep()] = row
			}
			for k, metric := range spec.GetMetrics() {
				row[i*len(spec.GetMetrics())+k] = words.Measured(metric, m.GetMetrics()[metric.GetId()])
			}
		}
	}
	if len(rows) < 2 {
		return nil
	}
	for _, step := range sortedKeys(rows) {
		t.Rows = append(t.Rows, stepRow{step, rows[step]})
	}
	return t
}

// compareTrialsPage is what compare-trials.html shows.
type compareTrialsPage struct {
	site.Page

	Trials    []*dparetov1.Trial
	Groups    []compareGroup
	Statement string
	Seeded    bool
	Curves    []*curve
	Steps     *stepTable
}

// compareGroup are rows of one kind.
type compareGroup struct {
	Title string
	Rows  []compareRow
}

// compareRow is what several trials have of one thing.
type compareRow struct {
	Name    string
	Cells   []string
	Differs bool
}

// compareTrials shows trials side by side: /studies/{study}/trials/compare?trial=1&trial=2.
func (s views) compareTrials(w http.ResponseWriter, r *http.Request) error {
	var numbers []string
	for _, number := range r.URL.Query()["trial"] {
		if !slices.Contains(numbers, number) {
			numbers = append(numbers, number)
		}
	}
	if len(numbers) < 2 || len(numbers) > maxComparedTrials {
		return site.Invalid(fmt.Errorf("choose 2 to %d trials to compare, not %d", maxComparedTrials, len(numbers)))
	}
	frame, err := s.NewPage(r, "Compare trials")
	if err != nil {
		return err
	}
	frame.View = trialsView
	spec := frame.Study.GetSpec()
	p := &compareTrialsPage{Page: *frame, Statement: show.PrivacyStatement(spec)}
	for _, number := range numbers {
		if _, err := strconv.ParseInt(number, 10, 64); err != nil {
			return site.Invalid(errors.New("trials are compared by their numbers"))
		}
		resp, err := s.Studies.GetTrial(site.Outgoing(r), &dparetov1.GetTrialRequest{Name: site.StudyName(r) + "/trials/" + number})
		if err != nil {
			return err
		}
		p.Trials = append(p.Trials, resp.GetTrial())
		p.Seeded = p.Seeded || show.IsSeeded(resp.GetTrial().GetWarnings())
	}
	p.Groups = compareConfigurations(spec, p.Trials)
	p.Curves, p.Steps = curvesOf(spec, p.Trials...), newStepTable(spec, p.Trials...)
	s.Render(w, http.StatusOK, "compare-trials", p)
	return nil
}

// compareConfigurations returns the rows of a comparison.
func compareConfigurations(spec *dparetov1.StudySpec, trials []*dparetov1.Trial) []compareGroup {
	configuration := compareGroup{Title: "Configuration"}
	for _, p := range spec.GetParameters() {
		row := compareRow{Name: p.GetId()}
		first := show.Value(trials[0].GetParameters()[p.GetId()])
		for _, trial := range trials {
			value := trial.GetParameters()[p.GetId()]
			row.Cells = append(row.Cells, words.Value(value))
			row.Differs = row.Differs || show.Value(value) != first
		}
		configuration.Rows = append(configuration.Rows, row)
	}
	results := compareGroup{Title: "Results"}
	for _, m := range spec.GetMetrics() {
		row := compareRow{Name: words.Metric(m)}
		first := metricOf(trials[0], m.GetId()).GetValue()
		for _, trial := range trials {
			value := metricOf(trial, m.GetId())
			text := words.Measured(m, value)
			if value != nil && value.StandardError != nil {
				text += " ± " + show.Number(value.GetStandardError())
			}
			row.Cells = append(row.Cells, text)
			row.Differs = row.Differs || value.GetValue() != first || (text == "") != (row.Cells[0] == "")
		}
		results.Rows = append(results.Rows, row)
	}
	return []compareGroup{configuration, results}
}
