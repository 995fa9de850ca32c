package choose

import (
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// allColumns is the class of a section of the full width.
const allColumns = "all"

// whySections are the parts of the view, in its order.
var whySections = []struct{ Name, Title, Class string }{
	{"importance", "Which parameters matter", allColumns},
	{"slices", "Along each parameter", allColumns},
	{"contour", "Two parameters together", "c7"},
	{"fit", "Can the model be trusted?", "c5"},
	{"gain", "Is it worth going on?", allColumns},
}

// whyPage is what why.html shows.
type whyPage struct {
	site.Page

	Query    url.Values
	Metrics  []tab
	Sections []whySection
}

// whySection is a part of the view. Data is empty until it is loaded.
type whySection struct {
	Name, Title, Class string
	Data               template.HTML
}

// showWhy explains the learned model: /studies/{study}/why?metric=METRIC&x=PARAMETER&y=PARAMETER. Each
// section is loaded when the page is there; with wait=1 all are part of it.
func (s views) showWhy(w http.ResponseWriter, r *http.Request) error {
	frame, err := s.NewPage(r, "Why")
	if err != nil {
		return err
	}
	frame.View = "why"
	p := &whyPage{Page: *frame, Query: r.URL.Query()}
	spec := frame.Study.GetSpec()
	for _, m := range show.Objectives(spec) {
		p.Metrics = append(p.Metrics, tab{words.Metric(m), "?metric=" + url.QueryEscape(m.GetId()), m.GetId() == objectiveOf(spec, p.Query)})
	}
	request := &site.PartRequest{Study: site.StudyName(r), Query: p.Query}
	for _, section := range whySections {
		made := whySection{Name: section.Name, Title: section.Title, Class: section.Class}
		if p.Query.Get("wait") != "" {
			if made.Data, err = s.Part(site.Outgoing(r), section.Name, request); err != nil {
				return err
			}
		}
		p.Sections = append(p.Sections, made)
	}
	s.Render(w, http.StatusOK, "why", p)
	return nil
}

// objectiveOf returns the objective asked for, or the first measured one, or the first.
func objectiveOf(spec *dparetov1.StudySpec, query url.Values) string {
	all := show.Objectives(spec)
	if i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetId() == query.Get("metric") }); i >= 0 {
		return all[i].GetId()
	}
	if i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetReported() != nil }); i >= 0 {
		return all[i].GetId()
	}
	if len(all) == 0 {
		return ""
	}
	return all[0].GetId()
}

// specOf returns the spec of a part's study.
func (s views) specOf(ctx context.Context, r *site.PartRequest) (*dparetov1.StudySpec, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	return resp.GetStudy().GetSpec(), err
}

// importancePart makes the part "importance".
func (s views) importancePart(ctx context.Context, r *site.PartRequest) (any, error) {
	return s.Analyses.AnalyzeImportance(ctx, &dparetov1.AnalyzeImportanceRequest{Name: r.Study})
}

// slicesData is the content of the part "slices".
type slicesData struct {
	Metric   string
	Spec     *dparetov1.MetricSpec // of the metric
	Centre   []namedValue
	Slices   []slicePicture
	Warnings []*dparetov1.Warning
}

// namedValue is a parameter with its value.
type namedValue struct {
	ID    string
	Value *dparetov1.Value
}

type slicePicture struct {
	*dparetov1.Slice

	Picture template.HTML
}

// slicesPart makes the part "slices".
func (s views) slicesPart(ctx context.Context, r *site.PartRequest) (any, error) {
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := s.Analyses.AnalyzeSlices(ctx, &dparetov1.AnalyzeSlicesRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	d := &slicesData{Metric: objectiveOf(spec, r.Query), Centre: named(spec, resp.GetParameters()), Warnings: resp.GetWarnings()}
	d.Spec = metricOf(spec, d.Metric)
	var values []float64 // all slices share their axis
	for _, slice := range resp.GetSlices() {
		for _, point := range slice.GetPoints() {
			if y := point.GetPrediction(); slice.GetMetric() == d.Metric {
				values = append(values, y.GetMedian(), y.GetLower(), y.GetUpper())
			}
		}
	}
	axis := chart.Fit(words.Metric(d.Spec), scaleOf(d.Spec.GetTransform()), values...)
	for _, slice := range resp.GetSlices() {
		if slice.GetMetric() == d.Metric {
			d.Slices = append(d.Slices, slicePicture{slice, drawSlice(spec, slice, axis, resp.GetParameters()[slice.GetParameter()])})
		}
	}
	return d, nil
}

// named returns the values of a configuration in the order of the spec.
func named(spec *dparetov1.StudySpec, values map[string]*dparetov1.Value) []namedValue {
	var all []namedValue
	for _, p := range spec.GetParameters() {
		if v := values[p.GetId()]; v != nil {
			all = append(all, namedValue{p.GetId(), v})
		}
	}
	return all
}

// place returns where a value is on the axis of a parameter: its number, or the index of its category.
func place(p *dparetov1.ParameterSpec, v *dparetov1.Value) float64 {
	switch kind := v.GetKind().(type) {
	case *dparetov1.Value_DoubleValue:
		return kind.DoubleValue
	case *dparetov1.Value_IntValue:
		return float64(kind.IntValue)
	default:
		return float64(slices.Index(p.GetCategoricalDomain().GetCategories(), v.GetStringValue()))
	}
}

// parameterOf returns the spec of a parameter.
func parameterOf(spec *dparetov1.StudySpec, id string) *dparetov1.ParameterSpec {
	i := slices.IndexFunc(spec.GetParameters(), func(p *dparetov1.ParameterSpec) bool { return p.GetId() == id })
	if i < 0 {
		return nil
	}
	return spec.GetParameters()[i]
}

// parameterAxis returns the axis of a parameter that shows some values.
func parameterAxis(p *dparetov1.ParameterSpec, values []float64) chart.Axis {
	if domain := p.GetCategoricalDomain(); domain != nil {
		return chart.Categorical(p.GetId(), domain.GetCategories())
	}
	scale := chart.Linear
	if p.GetScale() == dparetov1.Scale_SCALE_LOG {
		scale = chart.Log
	}
	return chart.Fit(p.GetId(), scale, values...)
}

// metricOf returns the spec of a metric, nil without it.
func metricOf(spec *dparetov1.StudySpec, metric string) *dparetov1.MetricSpec {
	for _, m := range spec.GetMetrics() {
		if m.GetId() == metric {
			return m
		}
	}
	return nil
}

// drawSlice draws an objective along a parameter, with its band, and the value of the parameter in the
// other slices.
func drawSlice(spec *dparetov1.StudySpec, slice *dparetov1.Slice, y chart.Axis, centre *dparetov1.Value) template.HTML {
	p, metric := parameterOf(spec, slice.GetParameter()), metricOf(spec, slice.GetMetric())
	var x, lower, upper []float64
	var line []chart.Point
	var marks []chart.Mark
	for _, point := range slice.GetPoints() {
		at, y := place(p, point.GetValue()), point.GetPrediction()
		x, lower, upper = append(x, at), append(lower, y.GetLower()), append(upper, y.GetUpper())
		line = append(line, chart.Point{X: at, Y: y.GetMedian()})
		marks = append(marks, chart.Mark{
			Point: chart.Point{X: at, Y: y.GetMedian()}, Lower: y.GetLower(), Upper: y.GetUpper(),
			Label: fmt.Sprintf("%s %s: %s, 90 %% interval %s to %s", slice.GetParameter(), words.Value(point.GetValue()), words.MetricValue(metric, y.GetMedian()), words.MetricValue(metric, y.GetLower()), words.MetricValue(metric, y.GetUpper())),
		})
	}
	c := &chart.Chart{
		ID: "slice-" + slice.GetParameter(), Size: chart.Small, Title: slice.GetMetric() + " along " + slice.GetParameter(),
		Description: "The expected value with its 90 % band; the table has the numbers.",
		X:           parameterAxis(p, x), Y: y,
	}
	if centre != nil {
		c.Upright("reference", place(p, centre), 0.9, "held at "+words.Value(centre))
	}
	if p.GetCategoricalDomain() != nil {
		c.Marks("", "circle", marks)
	} else {
		c.Band("", x, lower, upper)
		c.Line("", line)
	}
	return c.SVG()
}

// fitData is the content of the part "fit".
type fitData struct {
	Objectives []fitPicture
	Warnings   []*dparetov1.Warning
}

type fitPicture struct {
	*dparetov1.ObjectiveValidation

	Shown   []*dparetov1.ValidationPoint
	Picture template.HTML
}

// maxShown bounds the points of a picture that can be focused.
const maxShown = 200

// fitPart makes the part "fit".
func (s views) fitPart(ctx context.Context, r *site.PartRequest) (any, error) {
	spec, err := s.specOf(ctx, r)
	if err != nil {
		return nil, err
	}
	resp, err := s.Analyses.CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	d := &fitData{Warnings: resp.GetWarnings()}
	for _, o := range resp.GetObjectives() {
		if len(o.GetPoints()) == 0 {
			continue
		}
		f := fitPicture{ObjectiveValidation: o}
		every := (len(o.GetPoints()) + maxShown - 1) / maxShown
		for i := 0; i < len(o.GetPoints()); i += every {
			f.Shown = append(f.Shown, o.GetPoints()[i])
		}
		f.Picture = drawFit(spec, o.GetMetric(), f.Shown, "/studies/"+site.ID(r.Study)+"/trials/")
		d.Objectives = append(d.Objectives, f)
	}
	return d, nil
}

// drawFit draws predictions over measurements, with the diagonal on which both agree.
func drawFit(spec *dparetov1.StudySpec, metric string, points []*dparetov1.ValidationPoint, trials string) template.HTML {
	var observed, all []float64
	var marks []chart.Mark
	for _, p := range points {
		y := p.GetPredicted()
		observed, all = append(observed, p.GetObserved()), append(all, p.GetObserved(), y.GetMedian(), y.GetLower(), y.GetUpper())
		marks = append(marks, chart.Mark{
			Point: chart.Point{X: p.GetObserved(), Y: y.GetMedian()}, Lower: y.GetLower(), Upper: y.GetUpper(), Link: trials + site.ID(p.GetTrial()),
			Label: fmt.Sprintf("Trial %s: measured %s, predicted %s, 90 %% interval %s to %s", site.ID(p.GetTrial()), show.Number(p.GetObserved()), show.Number(y.GetMedian()), show.Number(y.GetLower()), show.Number(y.GetUpper())),
		})
	}
	scale := scaleOf(metricOf(spec, metric).GetTransform())
	c := &chart.Chart{
		ID: "fit-" + metric, Title: "Predicted against measured " + metric,
		Description: "On the dashed diagonal both agree; nine of ten intervals should reach it.",
		X:           chart.Fit("measured "+metric, scale, observed...), Y: chart.Fit("predicted without its configuration", scale, all...),
	}
	low, high := max(c.X.Min, c.Y.Min), min(c.X.Max, c.Y.Max)
	c.Line("reference", []chart.Point{{X: low, Y: low}, {X: high, Y: high}})
	c.Text("tick", "end", chart.Point{X: c.X.Value(0.98), Y: c.Y.Value(0.06)}, "dashed: predicted = measured")
	c.Marks("", "circle", marks)
	return c.SVG()
}

// gainData is the content of the part "gain".
type gainData struct {
	*dparetov1.ForecastGainResponse

	Sentence string
	Runs     bool // the cost is the number of runs
	Picture  template.HTML
}

// gainPart makes the part "gain".
func (s views) gainPart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Analyses.ForecastGain(ctx, &dparetov1.ForecastGainRequest{Name: r.Study, Runs: 10})
	if err != nil {
		return nil, err
	}
	d := &gainData{ForecastGainResponse: resp, Runs: resp.GetCostUnit() == "runs"}
	if len(resp.GetPoints()) > 0 {
		d.Sentence, d.Picture = goingOn(resp), drawGain(resp.GetPoints())
	}
	return d, nil
}

// goingOn answers whether going on is worth its cost, as far as a model can say.
func goingOn(resp *dparetov1.ForecastGainResponse) string {
	last := resp.GetPoints()[len(resp.GetPoints())-1]
	answer := "Probably not"
	switch {
	case last.GetProbability() >= 0.9:
		answer = "Yes"
	case last.GetProbability() >= 0.5:
		answer = "Probably"
	}
	share := ""
	if h := resp.GetHypervolume(); h > 0 {
		share = " (" + words.Percent(last.GetGain().GetValue()/h) + " of what it is today)"
	}
	cost := ""
	if resp.GetCostUnit() != "runs" {
		cost = fmt.Sprintf(", which cost about %s %s", show.Number(last.GetCost()), resp.GetCostUnit())
	}
	return fmt.Sprintf("%s: by the model, %d more runs%s enlarge the hypervolume by %s%s, 90 %% interval %s to %s; by more than 1 %% with a probability of %s.",
		answer, last.GetRuns(), cost, words.Minus(show.Number(last.GetGain().GetValue())), share,
		words.Minus(show.Number(last.GetGain().GetLower())), words.Minus(show.Number(last.GetGain().GetUpper())), fmt.Sprintf("about %.0f %%", 100*last.GetProbability()))
}

// whole returns an axis of counts.
func whole(a chart.Axis) chart.Axis {
	a.Whole = true
	return a
}

// drawGain draws the gain over the number of runs.
func drawGain(points []*dparetov1.GainPoint) template.HTML {
	x, all := []float64{0}, []float64{0}
	var marks []chart.Mark
	for _, p := range points {
		g := p.GetGain()
		x, all = append(x, float64(p.GetRuns())), append(all, g.GetValue(), g.GetLower(), g.GetUpper())
		marks = append(marks, chart.Mark{
			Point: chart.Point{X: float64(p.GetRuns()), Y: g.GetValue()}, Lower: g.GetLower(), Upper: g.GetUpper(),
			Label: fmt.Sprintf("%d more runs: %s, 90 %% interval %s to %s", p.GetRuns(), show.Number(g.GetValue()), show.Number(g.GetLower()), show.Number(g.GetUpper())),
		})
	}
	c := &chart.Chart{
		ID: "gain-chart", Title: "Expected gain of further runs", Description: "Growth of the hypervolume over the number of further runs, with 90 % intervals.",
		X: whole(chart.Fit("further runs", chart.Linear, x...)), Y: chart.Fit("gain of hypervolume", chart.Linear, all...),
	}
	c.Marks("", "circle", marks)
	return c.SVG()
}
