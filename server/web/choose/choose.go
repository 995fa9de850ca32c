package choose

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/choose/snippet"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// settingValue is the setting of the bound.
const settingValue = "value"

// choosePage is what choose.html shows. Chooser is empty until it is loaded: it may need a new fit of
// the model, which the page does not wait for.
type choosePage struct {
	site.Page

	Query   url.Values
	Chooser template.HTML
}

// tab leads to a view with another setting.
type tab struct {
	Label, Link string
	Current     bool
}

// showChoose lets the reader choose a point of the front:
// /studies/{study}/choose?bound=METRIC&value=X&confidence=P&optimize=METRIC&measured=1. With wait=1
// the answer is part of the page, for readers without scripts.
func (s views) showChoose(w http.ResponseWriter, r *http.Request) error {
	frame, err := s.NewPage(r, "Choose a point")
	if err != nil {
		return err
	}
	frame.View = "choose"
	p := &choosePage{Page: *frame, Query: r.URL.Query()}
	if p.Query.Get("wait") != "" {
		if p.Chooser, err = s.Part(site.Outgoing(r), "chooser", &site.PartRequest{Study: site.StudyName(r), Query: p.Query}); err != nil {
			return err
		}
	}
	s.Render(w, http.StatusOK, "choose", p)
	return nil
}

// chooserData is the content of the part "chooser": the form and the first answer.
type chooserData struct {
	Study    *dparetov1.Study
	Bound    *dparetov1.MetricSpec
	Bounds   []tab
	Covers   []string // the meaning of an ε of the study
	Plain    string   // the same in a sentence
	Optimize []string // the other objectives, if there are several
	Slider   slider
	Choice   *choiceData
	Ledger   string // the cost of the whole search
}

// ViewURL is the address of the view with these settings.
func (d *chooserData) ViewURL() string { return d.Choice.ViewURL() }

// slider is the range of the bound. It stands under the picture, whose horizontal axis has its scale.
type slider struct {
	Min, Max float64
	Scale    chart.Scale
	At       float64 // in [0, 1000]
}

// Ends label the ends of the slider, nil where the bound is not an ε.
func (d *chooserData) Ends() []string {
	if d.Bound.GetComputed().GetPrivacy() == nil {
		return nil
	}
	return []string{"More private", "More accurate"}
}

// chooserPart makes the part "chooser".
func (s views) chooserPart(ctx context.Context, r *site.PartRequest) (any, error) {
	return s.chooser(ctx, r)
}

func (s views) chooser(ctx context.Context, r *site.PartRequest) (*chooserData, error) {
	choice, err := s.choice(ctx, r)
	if err != nil {
		return nil, err
	}
	spec := choice.Study.GetSpec()
	d := &chooserData{
		Study: choice.Study, Bound: choice.Bound, Choice: choice,
		Ledger: s.ledgerLine(ctx, choice.Study), Covers: words.Guarantees(spec), Plain: words.Plain(spec),
	}
	for _, m := range show.Objectives(spec) {
		link := url.Values{"bound": {m.GetId()}}
		if r.Query.Get("wait") != "" {
			link.Set("wait", "1")
		}
		d.Bounds = append(d.Bounds, tab{words.Metric(m), "/studies/" + site.ID(choice.Study.GetName()) + "/choose?" + link.Encode(), m.GetId() == d.Bound.GetId()})
	}
	if others := show.Objectives(spec); len(others) > 2 {
		for _, m := range others {
			if m.GetId() != d.Bound.GetId() {
				d.Optimize = append(d.Optimize, m.GetId())
			}
		}
	}
	d.Slider = newSlider(d.Bound, choice.front, choice.Value)
	return d, nil
}

// newSlider returns the slider over the values of a metric on the front.
func newSlider(bound *dparetov1.MetricSpec, points []*dparetov1.FrontPoint, value float64) slider {
	values := valuesAt(points, bound.GetId())
	if len(values) == 0 {
		return slider{}
	}
	s := slider{Min: slices.Min(values), Max: slices.Max(values)}
	if scale := scaleOf(bound.GetTransform()); !math.IsNaN(scale.Place(s.Min)) && !math.IsNaN(scale.Place(s.Max)) {
		s.Scale = scale
	}
	low, high := s.Scale.Place(s.Min), s.Scale.Place(s.Max)
	share := (s.Scale.Place(value) - low) / (high - low)
	if !math.IsNaN(share) {
		s.At = math.Round(1000 * max(0, min(1, share)))
	}
	return s
}

// valuesAt returns the finite values of a metric at the configurations on the front.
func valuesAt(points []*dparetov1.FrontPoint, metric string) []float64 {
	var values []float64
	for _, p := range points {
		if v := p.GetValues()[metric]; p.GetConstantPoint() == "" && v != nil && !math.IsNaN(v.GetValue()) && !math.IsInf(v.GetValue(), 0) {
			values = append(values, v.GetValue())
		}
	}
	return values
}

// choiceData is the content of the part "choice": the recommended configuration and its facts.
type choiceData struct {
	Study      *dparetov1.Study
	Bound      *dparetov1.MetricSpec
	Relation   string // ≤ or ≥
	Value      float64
	Text       string // of the value, for the field
	Confidence float64
	Measured   bool // only measured values
	Seeded     bool // runs were seeded: no ε holds for them
	Answer     *dparetov1.QueryFrontResponse
	Run        *dparetov1.QueryFrontResponse // the best that was run, beside an answer that was not
	Objectives []expectation
	Doubling   *doubling // what twice the ε would buy
	Picture    template.HTML
	Epsilon    *dparetov1.PrivacyGuarantee
	Tradeoff   *tradeoffData
	Problem    string // why there is no trade-off
	// Calibration says whether the model's intervals hold; nil without a prediction.
	Calibration *calibration
	Entries     []snippet.Entry
	Copies      []copied
	Page        *site.Page // of the reader
	RequestID   string
	settings    url.Values
	front       []*dparetov1.FrontPoint
}

// copied is the configuration in one format.
type copied struct{ ID, Label, Text string }

// expectation is the expected value of one objective.
type expectation struct {
	Metric     *dparetov1.MetricSpec
	Prediction *dparetov1.MetricPrediction // nil for computed ones, and where no model agrees with the measurements
	Computed   *dparetov1.MetricValue
	Reached    float64 // with the confidence, or as measured
}

// ViewURL is the address of the view with these settings.
func (d *choiceData) ViewURL() string {
	return "/studies/" + site.ID(d.Study.GetName()) + "/choose?" + d.settings.Encode()
}

// choicePart makes the part "choice".
func (s views) choicePart(ctx context.Context, r *site.PartRequest) (any, error) {
	return s.choice(ctx, r)
}

// boundOf returns the objective that the reader moves along: the one asked for, ε, or the first.
func boundOf(spec *dparetov1.StudySpec, query url.Values) *dparetov1.MetricSpec {
	all := show.Objectives(spec)
	if i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m.GetId() == query.Get("bound") }); i >= 0 {
		return all[i]
	}
	if epsilon := show.PrivacyMetric(spec); slices.Contains(all, epsilon) {
		return epsilon
	}
	if len(all) == 0 {
		return nil
	}
	return all[0]
}

func (s views) choice(ctx context.Context, r *site.PartRequest) (*choiceData, error) {
	study, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	front, err := s.Fronts.GetFront(ctx, &dparetov1.GetFrontRequest{Name: r.Study, Kind: dparetov1.FrontKind_FRONT_KIND_POSTERIOR})
	if err != nil {
		return nil, err
	}
	d := &choiceData{
		Study: study.GetStudy(), Bound: boundOf(study.GetStudy().GetSpec(), r.Query), Relation: "≤", Confidence: 0.5,
		Measured: r.Query.Get("measured") != "", RequestID: site.NewRequestID(), front: front.GetFront().GetPoints(), Seeded: show.IsSeeded(front.GetFront().GetWarnings()),
	}
	if d.Bound.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		d.Relation = "≥"
	}
	if err := d.read(r.Query); err != nil {
		return nil, err
	}
	query := &dparetov1.QueryFrontRequest{
		Name: r.Study, Bounds: map[string]float64{d.Bound.GetId(): d.Value}, Confidence: d.Confidence,
		Optimize: r.Query.Get("optimize"), MeasuredOnly: d.Measured,
	}
	if d.Answer, err = s.Fronts.QueryFront(ctx, query); err != nil {
		return nil, err
	}
	d.settings = url.Values{"bound": {d.Bound.GetId()}, settingValue: {d.Text}, "confidence": {show.Plain(d.Confidence)}}
	for _, name := range []string{"optimize", "measured"} {
		if v := r.Query.Get(name); v != "" {
			d.settings.Set(name, v)
		}
	}
	if d.Answer.GetConstantPoint() != "" {
		d.Picture = d.picture()
	}
	if len(d.Answer.GetParameters()) == 0 {
		return d, nil // nothing is known yet, as a warning says, or nothing has to be run
	}
	if len(d.Answer.GetTrials()) == 0 {
		measured := proto.CloneOf(query)
		measured.MeasuredOnly = true
		run, err := s.Fronts.QueryFront(ctx, measured)
		if err != nil {
			return nil, err
		}
		if run.GetReachable() && len(run.GetTrials()) > 0 {
			d.Run = run
		}
	}
	info, err := s.Admin.GetServerInfo(ctx, &dparetov1.GetServerInfoRequest{Study: r.Study})
	if err != nil {
		return nil, err
	}
	d.Page = &site.Page{Role: info.GetCallerRole(), Study: d.Study}
	s.explain(ctx, d, query)
	return d, nil
}

// read reads the settings. By default the value is the one at the knee of the front, or at its middle
// point.
func (d *choiceData) read(query url.Values) error {
	d.Value = 1
	if values := valuesAt(d.front, d.Bound.GetId()); len(values) > 0 {
		d.Value = values[len(values)/2]
	}
	if i := slices.IndexFunc(d.front, (*dparetov1.FrontPoint).GetKnee); i >= 0 {
		d.Value = d.front[i].GetValues()[d.Bound.GetId()].GetValue()
	}
	d.Value = words.Loosened(d.Bound, d.Value)
	d.Text = show.Plain(d.Value)
	for _, field := range []struct {
		name string
		to   *float64
	}{{settingValue, &d.Value}, {"confidence", &d.Confidence}} {
		text := query.Get(field.name)
		if text == "" {
			continue
		}
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return site.Invalid(fmt.Errorf("%s: must be a number, is %q", field.name, text))
		}
		*field.to = x
	}
	if query.Get(settingValue) != "" {
		d.Text = query.Get(settingValue)
	}
	return nil
}

// explain adds what follows from the recommendation.
func (s views) explain(ctx context.Context, d *choiceData, query *dparetov1.QueryFrontRequest) {
	spec := d.Study.GetSpec()
	for _, m := range show.Objectives(spec) {
		d.Objectives = append(d.Objectives, expectation{m, d.Answer.GetPredictions()[m.GetId()], d.Answer.GetComputedMetrics()[m.GetId()], d.Answer.GetReached()[m.GetId()]})
	}
	d.Epsilon = d.Answer.GetPrivacy()
	d.Doubling = s.doubling(ctx, d, query)
	d.Calibration = s.calibration(ctx, d)
	d.Picture = d.picture()
	if p := show.PrivacyMetric(spec).GetComputed().GetPrivacy(); p != nil {
		resp, err := s.Privacy.ComputeTradeoff(ctx, &dparetov1.ComputeTradeoffRequest{Privacy: p, Parameters: d.Answer.GetParameters()})
		if err != nil {
			d.Problem = site.Message(err)
		} else {
			d.Tradeoff = newTradeoff(resp)
		}
	}
	d.Entries = snippet.Entries(spec.GetParameters(), d.Answer.GetParameters())
	d.Copies = []copied{
		{"copy-yaml", "YAML", snippet.YAML(d.Entries)},
		{"copy-json", "JSON", snippet.JSON(d.Entries)},
		{"copy-python", "Python", snippet.Python(d.Entries)},
		{"copy-command", "Command line", snippet.Command(site.ID(d.Study.GetName()), d.Entries)},
	}
}

// calibration says whether the intervals of the model hold for measurements that it does not know.
type calibration struct{ Verdict, Pill, Text string }

// Calibration is judged from minJudged trials on, and below leastCalibrated of the measurements within their
// intervals it is not claimed, even where chance may explain it.
const (
	minJudged       = 10
	leastCalibrated = 0.85
)

// calibration compares the model's 90 % intervals with measurements that were predicted without their
// configurations. Measurements of one run depend on each other, so the share that lies within may be lower by
// two standard errors of as many independent ones as there are trials.
func (s views) calibration(ctx context.Context, d *choiceData) *calibration {
	metric := d.Answer.GetOptimize()
	if d.Answer.GetPredictions()[metric] == nil {
		metric = d.Bound.GetId()
	}
	if d.Answer.GetPredictions()[metric] == nil {
		return nil
	}
	resp, err := s.Analyses.CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: d.Study.GetName()})
	if err != nil {
		return nil // the view of the fit says why
	}
	for _, o := range resp.GetObjectives() {
		if o.GetMetric() != metric || o.Coverage == nil {
			continue
		}
		trials := make(map[string]bool)
		for _, p := range o.GetPoints() {
			trials[p.GetTrial()] = true
		}
		return newCalibration(o.GetCoverage(), len(trials))
	}
	return nil
}

// newCalibration judges the share of the measurements of so many trials that lie within their 90 % intervals.
func newCalibration(coverage float64, trials int) *calibration {
	const promised = 0.9
	c := &calibration{Text: fmt.Sprintf("%s of the measurements of %s lie within the 90 %% intervals predicted without them.", words.Share(coverage), show.Count(int64(trials), "trial"))}
	switch slack := 2 * math.Sqrt(promised*(1-promised)/float64(trials)); {
	case trials < minJudged, coverage >= promised-slack && coverage < leastCalibrated:
		c.Verdict = "Calibration not known yet"
	case coverage >= promised-slack:
		c.Verdict, c.Pill = "Calibrated", "ok"
	default:
		c.Verdict, c.Pill = "Too sure", "warn"
		c.Text += " Real values may lie outside of the interval more often than it says."
	}
	return c
}

// doubling is the return on twice the ε: the gain, and its meaning.
type doubling struct {
	Gain, Text string
	Picture    template.HTML
}

// doubling says what twice the ε of the recommendation would buy. Of the difference of two predictions
// only the intervals of both are known; each holds with 90 %, both with at least 80 %.
func (s views) doubling(ctx context.Context, d *choiceData, query *dparetov1.QueryFrontRequest) *doubling {
	epsilon, gained := show.PrivacyMetric(d.Study.GetSpec()), d.Answer.GetOptimize()
	if !slices.Contains(show.Objectives(d.Study.GetSpec()), epsilon) {
		return nil
	}
	if gained == epsilon.GetId() {
		gained = d.Bound.GetId()
	}
	limit := 2 * d.Epsilon.GetEpsilon()
	if d.Bound == epsilon && d.Answer.GetReachable() {
		limit = 2 * d.Value
	}
	before := d.Answer.GetPredictions()[gained]
	if before == nil || !(limit > 0) || math.IsInf(limit, 0) {
		return nil
	}
	twice, err := s.Fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{
		Name: query.GetName(), Bounds: map[string]float64{epsilon.GetId(): limit}, Confidence: query.GetConfidence(), Optimize: gained, MeasuredOnly: query.GetMeasuredOnly(),
	})
	if err != nil {
		return &doubling{"–", site.Message(err), ""}
	}
	after := twice.GetPredictions()[gained]
	if after == nil || !twice.GetReachable() {
		return nil
	}
	same := func(a, b *dparetov1.Value) bool { return show.Value(a) == show.Value(b) }
	if twice.GetStep() == d.Answer.GetStep() && maps.EqualFunc(twice.GetParameters(), d.Answer.GetParameters(), same) {
		return &doubling{"Nothing", fmt.Sprintf("At ε ≤ %s the same configuration is recommended.", show.NumberUp(limit)), ""}
	}
	change := after.GetMedian() - before.GetMedian()
	low, high := after.GetLower()-before.GetUpper(), after.GetUpper()-before.GetLower()
	verdict := "a clear gain"
	if low <= 0 && high >= 0 {
		verdict = "no clear gain"
	}
	return &doubling{
		signed(change, func(v float64) string { return show.Plain(show.Rounded(v, 2)) }) + " " + gained,
		fmt.Sprintf("At ε ≤ %s, %s goes from %s to %s. By the model the change is between %s and %s with at least 80 %%: %s.",
			show.NumberUp(limit), gained, show.Number(before.GetMedian()), show.Number(after.GetMedian()), signed(low, show.NumberDown), signed(high, show.NumberUp), verdict),
		drawDoubling(gained, before, after),
	}
}

// drawDoubling draws the expected values now and with twice the ε, each with its interval.
func drawDoubling(metric string, before, after *dparetov1.MetricPrediction) template.HTML {
	rows := []string{"Twice the ε", "This point"}
	c := &chart.Chart{
		ID: "doubling-chart", Title: metric + " now and with twice the ε", Description: "Expected values with their 90 % intervals.", Size: chart.Small,
		X: chart.Fit(metric, chart.Linear, before.GetLower(), before.GetUpper(), after.GetLower(), after.GetUpper()), Y: chart.Categorical("", rows),
	}
	for i, p := range []*dparetov1.MetricPrediction{after, before} {
		y := float64(i)
		c.Line("whisker", []chart.Point{{X: p.GetLower(), Y: y}, {X: p.GetUpper(), Y: y}})
		c.Marks([]string{"", "second"}[i], []string{"circle", "diamond"}[i], []chart.Mark{{
			Point: chart.Point{X: p.GetMedian(), Y: y}, Label: fmt.Sprintf("%s: %s, 90 %% interval %s to %s", rows[i], show.Number(p.GetMedian()), show.Number(p.GetLower()), show.Number(p.GetUpper())),
		}})
	}
	return c.SVG()
}

// signed returns a difference, rounded by text, with its sign.
func signed(x float64, text func(float64) string) string {
	if x > 0 {
		return "+" + text(x)
	}
	return words.Minus(text(x))
}

// Warnings returns the warnings of the answer, without the one that its card says.
func (d *choiceData) Warnings() []*dparetov1.Warning {
	return slices.DeleteFunc(slices.Clone(d.Answer.GetWarnings()), func(w *dparetov1.Warning) bool {
		return w.GetCode() == "NOT_MEASURED" && len(d.Objectives) > 0
	})
}

// scaleOf returns the scale of an axis for an objective.
func scaleOf(t dparetov1.Transform) chart.Scale {
	switch t {
	case dparetov1.Transform_TRANSFORM_LOG:
		return chart.Log
	case dparetov1.Transform_TRANSFORM_LOGIT:
		return chart.Logit
	default:
		return chart.Linear
	}
}

// BestRun states the result of the best configuration that was run, "" where the answer was run
// itself or nothing that was run meets the bound.
func (d *choiceData) BestRun() string {
	if d.Run == nil {
		return ""
	}
	var parts []string
	for _, m := range show.Objectives(d.Study.GetSpec()) {
		if p := d.Run.GetPredictions()[m.GetId()]; p != nil {
			parts = append(parts, fmt.Sprintf("%s %s (90 %% interval %s to %s)", words.Metric(m), show.Number(p.GetMedian()), show.Number(p.GetLower()), show.Number(p.GetUpper())))
		} else if v := d.Run.GetComputedMetrics()[m.GetId()]; v != nil {
			parts = append(parts, words.Metric(m)+" "+words.MetricValue(m, v.GetValue()))
		}
	}
	return strings.Join(parts, ", ")
}

// Constant names the constant point that answers, "" where a configuration does.
func (d *choiceData) Constant() string {
	if d.Answer.GetConstantPoint() == "" {
		return ""
	}
	return show.ConstantPoint(d.Study.GetSpec(), d.Answer.GetConstantPoint())
}

// RunURL is the address of the view with measured configurations alone.
func (d *choiceData) RunURL() string {
	settings := maps.Clone(d.settings)
	settings.Set("measured", "1")
	return "/studies/" + site.ID(d.Study.GetName()) + "/choose?" + settings.Encode()
}

// sliderLeft is the room left of the picture's plane. The style sheet leaves the same room left of the
// slider.
const sliderLeft = 60

// picture draws the front with the chosen point.
func (d *choiceData) picture() template.HTML {
	all := show.Objectives(d.Study.GetSpec())
	i := slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m != d.Bound && m.GetId() == d.Answer.GetOptimize() })
	if i < 0 {
		i = slices.IndexFunc(all, func(m *dparetov1.MetricSpec) bool { return m != d.Bound })
	}
	if i < 0 {
		return ""
	}
	x, y := d.Bound, all[i]
	of := func(m *dparetov1.MetricSpec) (value, lower, upper float64) {
		if p := d.Answer.GetPredictions()[m.GetId()]; p != nil {
			return p.GetMedian(), p.GetLower(), p.GetUpper()
		}
		v := d.Answer.GetReached()[m.GetId()] // of a constant point, or as measured
		if c := d.Answer.GetComputedMetrics()[m.GetId()]; c != nil {
			v = c.GetValue()
		}
		return v, v, v
	}
	atX, _, _ := of(x)
	atY, lower, upper := of(y)
	interval := ""
	if lower < upper {
		interval = ", 90 % interval " + show.NumberDown(lower) + " to " + show.NumberUp(upper)
	}
	xs, ys := valuesAt(d.front, x.GetId()), []float64{atY, lower, upper}
	if len(xs) == 0 || atX < slices.Min(xs) || atX > slices.Max(xs) {
		xs = append(xs, atX)
	}
	for _, p := range d.front {
		ys = append(ys, p.GetValues()[y.GetId()].GetValue())
	}
	axisX, axisY := chart.Fit(words.Metric(x), scaleOf(x.GetTransform()), xs...), chart.Fit(words.Metric(y), scaleOf(y.GetTransform()), ys...)
	points := make([]chart.Point, 0, len(d.front))
	for _, p := range d.front {
		at := chart.Point{X: p.GetValues()[x.GetId()].GetValue(), Y: p.GetValues()[y.GetId()].GetValue()}
		if p.GetConstantPoint() != "" {
			at = chart.Point{X: axisX.Edge(at.X), Y: axisY.Edge(at.Y)}
		}
		points = append(points, at)
	}
	slices.SortFunc(points, func(a, b chart.Point) int { return cmp.Compare(a.X, b.X) })
	c := &chart.Chart{
		ID: "chosen", Title: "The chosen point on the posterior front", Left: sliderLeft,
		Description: fmt.Sprintf("%s against %s; the chosen point at %s and %s.", words.Metric(y), words.Metric(x), words.MetricValue(x, atX), words.MetricValue(y, atY)),
		X:           axisX, Y: axisY,
	}
	if len(all) == 2 && x.GetGoal() == dparetov1.Goal_GOAL_MINIMIZE {
		c.Steps("", points)
	}
	c.Dots("front", points)
	limit := max(axisX.Min, min(axisX.Max, axisX.Edge(d.Value)))
	c.Upright("chosen", limit, 0.87, words.Metric(y)+" "+words.Three(y, atY))
	c.Beside(limit, 0.94, "strong", words.Metric(x)+" "+d.Relation+" "+d.Text)
	c.Marks("second", "diamond", []chart.Mark{{
		Point: chart.Point{X: axisX.Edge(atX), Y: axisY.Edge(atY)}, Lower: lower, Upper: upper, ID: "chosen-point",
		Label: fmt.Sprintf("Chosen: %s %s, %s %s", words.Metric(x), words.MetricValue(x, atX), words.Metric(y), words.MetricValue(y, atY)) + interval,
	}})
	return c.SVG()
}

// tradeoffData is the meaning of an ε for an attacker.
type tradeoffData struct {
	Attacker          string // the assumed knowledge of an attacker
	Points            []*dparetov1.TradeoffPoint
	AtHundredth, At10 float64 // largest true positive rates at false positive rates of 1 % and 10 %
	Exact             bool
	Picture           template.HTML
	// Accused and Found are 100 people each: those who are wrongly accused, and those who are found.
	Accused, Found template.HTML
}

func newTradeoff(resp *dparetov1.ComputeTradeoffResponse) *tradeoffData {
	d := &tradeoffData{Attacker: show.Attacker(resp.GetGuarantee()), Points: resp.GetPoints(), AtHundredth: 1, At10: 1, Exact: resp.GetExactProfile()}
	curve := make([]chart.Point, 0, len(d.Points))
	for _, p := range d.Points {
		curve = append(curve, chart.Point{X: p.GetFalsePositiveRate(), Y: p.GetTruePositiveRate()})
		switch p.GetFalsePositiveRate() {
		case 0.01:
			d.AtHundredth = p.GetTruePositiveRate()
		case 0.1:
			d.At10 = p.GetTruePositiveRate()
		}
	}
	c := &chart.Chart{
		ID: "tradeoff", Size: chart.Small, Title: "Best attack on one record",
		Description: "Upper bound of the true positive rate over the false positive rate; the dashed line is guessing.",
		X:           chart.Axis{Label: "false positive rate", Max: 1}, Y: chart.Axis{Label: "true positive rate, upper bound", Max: 1},
	}
	c.Line("reference", []chart.Point{{}, {X: 1, Y: 1}})
	c.Text("tick", "start", chart.Point{X: 0.55, Y: 0.4}, "dashed: guessing")
	c.Line("", curve)
	c.Marks("", "circle", []chart.Mark{
		{Point: chart.Point{X: 0.01, Y: d.AtHundredth}, ID: "tradeoff-1", Label: "False positive rate 1 %: at most " + words.PercentUp(d.AtHundredth) + " are found"},
		{Point: chart.Point{X: 0.1, Y: d.At10}, ID: "tradeoff-10", Label: "False positive rate 10 %: at most " + words.PercentUp(d.At10) + " are found"},
	})
	d.Picture = c.SVG()
	d.Accused, d.Found = chart.People("wrong", 1), chart.People("hit", 100*d.AtHundredth)
	return d
}

// ledgerLine states the cost of the whole search. It is empty for studies without privacy.
func (s views) ledgerLine(ctx context.Context, study *dparetov1.Study) string {
	if show.PrivacyMetric(study.GetSpec()) == nil {
		return ""
	}
	ledger, err := s.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: study.GetName()})
	switch {
	case err != nil:
		return site.Message(err)
	case show.IsSeeded(ledger.GetWarnings()):
		return "Runs of the search were seeded: no ε holds for all of it together."
	case ledger.GetRuns() == 0:
		return "No run has touched the data yet."
	}
	g := ledger.GetComposed()
	if ledger.GetRuns() == 1 {
		return "The only run of the search: " + words.Guarantee(g) + "."
	}
	return fmt.Sprintf("All %d runs of the search together: %s.", ledger.GetRuns(), words.Guarantee(g))
}
