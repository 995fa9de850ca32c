package front

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/command"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// Figure returns the picture of a front over all trials of its study. It shows the first
// two objectives; a study with one is drawn against itself.
func Figure(study *dparetov1.Study, front *dparetov1.Front, trials []*dparetov1.Trial) *plot.Figure {
	spec := study.GetSpec()
	objectives := show.Objectives(spec)
	x := objectives[0]
	y := objectives[min(1, len(objectives)-1)]
	f := &plot.Figure{
		Title:     view.Title(study),
		X:         axis(spec, front, x),
		Y:         axis(spec, front, y),
		FrontName: enum.Name(front.GetKind()) + " front",
	}
	if statement := show.PrivacyStatement(spec); statement != "" {
		f.Subtitle = append(f.Subtitle, statement)
	}
	if isSeeded(front) {
		f.Subtitle = append(f.Subtitle, seededLine)
	}
	summary := fmt.Sprintf("%d trials, hypervolume %s", len(trials), show.Number(front.GetHypervolume()))
	if n := len(objectives); n > 2 {
		summary += fmt.Sprintf(", the first 2 of %d objectives", n)
	}
	f.Subtitle = append(f.Subtitle, summary)
	for _, trial := range trials {
		f.Points = append(f.Points, points(spec, trial, x.GetId(), y.GetId())...)
	}
	for _, p := range drawn(front) {
		value := p.GetValues()[y.GetId()]
		point := plot.FrontPoint{
			X: p.GetValues()[x.GetId()].GetValue(), Y: value.GetValue(), Lower: value.GetValue(), Upper: value.GetValue(),
		}
		if id := p.GetConstantPoint(); id != "" {
			point.Label = "no run: " + id
		}
		if value.Lower != nil && value.Upper != nil {
			point.Lower, point.Upper = value.GetLower(), value.GetUpper()
		}
		f.Front = append(f.Front, point)
	}
	return f
}

// seededLine is what a picture says of a study with seeded trials.
const seededLine = "not for release: trials were seeded, so that no ε holds for them"

// isSeeded reports whether a front comes with the warning that trials were seeded.
func isSeeded(front *dparetov1.Front) bool {
	return slices.ContainsFunc(front.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "SEEDED" })
}

// drawn returns the points of a front that its picture shows. Points beyond the reference add
// nothing; their measurements are among the trials' points.
func drawn(front *dparetov1.Front) []*dparetov1.FrontPoint {
	return slices.DeleteFunc(slices.Clone(front.GetPoints()), (*dparetov1.FrontPoint).GetBeyondReference)
}

// colorBy gives the points of a front the colours of their values of a categorical parameter, with
// the number of points of each value in the legend. An empty id changes nothing.
func colorBy(f *plot.Figure, spec *dparetov1.StudySpec, front *dparetov1.Front, id string) error {
	if id == "" {
		return nil
	}
	var known, groups []string
	for _, p := range spec.GetParameters() {
		if domain := p.GetCategoricalDomain(); domain != nil {
			known = append(known, p.GetId())
			if p.GetId() == id {
				groups = slices.Clone(domain.GetCategories())
			}
		}
	}
	switch {
	case len(known) == 0:
		return command.Usagef("--color-by %s: the study has no categorical parameters", id)
	case groups == nil:
		return command.Usagef("--color-by: must be one of the study's categorical parameters %s, is %q", strings.Join(known, ", "), id)
	case len(groups) >= plot.MaxGroups:
		return command.Usagef("--color-by %s: it has %d categories, and a picture has colours for %d", id, len(groups), plot.MaxGroups-1)
	default:
		groups = append(groups, "no "+id) // for points where the parameter's condition does not hold
	}
	counts := make([]int, len(groups))
	for i, p := range drawn(front) {
		group := len(groups) - 1
		if v := p.GetParameters()[id]; v != nil {
			group = slices.Index(groups, v.GetStringValue())
		}
		f.Front[i].Group = group
		counts[group]++
	}
	for g, name := range groups {
		f.Groups = append(f.Groups, fmt.Sprintf("%s (%d)", name, counts[g]))
	}
	return nil
}

// points returns what was measured in a trial: the end of its run and, if the study has a
// checkpoint parameter, the measurements before.
func points(spec *dparetov1.StudySpec, trial *dparetov1.Trial, x, y string) []plot.Point {
	final := trial.GetFinalMeasurement()
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED {
		return nil
	}
	var out []plot.Point
	if spec.GetCheckpointParameter() != "" {
		for _, m := range trial.GetMeasurements() {
			if m.GetStep() != final.GetStep() {
				out = append(out, plot.Point{X: measured(m, x), Y: measured(m, y), Minor: true})
			}
		}
	}
	return append(out, plot.Point{X: measured(final, x), Y: measured(final, y)})
}

// measured returns a metric of a measurement, NaN if it has no value.
func measured(m *dparetov1.Measurement, metric string) float64 {
	value := m.GetMetrics()[metric]
	if value == nil || value.Value == nil {
		return math.NaN()
	}
	return value.GetValue()
}

// axis returns the axis of an objective.
func axis(spec *dparetov1.StudySpec, front *dparetov1.Front, m *dparetov1.MetricSpec) plot.Axis {
	label := m.GetId()
	if privacy := show.PrivacyMetric(spec); privacy != nil && m.GetId() == privacy.GetId() {
		label = "ε of one run"
		if m.GetId() != "epsilon" {
			label = m.GetId() + ": " + label
		}
	}
	if m.GetUnit() != "" {
		label += " (" + m.GetUnit() + ")"
	}
	return plot.Axis{
		Label:     label,
		Log:       m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG,
		Maximise:  m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE,
		Reference: front.GetReference()[m.GetId()],
	}
}
