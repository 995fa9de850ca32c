package report

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"slices"
	"strings"
	"time"

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
	"id":           func(name string) string { return name[strings.LastIndexByte(name, '/')+1:] },
}).Parse(source))

// view is what the templates show.
type view struct {
	*Report

	Made            time.Time
	Info            *dparetov1.GetServerInfoResponse
	Objectives      []*dparetov1.MetricSpec
	Front           *dparetov1.Front
	Best, Knee      *words.Result
	KneeEpsilon     string
	FrontProblem    string
	Figures         []template.HTML
	Ledger          *dparetov1.GetPrivacyLedgerResponse
	LedgerProblem   string
	Releases        []*dparetov1.Release
	Settings        [][2]string
	Specification   string
	EpsilonIsColumn bool
	Assumptions     []*dparetov1.Assumption
	Style           template.CSS
}

func (r *Report) view() *view {
	knee, kneeEpsilon := words.Knee(r.study.GetSpec(), r.front), ""
	if m := epsilonObjective(r.study.GetSpec()); knee != nil && m != nil {
		kneeEpsilon = words.Epsilon(knee.Point.GetValues()[m.GetId()].GetValue())
	}
	return &view{
		Best: words.Best(r.study.GetSpec(), r.front), Knee: knee, KneeEpsilon: kneeEpsilon,
		Report: r, Made: r.made, Info: r.info, Objectives: r.objectives(), Front: r.front, FrontProblem: r.frontProblem, Figures: r.figures(),
		Ledger: r.ledger, LedgerProblem: r.ledgerProblem, Releases: r.releases, Settings: r.settings(), Specification: r.specification,
		EpsilonIsColumn: epsilonObjective(r.study.GetSpec()) != nil, Assumptions: r.assumptions(), Style: template.CSS(look.CSS), //nolint:gosec // a file of ours
	}
}

// Body returns the report as a part of a page, with headings from the second level on.
func (r *Report) Body() (template.HTML, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, "body", r.view()); err != nil {
		return "", fmt.Errorf("report: %w", err)
	}
	return template.HTML(out.String()), nil //nolint:gosec // a template has escaped it
}

// Write writes the report as one file.
func (r *Report) Write(w io.Writer) error {
	var out bytes.Buffer // so that a failure leaves no half of a file
	if err := templates.ExecuteTemplate(&out, "document", r.view()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if _, err := out.WriteTo(w); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// assumptions returns what the guarantees of the front's points rest on.
func (r *Report) assumptions() []*dparetov1.Assumption {
	var all []*dparetov1.Assumption
	for _, p := range r.front.GetPoints() {
		all = show.JoinAssumptions(all, p.GetPrivacy().GetAssumptions())
	}
	return all
}

// figures draws the front: ε, or the first objective, against each of the others.
func (r *Report) figures() []template.HTML {
	objectives := r.objectives()
	if len(r.front.GetPoints()) == 0 || len(objectives) < 2 {
		return nil
	}
	x := epsilonObjective(r.study.GetSpec())
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

// axisLabel names an objective. What an ε means stands beside the picture.
func (r *Report) axisLabel(m *dparetov1.MetricSpec) string {
	if m == show.PrivacyMetric(r.study.GetSpec()) {
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
	for _, p := range r.front.GetPoints() {
		a, b := p.GetValues()[x.GetId()], p.GetValues()[y.GetId()]
		if math.IsInf(a.GetValue(), 0) || math.IsInf(b.GetValue(), 0) {
			continue
		}
		mark := chart.Mark{Point: chart.Point{X: a.GetValue(), Y: b.GetValue()}}
		name := "trial " + p.GetTrial()[strings.LastIndexByte(p.GetTrial(), '/')+1:]
		if id := p.GetConstantPoint(); id != "" {
			name = "no run: " + show.ConstantPoint(r.study.GetSpec(), id)
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
	slices.SortFunc(marks, func(a, b chart.Mark) int {
		switch {
		case a.X < b.X:
			return -1
		case a.X > b.X:
			return 1
		default:
			return 0
		}
	})
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
