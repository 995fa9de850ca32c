package front

import (
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
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
		X:         axis(spec, x),
		Y:         axis(spec, y),
		FrontName: enum.Name(front.GetKind()) + " front",
	}
	if statement := show.PrivacyStatement(spec); statement != "" {
		f.Subtitle = append(f.Subtitle, statement)
	}
	if slices.ContainsFunc(front.GetWarnings(), func(w *dparetov1.Warning) bool { return w.GetCode() == "SEEDED" }) {
		f.Subtitle = append(f.Subtitle, "not for release: trials were seeded, so that no ε holds for them")
	}
	summary := fmt.Sprintf("%d trials, hypervolume %s", len(trials), show.Number(front.GetHypervolume()))
	if n := len(objectives); n > 2 {
		summary += fmt.Sprintf(", the first 2 of %d objectives", n)
	}
	f.Subtitle = append(f.Subtitle, summary)
	for _, trial := range trials {
		f.Points = append(f.Points, points(spec, trial, x.GetId(), y.GetId())...)
	}
	for _, p := range front.GetPoints() {
		if p.GetBeyondReference() {
			continue // it adds nothing; its measurements are among the points
		}
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

// hypervolumeCurve returns the picture of the hypervolume of a kind of front over the course
// of a study: over the steps trained if the study counts them.
func hypervolumeCurve(study *dparetov1.Study, kind dparetov1.FrontKind, history []*dparetov1.HypervolumePoint) *plot.Curve {
	c := &plot.Curve{
		Title:    view.Title(study),
		Subtitle: []string{enum.Name(kind) + " front"},
		X:        plot.Axis{Label: "trials"},
		Y:        plot.Axis{Label: "hypervolume"},
	}
	steps := study.GetSpec().GetCheckpointParameter()
	if steps != "" {
		c.X.Label = steps
	}
	for _, p := range history {
		x := p.GetCompletedTrials()
		if steps != "" {
			x = p.GetSteps()
		}
		c.Points = append(c.Points, plot.Point{X: float64(x), Y: p.GetHypervolume()})
	}
	return c
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
func axis(spec *dparetov1.StudySpec, m *dparetov1.MetricSpec) plot.Axis {
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
		Reference: m.GetReferenceValue(),
	}
}
