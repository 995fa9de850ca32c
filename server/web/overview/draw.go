package overview

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// chartScale returns the scale with a name.
func chartScale(name string) chart.Scale {
	return map[string]chart.Scale{scaleLog: chart.Log, scaleLogit: chart.Logit}[name]
}

// axis returns an axis that shows values, within the bounds of its settings.
func (a *axisSettings) axis(values []float64) chart.Axis {
	axis := chart.Fit(words.Metric(a.Metric), chartScale(a.Scale), values...)
	low, high := axis.Min, axis.Max
	if !math.IsNaN(a.Bounds[0]) {
		low, high = a.Bounds[0], max(a.Bounds[0], high)
	}
	if !math.IsNaN(a.Bounds[1]) {
		low, high = min(a.Bounds[1], low), a.Bounds[1]
	}
	return chart.Between(axis.Label, axis.Scale, low, high)
}

// extent returns the values of an objective that a picture has room for: all that are known, and the
// reference value unless it would squeeze the others into less than half of the axis.
func (d *frontData) extent(a *axisSettings) []float64 {
	values := append(frontValues(d.Observed, a.Metric), frontValues(d.Posterior, a.Metric)...)
	with := append(slices.Clone(values), d.reference(a.Metric))
	scale := chartScale(a.Scale)
	room := func(values []float64) float64 {
		axis := chart.Fit("", scale, values...)
		return scale.Place(axis.Max) - scale.Place(axis.Min)
	}
	if len(values) > 1 && room(with) > 2*room(values) {
		return values
	}
	return with
}

// reference returns the reference value of an objective.
func (d *frontData) reference(m *dparetov1.MetricSpec) float64 {
	return d.Observed.GetReference()[m.GetId()]
}

// frontValues returns the values of an objective at the points of a front and beside it, and the ends
// of their intervals.
func frontValues(front *dparetov1.Front, m *dparetov1.MetricSpec) []float64 {
	var values []float64
	for _, p := range front.GetPoints() {
		v := p.GetValues()[m.GetId()]
		values = append(values, v.GetValue())
		if v.Lower != nil && v.Upper != nil {
			values = append(values, v.GetLower(), v.GetUpper())
		}
	}
	for _, o := range front.GetOthers() {
		values = append(values, o.GetValues()[m.GetId()])
	}
	return values
}

// best returns the end of an axis at which an objective is best.
func best(m *dparetov1.MetricSpec, a *chart.Axis) float64 {
	if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		return a.Max
	}
	return a.Min
}

// plane draws the front in the plane of two objectives.
func (d *frontData) plane(chartID string, i, j int, size chart.Size) *chart.Chart {
	all := d.Objectives()
	x, y := all[i], all[j]
	c := &chart.Chart{
		ID: chartID, Size: size, Title: "Front: " + words.Metric(y) + " over " + words.Metric(x), Description: d.Description(),
		X: d.Settings.Axes[i].axis(d.extent(&d.Settings.Axes[i])), Y: d.Settings.Axes[j].axis(d.extent(&d.Settings.Axes[j])),
	}
	c.Rectangle("reference", chart.Point{X: d.reference(x), Y: d.reference(y)},
		chart.Point{X: best(x, &c.X), Y: best(y, &c.Y)}, "Within the reference values: the region that counts")
	c.Text("tick", "end", chart.Point{X: c.X.Value(min(0.99, max(0.5, c.X.At(d.reference(x))-0.004))), Y: c.Y.Value(min(0.96, max(0, c.Y.At(d.reference(y))+0.015)))}, d.countsText(size, x, y))
	c.Text("tick", "start", chart.Point{X: c.X.Value(0.008), Y: c.Y.Value(0.03)}, map[bool]string{true: "↙ better"}[x.GetGoal() != dparetov1.Goal_GOAL_MAXIMIZE && y.GetGoal() != dparetov1.Goal_GOAL_MAXIMIZE])
	if x.GetComputed().GetPrivacy() != nil && c.X.Min < 1 && c.X.Max > 1 {
		c.Upright("reference", 1, 0.9, "ε = 1")
	}
	d.cloud(c, x, y)
	if d.Posterior != nil {
		if d.Settings.Kind == kindBoth {
			drawFront(c, d.Study, d.Observed, frontStyle{id: chartID + "-observed", class: comparedClasses[1], shape: comparedShapes[1], x: x, y: y, line: len(all) == 2})
		}
		drawFront(c, d.Study, d.Posterior, frontStyle{id: chartID, shape: comparedShapes[0], x: x, y: y, line: len(all) == 2, means: true})
	} else {
		drawFront(c, d.Study, d.Observed, frontStyle{id: chartID + "-observed", class: comparedClasses[1], shape: comparedShapes[1], x: x, y: y, line: len(all) == 2})
	}
	return c
}

// countsText names the region that counts, with its edges where there is room for them.
func (d *frontData) countsText(size chart.Size, x, y *dparetov1.MetricSpec) string {
	if size == chart.Medium {
		return "region that counts"
	}
	parts := make([]string, 2)
	for i, m := range []*dparetov1.MetricSpec{x, y} {
		relation := map[bool]string{true: " ≥ ", false: " ≤ "}[m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE]
		parts[i] = words.Metric(m) + relation + show.Plain(show.Rounded(d.reference(m), 4))
	}
	return "counts: " + strings.Join(parts, ", ")
}

// cloud draws the configurations beside the front, and what runs have measured so far.
func (d *frontData) cloud(c *chart.Chart, x, y *dparetov1.MetricSpec) {
	var others, onTheWay []chart.Point
	for _, o := range d.Observed.GetOthers() {
		p := chart.Point{X: o.GetValues()[x.GetId()], Y: o.GetValues()[y.GetId()]}
		if o.GetIntermediate() {
			onTheWay = append(onTheWay, p)
		} else {
			others = append(others, p)
		}
	}
	c.Dots("minor", onTheWay)
	c.Dots("", others)
	var running []chart.Mark
	for _, t := range d.Running {
		m := lastMeasurement(t)
		vx, okX := valueAt(t, m, x)
		vy, okY := valueAt(t, m, y)
		if okX && okY {
			label := fmt.Sprintf("Trial %s runs: at step %d %s %s, %s %s; %s", site.ID(t.GetName()), m.GetStep(), words.Metric(x), words.MetricValue(x, vx), words.Metric(y), words.MetricValue(y, vy), words.Configuration(d.Study.GetSpec(), t.GetParameters()))
			running = append(running, chart.Mark{Point: chart.Point{X: vx, Y: vy}, Lower: vy, Upper: vy, Label: label, Link: trialPath(t.GetName()), ID: c.ID + "-runs-" + site.ID(t.GetName())})
		}
	}
	c.Marks("third open", "diamond", chart.Thin(running, maxFocusable))
}

// lastMeasurement returns the last measurement of a trial that runs, nil without any.
func lastMeasurement(t *dparetov1.Trial) *dparetov1.Measurement {
	if n := len(t.GetMeasurements()); n > 0 {
		return t.GetMeasurements()[n-1]
	}
	return nil
}

// valueAt returns the value of a metric at a measurement; only the computed ones of studies without
// steps belong to the trial itself.
func valueAt(t *dparetov1.Trial, m *dparetov1.Measurement, metric *dparetov1.MetricSpec) (float64, bool) {
	if m == nil {
		return 0, false
	}
	v, ok := m.GetMetrics()[metric.GetId()]
	if !ok && m.GetStep() == 0 {
		v, ok = t.GetComputedMetrics()[metric.GetId()]
	}
	return v.GetValue(), ok && v.Value != nil
}

// frontStyle is how a front is drawn.
type frontStyle struct {
	id, class, shape string
	x, y             *dparetov1.MetricSpec
	line             bool   // a staircase through the points
	means            bool   // measured values at each point next to the predictions
	prefix           string // of every label
}

// drawFront draws a front. The staircase goes through all of its points that count.
func drawFront(c *chart.Chart, study *dparetov1.Study, front *dparetov1.Front, s frontStyle) {
	place := func(p *dparetov1.FrontPoint) chart.Point {
		return chart.Point{X: placed(s.x, &c.X, p), Y: placed(s.y, &c.Y, p)}
	}
	var stairs, means []chart.Point
	var marks []chart.Mark
	for _, p := range front.GetPoints() {
		stairs = append(stairs, place(p))
	}
	if s.line {
		c.Stairs(s.class, stairs, s.y.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE)
	}
	for _, p := range chart.Thin(front.GetPoints(), maxFocusable) {
		v := p.GetValues()[s.y.GetId()]
		if v.Observed != nil {
			means = append(means, chart.Point{X: place(p).X, Y: v.GetObserved()})
		}
		mark := chart.Mark{
			Point: place(p), Label: s.prefix + pointText(study, p, show.IsSeeded(front.GetWarnings())), Link: linkOf(p),
			ID: s.id + "-" + pointID(p), Card: pointCard(study, p),
		}
		if p.GetKnee() && s.line && s.prefix == "" {
			c.Ring(mark.Point)
			c.Text("strong", "end", chart.Point{X: c.X.Value(c.X.At(mark.X) - 0.012), Y: c.Y.Value(c.Y.At(mark.Y) - 0.07)}, "Knee")
		}
		if p.GetConstantPoint() != "" {
			c.Line("reference", []chart.Point{{X: c.X.Min, Y: mark.Y}, {X: c.X.Max, Y: mark.Y}})
			c.Text("tick", "end", chart.Point{X: c.X.Max, Y: c.Y.Value(c.Y.At(mark.Y) + 0.015)}, "no run: "+p.GetConstantPoint())
		} else if s.means || s.prefix != "" {
			mark.Link = choosePath(study, p)
		}
		if v.Lower != nil && v.Upper != nil {
			mark.Lower, mark.Upper = v.GetLower(), v.GetUpper()
		}
		if isRemeasured(p) {
			mark.Class = "again"
		}
		marks = append(marks, mark)
	}
	if s.means {
		c.Squares(means)
	}
	c.Marks(s.class, s.shape, marks)
}

// placed returns where a point of a front is drawn on an axis: a constant point with ε = 0 at the end of a
// logarithmic one, so that the staircase begins with a level.
func placed(m *dparetov1.MetricSpec, axis *chart.Axis, p *dparetov1.FrontPoint) float64 {
	v := p.GetValues()[m.GetId()].GetValue()
	if p.GetConstantPoint() != "" {
		return axis.Edge(v)
	}
	return v
}

// Description says what is to be seen.
func (d *frontData) Description() string {
	front, kind := d.Front(), "observed"
	if d.IsPosterior() {
		kind = "posterior"
	}
	return fmt.Sprintf("The %s front has %d points chosen among %d configurations. The table after the picture lists them.", kind, len(front.GetPoints()), front.GetCandidates())
}

// pairs draws a front of three or more objectives: each pair of them, and parallel coordinates.
func (d *frontData) pairs() template.HTML {
	var out strings.Builder
	out.WriteString(`<div class="grid">`)
	for i := range d.Objectives() {
		for j := range i {
			out.WriteString(string(d.plane(fmt.Sprintf("front-%d-%d", j, i), j, i, chart.Medium).SVG()))
		}
	}
	out.WriteString(`</div>`)
	return template.HTML(out.String()) //nolint:gosec // made of pictures
}

// maxCoordinates is the number of axes that parallel coordinates have room for.
const maxCoordinates = 10

// threads are the points of one front in parallel coordinates; a picture may have several.
type threads struct {
	study        *dparetov1.Study
	front        *dparetov1.Front
	class, shape string
	id, prefix   string // begin the ids and the labels of marks
}

// parallel draws the points of the front over parallel axes of the objectives and the parameters.
func (d *frontData) parallel() *chart.Chart {
	return drawParallel("parallel", d.Settings.Axes, d.Study.GetSpec().GetParameters(), []threads{{study: d.Study, front: d.Front(), shape: comparedShapes[0], id: "parallel"}})
}

// drawParallel draws points over parallel axes of objectives and parameters that all of their studies have.
func drawParallel(chartID string, axes []axisSettings, parameters []*dparetov1.ParameterSpec, all []threads) *chart.Chart {
	var points []*dparetov1.FrontPoint
	groups := make([][]*dparetov1.FrontPoint, len(all))
	for i, g := range all {
		groups[i] = chart.Thin(g.front.GetPoints(), maxFocusable/len(all))
		points = append(points, groups[i]...)
	}
	columns := coordinates(axes, parameters, points)
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].name
	}
	c := &chart.Chart{
		ID: chartID, Size: chart.Wide, Title: "Parallel coordinates", Class: "parallel",
		Description: "Each line is a point of a front; it crosses the axis of each objective and parameter at its value.",
		X:           chart.Categorical("", names), Y: chart.Axis{Min: -0.12, Max: 1.12, Categories: []string{}},
	}
	k := 0
	start := c.X.Value(c.X.At(0) - 0.035) // marks stand beside the first axis, which is dragged along
	marks := make([][]chart.Mark, len(all))
	for i, g := range all {
		seeded := show.IsSeeded(g.front.GetWarnings()) && show.PrivacyMetric(g.study.GetSpec()) != nil
		for _, p := range groups[i] {
			var line []chart.Point
			for j := range columns {
				line = append(line, chart.Point{X: float64(j), Y: columns[j].axis.At(columns[j].values[k])})
			}
			mark := chart.Point{X: start, Y: line[0].Y}
			c.Thread(g.class, mark, line)
			marks[i] = append(marks[i], chart.Mark{Point: mark, Label: g.prefix + pointText(g.study, p, seeded), Link: linkOf(p), ID: g.id + "-" + pointID(p)})
			k++
		}
	}
	for i := range columns {
		c.Text("tick", "middle", chart.Point{X: float64(i), Y: -0.09}, columns[i].low)
		c.Text("tick", "middle", chart.Point{X: float64(i), Y: 1.05}, columns[i].high)
	}
	for i := range columns {
		c.Brush(i, columns[i].name)
	}
	for i, g := range all {
		c.Marks(g.class, g.shape, marks[i])
	}
	return c
}

// coordinate is one axis of parallel coordinates.
type coordinate struct {
	name, low, high string
	axis            chart.Axis
	values          []float64 // of the points; NaN where a point has none
}

// coordinates returns the axes of parallel coordinates of points.
func coordinates(axes []axisSettings, parameters []*dparetov1.ParameterSpec, points []*dparetov1.FrontPoint) []coordinate {
	var columns []coordinate
	add := func(name string, scale chart.Scale, categories []string, text func(float64) string, value func(*dparetov1.FrontPoint) float64) {
		column := coordinate{name: name}
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range points {
			v := value(p)
			column.values = append(column.values, v)
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
		if categories != nil {
			column.axis = chart.Categorical("", categories)
			column.low, column.high = short(categories[0]), short(categories[len(categories)-1])
		} else {
			column.axis = chart.Fit("", scale, column.values...)
			if low <= high {
				column.low, column.high = text(low), text(high)
			}
		}
		if len(columns) < maxCoordinates {
			columns = append(columns, column)
		}
	}
	for _, a := range axes {
		text := func(v float64) string { return words.MetricValue(a.Metric, v) }
		add(words.Metric(a.Metric), chartScale(a.Scale), nil, text, func(p *dparetov1.FrontPoint) float64 { return p.GetValues()[a.Metric.GetId()].GetValue() })
	}
	for _, p := range parameters {
		scale := chart.Linear
		if p.GetScale() == dparetov1.Scale_SCALE_LOG {
			scale = chart.Log
		}
		categories := p.GetCategoricalDomain().GetCategories()
		add(p.GetId(), scale, categories, show.Number, func(point *dparetov1.FrontPoint) float64 {
			return valueNumber(point.GetParameters()[p.GetId()], categories)
		})
	}
	return columns
}

// Omitted returns how many parameters the parallel coordinates have no room for.
func (d *frontData) Omitted() int {
	return max(0, len(d.Objectives())+len(d.Study.GetSpec().GetParameters())-maxCoordinates)
}

// valueNumber returns the place of a parameter's value on its axis, NaN without one.
func valueNumber(v *dparetov1.Value, categories []string) float64 {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return kind.DoubleValue
	case *dparetov1.Value_IntValue:
		return float64(kind.IntValue)
	case *dparetov1.Value_StringValue:
		for i, category := range categories {
			if category == kind.StringValue {
				return float64(i)
			}
		}
	}
	return math.NaN()
}

// short returns text that fits under an axis.
func short(text string) string {
	const most = 11
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
