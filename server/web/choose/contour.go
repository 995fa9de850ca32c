package choose

import (
	"context"
	"html/template"
	"math"
	"net/url"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// contourLevels is the number of shades of a map, as many as the style sheet has.
const contourLevels = 9

// contourData is the content of the part "contour".
type contourData struct {
	*dparetov1.AnalyzeContourResponse

	Study        string // its name
	Metric, X, Y string
	Spec         *dparetov1.MetricSpec // of the metric
	Parameters   []string              // to choose from
	Centre       []namedValue
	Levels       []level
	Rows         []contourRow // from the largest value of y to the smallest, as drawn
	Observed     int          // trials drawn
	Picture      template.HTML
}

// level is a shade of the map.
type level struct {
	Class    string
	From, To float64
}

// contourRow is a row of the table twin.
type contourRow struct {
	Y       *dparetov1.Value
	Medians []float64
}

// ViewURL is the address of the view with these settings.
func (d *contourData) ViewURL() string {
	return "/studies/" + site.ID(d.Study) + "/why?" + url.Values{"metric": {d.Metric}, "x": {d.X}, "y": {d.Y}}.Encode()
}

// contourPart makes the part "contour".
func (s views) contourPart(ctx context.Context, r *site.PartRequest) (any, error) {
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return nil, err
	}
	d := &contourData{Study: r.Study, Metric: objectiveOf(spec, r.Query), X: r.Query.Get("x"), Y: r.Query.Get("y")}
	d.Spec = metricOf(spec, d.Metric)
	// Those without a condition come first: they are active wherever the map is made.
	for _, conditional := range []bool{false, true} {
		for _, p := range spec.GetParameters() {
			if (p.GetCondition() != nil) == conditional {
				d.Parameters = append(d.Parameters, p.GetId())
			}
		}
	}
	if len(d.Parameters) < 2 {
		return d, nil
	}
	if d.X == "" {
		d.X = d.Parameters[slices.IndexFunc(d.Parameters, func(id string) bool { return id != d.Y })]
	}
	if d.Y == "" {
		d.Y = d.Parameters[slices.IndexFunc(d.Parameters, func(id string) bool { return id != d.X })]
	}
	d.AnalyzeContourResponse, err = s.Analyses.AnalyzeContour(ctx, &dparetov1.AnalyzeContourRequest{Name: r.Study, Metric: d.Metric, XParameter: d.X, YParameter: d.Y})
	if err != nil {
		return nil, err
	}
	d.Centre = slices.DeleteFunc(named(spec, d.GetParameters()), func(v namedValue) bool { return v.ID == d.X || v.ID == d.Y })
	for j, y := range slices.Backward(d.GetYValues()) {
		row := contourRow{Y: y}
		for i := range d.GetXValues() {
			row.Medians = append(row.Medians, d.GetPredictions()[j*len(d.GetXValues())+i].GetMedian())
		}
		d.Rows = append(d.Rows, row)
	}
	if len(d.Rows) > 0 {
		d.draw(spec, s.observed(ctx, r.Study, spec, d.X, d.Y))
	}
	return d, nil
}

// observed returns where trials succeeded, at most 1,000 of them, and nothing where the reader may not
// list trials.
func (s views) observed(ctx context.Context, study string, spec *dparetov1.StudySpec, x, y string) []chart.Point {
	resp, err := s.Studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{Parent: study, Filter: "state = SUCCEEDED", PageSize: 1000})
	if err != nil {
		return nil
	}
	var points []chart.Point
	for _, t := range resp.GetTrials() {
		if u, v := t.GetParameters()[x], t.GetParameters()[y]; u != nil && v != nil {
			points = append(points, chart.Point{X: place(parameterOf(spec, x), u), Y: place(parameterOf(spec, y), v)})
		}
	}
	return points
}

// draw draws the map in levels of equal steps on the scale of the metric's transform.
func (d *contourData) draw(spec *dparetov1.StudySpec, observed []chart.Point) {
	scale := chart.Axis{Scale: scaleOf(d.Spec.GetTransform()), Min: math.Inf(1), Max: math.Inf(-1)}
	for _, p := range d.GetPredictions() {
		if v := p.GetMedian(); !math.IsNaN(v) && !math.IsInf(v, 0) {
			scale.Min, scale.Max = min(scale.Min, v), max(scale.Max, v)
		}
	}
	if math.IsNaN(scale.At(scale.Max)) || scale.Min == scale.Max { // a value without a place, or all equal
		scale.Scale = chart.Linear
	}
	for k := range contourLevels {
		d.Levels = append(d.Levels, level{"heat" + string(rune('0'+k)), scale.Value(float64(k) / contourLevels), scale.Value(float64(k+1) / contourLevels)})
	}
	px, py := parameterOf(spec, d.X), parameterOf(spec, d.Y)
	xs, ys := places(px, d.GetXValues()), places(py, d.GetYValues())
	c := &chart.Chart{
		ID: "contour-map", Title: d.Metric + " over " + d.X + " and " + d.Y,
		Description: "The stronger the shade, the larger; the table has the numbers, the legend the levels.",
		X:           parameterAxis(px, xs), Y: parameterAxis(py, ys),
	}
	z := func(i, j int) float64 { return d.GetPredictions()[j*len(xs)+i].GetMedian() }
	class := func(k int) string { return d.Levels[k].Class }
	if c.X.Categories == nil && c.Y.Categories == nil {
		levels := make([]float64, len(d.Levels))
		for k, l := range d.Levels {
			levels[k] = l.From
		}
		levels[0] = math.Inf(-1)
		c.X, c.Y = chart.Between(d.X, c.X.Scale, xs[0], xs[len(xs)-1]), chart.Between(d.Y, c.Y.Scale, ys[0], ys[len(ys)-1])
		c.Contours(xs, ys, z, levels, class, func(v float64) string { return words.Three(d.Spec, v) })
	} else {
		d.cells(c, &scale, xs, ys, z)
	}
	c.Dots("over", observed)
	d.Observed = len(observed)
	d.Picture = c.SVG()
}

// cells draws the map as a cell for each value, where an axis has categories.
func (d *contourData) cells(c *chart.Chart, scale *chart.Axis, xs, ys []float64, z func(i, j int) float64) {
	xEdges, yEdges := edges(&c.X, xs), edges(&c.Y, ys)
	for j := range ys {
		for i := range xs {
			v := z(i, j)
			if math.IsNaN(v) {
				continue
			}
			k := 0
			if scale.Max > scale.Min {
				k = int(max(0, min(contourLevels-1, math.Floor(contourLevels*scale.At(v)))))
			}
			c.Rectangle("heat "+d.Levels[k].Class, chart.Point{X: xEdges[i], Y: yEdges[j]}, chart.Point{X: xEdges[i+1], Y: yEdges[j+1]},
				words.Value(d.GetXValues()[i])+", "+words.Value(d.GetYValues()[j])+": "+words.MetricValue(d.Spec, v))
		}
	}
}

// places returns the places of values on the axis of a parameter.
func places(p *dparetov1.ParameterSpec, values []*dparetov1.Value) []float64 {
	all := make([]float64, len(values))
	for i, v := range values {
		all[i] = place(p, v)
	}
	return all
}

// edges returns the ends of the cells around ascending places: halfway between them on the axis.
func edges(axis *chart.Axis, at []float64) []float64 {
	all := []float64{axis.Min}
	for i := 1; i < len(at); i++ {
		all = append(all, axis.Value((axis.At(at[i-1])+axis.At(at[i]))/2))
	}
	return append(all, axis.Max)
}
