package report

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/look"
	"github.com/dpareto/dpareto/server/web/words"
)

//go:embed report.html
var source string

var templates = template.Must(template.New("report").Funcs(template.FuncMap{
	"name":         enum.Name,
	"domain":       show.Parameter,
	"metric":       show.Metric,
	"guarantee":    guaranteeText,
	"epsilon":      words.Epsilon,
	"number":       show.Number,
	"randomTrials": show.RandomTrials,
	"count":        show.Count,
	"warning":      words.WarningOf,
	"value":        words.Value,
	"up":           show.NumberUp,
	"assumption":   show.Assumption,
	"join":         strings.Join,
	"time":         words.Time,
	"duration":     show.Duration,
	"style":        func() template.CSS { return template.CSS(look.CSS) }, //nolint:gosec // a file of ours
	"id":           func(name string) string { return name[strings.LastIndexByte(name, '/')+1:] },
}).Parse(source))

// Body returns the report as a part of a page, with headings from the second level on.
func (r *Report) Body() (template.HTML, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, "body", r); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // a template has escaped it
}

// Write writes the report as one file.
func (r *Report) Write(w io.Writer) error {
	var out bytes.Buffer // so that a failure leaves no half of a file
	if err := templates.ExecuteTemplate(&out, "document", r); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// Assumptions returns the assumptions of the guarantees of the front's points.
func (r *Report) Assumptions() []*dparetov1.Assumption {
	var all []*dparetov1.Assumption
	for _, p := range r.Front.GetPoints() {
		all = show.JoinAssumptions(all, p.GetPrivacy().GetAssumptions())
	}
	return all
}

// Figures draws the front: ε, or the first objective, against each of the others.
func (r *Report) Figures() []template.HTML {
	objectives := r.Objectives()
	if len(r.Front.GetPoints()) == 0 || len(objectives) < 2 {
		return nil
	}
	x := epsilonObjective(r.Study.GetSpec())
	if x == nil {
		x = objectives[0]
	}
	var figures []template.HTML
	for _, y := range objectives {
		if y != x {
			figures = append(figures, r.figure(x, y, len(objectives) == 2))
		}
	}
	return figures
}

// axisLabel names an objective. The meaning of an ε stands next to the picture.
func (r *Report) axisLabel(m *dparetov1.MetricSpec) string {
	if m == show.PrivacyMetric(r.Study.GetSpec()) {
		return "ε of one run, at most"
	}
	if m.GetUnit() != "" {
		return m.GetId() + " (" + m.GetUnit() + ")"
	}
	return m.GetId()
}

// scale returns the scale of an axis: logarithmic where an objective is modelled so.
func scale(m *dparetov1.MetricSpec, values []float64) chart.Scale {
	if m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG && !slices.ContainsFunc(values, func(v float64) bool { return v <= 0 }) {
		return chart.Log
	}
	return chart.Linear
}

// figure draws two objectives; with stairs if these are all.
func (r *Report) figure(x, y *dparetov1.MetricSpec, stairs bool) template.HTML {
	var xs, ys []float64
	var marks []chart.Mark
	for _, p := range r.Front.GetPoints() {
		a, b := p.GetValues()[x.GetId()], p.GetValues()[y.GetId()]
		if math.IsInf(a.GetValue(), 0) || math.IsInf(b.GetValue(), 0) {
			continue
		}
		mark := chart.Mark{Point: chart.Point{X: a.GetValue(), Y: b.GetValue()}}
		name := "trial " + p.GetTrial()[strings.LastIndexByte(p.GetTrial(), '/')+1:]
		if id := p.GetConstantPoint(); id != "" {
			name = "no run: " + show.ConstantPoint(r.Study.GetSpec(), id)
		}
		mark.Label = fmt.Sprintf("%s: %s %s, %s %s", name,
			x.GetId(), objectiveText(x, a), y.GetId(), objectiveText(y, b))
		if p.GetConstantPoint() == "" || a.GetValue() > 0 { // ε = 0 would take the logarithm from the axis
			xs = append(xs, a.GetValue())
		}
		ys = append(ys, b.GetValue())
		if b.Lower != nil && b.Upper != nil {
			mark.Lower, mark.Upper = b.GetLower(), b.GetUpper()
			ys = append(ys, b.GetLower(), b.GetUpper())
		}
		marks = append(marks, mark)
	}
	axisX, axisY := chart.Fit(r.axisLabel(x), scale(x, xs), xs...), chart.Fit(r.axisLabel(y), scale(y, ys), ys...)
	for i := range marks {
		marks[i].X, marks[i].Y = axisX.Edge(marks[i].X), axisY.Edge(marks[i].Y)
	}
	slices.SortFunc(marks, func(a, b chart.Mark) int { return cmp.Compare(a.X, b.X) })
	c := chart.Chart{
		ID: "front-" + y.GetId(), Title: "Front of " + x.GetId() + " and " + y.GetId(),
		Description: fmt.Sprintf("%d points that no other one beats in every objective, by what fresh runs would give, with 90 %% intervals.", len(marks)),
		X:           axisX, Y: axisY,
	}
	if stairs && x.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE {
		points := make([]chart.Point, len(marks))
		for i := range marks {
			points[i] = marks[i].Point
		}
		c.Steps("", points)
	}
	c.Marks("", "circle", marks)
	return c.SVG()
}
