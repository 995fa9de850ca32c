package overview

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

const (
	// maxCloud is how many configurations beside a front are drawn, maxFocusable how many points of
	// a front can be focused and are listed. The lines of a front go through all of its points.
	maxCloud     = 5000
	maxFocusable = 500
	// noticeAfter is how long a fit may take before the observed front is shown in its place.
	noticeAfter = 100 * time.Millisecond
)

// frontSettings are the settings of a picture of a front, from a query.
type frontSettings struct {
	Kind     string // posterior, observed or both
	NoOthers bool   // without the configurations beside the front
	Final    bool   // without intermediate measurements
	Axes     []axisSettings

	query url.Values
}

// axisSettings are the settings of an objective's axis.
type axisSettings struct {
	Metric *dparetov1.MetricSpec
	Name   string // of its parameters in the query
	Scale  string // linear, log or logit
	Scales []string
	Bounds [2]float64 // NaN where not set
	Fields []axisField
}

// axisField is the form field of a bound.
type axisField struct{ Name, Label, Value string }

// Kinds are the fronts to choose from, with the settings that show them.
func (f *frontSettings) Kinds() []kindLink {
	var links []kindLink
	for _, kind := range []listOption{{kindPosterior, "Model"}, {kindObserved, "Measured"}, {kindBoth, "Both"}} {
		query := maps.Clone(f.query)
		if query == nil {
			query = make(url.Values)
		}
		query.Set("front", kind.Value)
		links = append(links, kindLink{kind.Label, "?" + query.Encode(), f.Kind == kind.Value})
	}
	return links
}

// kindLink leads to another front.
type kindLink struct {
	Label, Link string
	Current     bool
}

// IsZoomed reports whether an axis has a bound.
func (f *frontSettings) IsZoomed() bool {
	return slices.ContainsFunc(f.Axes, func(a axisSettings) bool { return !math.IsNaN(a.Bounds[0]) || !math.IsNaN(a.Bounds[1]) })
}

// isPosterior reports whether the posterior front is asked for.
func (f *frontSettings) isPosterior() bool { return f.Kind != kindObserved }

const (
	kindPosterior = "posterior"
	kindObserved  = "observed"
	kindBoth      = "both"
)

const (
	scaleLinear = "linear"
	scaleLog    = "log"
	scaleLogit  = "logit"
)

// parseFront reads the settings of a front's picture. Only fronts of two objectives have scales and
// bounds of their own: x and y.
func parseFront(query url.Values, objectives []*dparetov1.MetricSpec) (*frontSettings, error) {
	f := &frontSettings{Kind: cmp.Or(query.Get("front"), kindPosterior), NoOthers: query.Get("others") == "0", Final: query.Get("final") == "1", query: query}
	if !slices.Contains([]string{kindPosterior, kindObserved, kindBoth}, f.Kind) {
		return nil, site.Invalid(fmt.Errorf("front must be posterior, observed or both, is %q", f.Kind))
	}
	for i, m := range objectives {
		a := axisSettings{Metric: m, Scale: scaleLinear, Bounds: [2]float64{math.NaN(), math.NaN()}}
		if m.GetTransform() == dparetov1.Transform_TRANSFORM_LOG {
			a.Scale = scaleLog
		}
		if len(objectives) == 2 {
			a.Name = []string{"x", "y"}[i]
			if err := a.parse(query); err != nil {
				return nil, err
			}
		}
		f.Axes = append(f.Axes, a)
	}
	return f, nil
}

// parse reads the settings of an axis.
func (a *axisSettings) parse(query url.Values) error {
	a.Scales = []string{scaleLinear, scaleLog}
	if a.Metric.GetTransform() == dparetov1.Transform_TRANSFORM_LOGIT {
		a.Scales = append(a.Scales, scaleLogit)
	}
	a.Scale = cmp.Or(query.Get(a.Name), a.Scale)
	if !slices.Contains(a.Scales, a.Scale) {
		return site.Invalid(fmt.Errorf("%s must be one of %s, is %q", a.Name, strings.Join(a.Scales, ", "), a.Scale))
	}
	for i, end := range []string{"min", "max"} {
		name := a.Name + "_" + end
		text := query.Get(name)
		a.Fields = append(a.Fields, axisField{name, words.Metric(a.Metric) + map[string]string{"min": " from", "max": " to"}[end], text})
		if text == "" {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(chartScale(a.Scale).Place(v)) || math.IsInf(v, 0) {
			return site.Invalid(fmt.Errorf("%s must be a number that the axis has a place for, is %q", name, text))
		}
		a.Bounds[i] = v
	}
	if a.Bounds[0] >= a.Bounds[1] {
		return site.Invalid(fmt.Errorf("%s_min must be smaller than %s_max", a.Name, a.Name))
	}
	return nil
}

// frontData is the content of the part "front".
type frontData struct {
	Study    *dparetov1.Study
	Settings *frontSettings

	Observed, Posterior *dparetov1.Front // nil where there is none yet
	Running             []*dparetov1.Trial
	// Note says what is still to come.
	Note string
}

// frontPart makes the part "front": the observed front first, then, when the model is fitted, the
// posterior front. Until then the last posterior front of the same stream stays.
func (s views) frontPart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	settings, err := parseFront(r.Query, show.Objectives(resp.GetStudy().GetSpec()))
	if err != nil {
		return nil, err
	}
	data := &frontData{Study: resp.GetStudy(), Settings: settings}
	var fitted <-chan fittedFront
	if settings.isPosterior() {
		fitted = s.fit(ctx, r.Study, settings)
	}
	observed, err := s.front(ctx, r.Study, dparetov1.FrontKind_FRONT_KIND_OBSERVED, settings)
	if err != nil {
		return nil, err
	}
	data.Observed = observed
	if data.Running, err = s.running(ctx, r.Study); err != nil {
		return nil, err
	}
	if fitted == nil {
		return data, nil
	}
	if r.Early != nil {
		select {
		case answer := <-fitted:
			return s.withFit(data, answer), nil
		case <-time.After(noticeAfter):
			if err := r.Early(data.early(r.Last)); err != nil {
				return nil, err
			}
		}
	}
	return s.withFit(data, <-fitted), nil
}

// withFit adds the posterior front, or says why there is none: the observed one is there anyway.
func (s views) withFit(data *frontData, answer fittedFront) *frontData {
	data.Posterior = answer.front
	if answer.err != nil {
		data.Note = "This is what was measured; the model has no front: " + site.Message(answer.err)
	}
	return data
}

// early returns what to show while the model is being fitted.
func (d *frontData) early(last any) *frontData {
	early := *d
	before, ok := last.(*frontData)
	if !ok || before.Posterior == nil {
		early.Note = "The model is being fitted, about 15 s for the first fit after the server has started. Until then this is what was measured."
		return &early
	}
	early.Posterior = before.Posterior
	early.Note = fmt.Sprintf("The model is being fitted to new results. This front is of revision %d, the study is at %d.",
		before.Posterior.GetRevision(), d.Observed.GetRevision())
	return &early
}

// fittedFront is the answer to a call for a posterior front.
type fittedFront struct {
	front *dparetov1.Front
	err   error
}

// fit asks for the posterior front.
func (s views) fit(ctx context.Context, study string, settings *frontSettings) <-chan fittedFront {
	answer := make(chan fittedFront, 1)
	go func() {
		front, err := s.front(ctx, study, dparetov1.FrontKind_FRONT_KIND_POSTERIOR, settings)
		answer <- fittedFront{front, err}
	}()
	return answer
}

// front returns a front of a study. The configurations beside it come with the observed front.
func (s views) front(ctx context.Context, study string, kind dparetov1.FrontKind, settings *frontSettings) (*dparetov1.Front, error) {
	req := &dparetov1.GetFrontRequest{Name: study, Kind: kind, FinalOnly: settings.Final}
	if !settings.NoOthers && kind == dparetov1.FrontKind_FRONT_KIND_OBSERVED {
		req.MaxOthers = maxCloud
	}
	resp, err := s.Fronts.GetFront(ctx, req)
	return resp.GetFront(), err
}

// running returns at most 1,000 trials that workers hold, the newest first. In a large study it looks at the newest
// 10,000 trials.
func (s views) running(ctx context.Context, study string) ([]*dparetov1.Trial, error) {
	resp, err := s.Studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{
		Parent: study, PageSize: 1000, OrderBy: "number desc", Filter: "state = ACTIVE OR state = STOPPING",
	})
	return resp.GetTrials(), err
}

// Front returns the front to list: the posterior one if it is there.
func (d *frontData) Front() *dparetov1.Front {
	if d.Posterior != nil {
		return d.Posterior
	}
	return d.Observed
}

// IsPosterior reports whether the front to list is the posterior one.
func (d *frontData) IsPosterior() bool { return d.Posterior != nil }

// Objectives returns the objectives.
func (d *frontData) Objectives() []*dparetov1.MetricSpec { return show.Objectives(d.Study.GetSpec()) }

// Seeded reports whether runs of the study were seeded, so that no ε holds for them.
func (d *frontData) Seeded() bool {
	return show.PrivacyMetric(d.Study.GetSpec()) != nil && show.IsSeeded(slices.Concat(d.Posterior.GetWarnings(), d.Observed.GetWarnings()))
}

// Guarantees says what each ε of the front means.
func (d *frontData) Guarantees() []string { return words.Guarantees(d.Study.GetSpec()) }

// Accountants says which accountant was the tightest at the points of the front.
func (d *frontData) Accountants() string {
	points := make(map[string]int64)
	for _, p := range d.Front().GetPoints() {
		if p.GetPrivacy() != nil {
			points[words.Accountant(p.GetPrivacy())]++
		}
	}
	names := slices.Sorted(maps.Keys(points))
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "Tightest accountant of ε: " + names[0] + "."
	}
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = name + " at " + show.Count(points[name], "point")
	}
	return "Tightest accountant of ε: " + strings.Join(parts, ", ") + "."
}

// Remeasured reports whether a point of the front was measured more than once.
func (d *frontData) Remeasured() bool {
	return slices.ContainsFunc(d.Front().GetPoints(), isRemeasured)
}

// Parallel draws the parallel coordinates.
func (d *frontData) Parallel() template.HTML { return d.parallel().SVG() }

// Thinned reports how many of the configurations beside the front are drawn, of how many.
func (d *frontData) Thinned() string {
	others := len(d.Observed.GetOthers())
	if total := d.Observed.GetCandidates() - int64(len(d.Observed.GetPoints())); others == maxCloud && int64(others) < total {
		return fmt.Sprintf("%d of %d other configurations, evenly over time", others, total)
	}
	return ""
}

// Warnings returns the warnings of the fronts that are shown.
func (d *frontData) Warnings() []*dparetov1.Warning {
	warnings := slices.Clone(d.Front().GetWarnings())
	if d.Settings.Kind == kindBoth && d.Posterior != nil {
		warnings = append(warnings, d.Observed.GetWarnings()...)
	}
	slices.SortStableFunc(warnings, func(a, b *dparetov1.Warning) int { return cmp.Compare(a.GetCode(), b.GetCode()) })
	return slices.CompactFunc(warnings, func(a, b *dparetov1.Warning) bool {
		return a.GetCode() == b.GetCode() && a.GetMessage() == b.GetMessage()
	})
}

// Busy reports whether the model is being fitted.
func (d *frontData) Busy() bool { return strings.HasPrefix(d.Note, "The model is being fitted") }

// NarrowPicture draws the front of two objectives for phones.
func (d *frontData) NarrowPicture() template.HTML {
	if d.Front() == nil || len(d.Objectives()) != 2 {
		return ""
	}
	return d.plane("front-narrow", 0, 1, chart.Narrow).SVG()
}

// frontRow is a row of the table of a front.
type frontRow struct {
	Trial, Choose string // paths, "" for a constant point
	Number        string
	Values        []string
	Parameters    string
	Runs          int64
	Note          string
}

// Rows returns the table of a front, at most maxFocusable points evenly over it.
func (d *frontData) Rows() []frontRow {
	var rows []frontRow
	for _, p := range chart.Thin(d.Front().GetPoints(), maxFocusable) {
		row := frontRow{
			Trial: linkOf(p), Choose: choosePath(d.Study, p), Number: site.ID(p.GetTrial()),
			Parameters: configurationText(d.Study.GetSpec(), p), Runs: p.GetRuns(), Note: pointNote(p),
		}
		for _, m := range d.Objectives() {
			row.Values = append(row.Values, frontValueText(m, p.GetValues()[m.GetId()]))
		}
		rows = append(rows, row)
	}
	return rows
}

// Unlisted returns how many points of the front the table leaves out.
func (d *frontData) Unlisted() int { return max(0, len(d.Front().GetPoints())-maxFocusable) }

// pointNote states the special features of a point.
func pointNote(p *dparetov1.FrontPoint) string {
	var notes []string
	if p.GetConstantPoint() != "" {
		notes = append(notes, "costs no run")
	}
	if p.GetKnee() {
		notes = append(notes, "knee")
	}
	if isRemeasured(p) {
		notes = append(notes, fmt.Sprintf("measured in %s, %s", show.Count(int64(max(1, len(p.GetTrials()))), "trial"), show.Count(p.GetRuns(), "run")))
	}
	if p.GetBeyondReference() {
		notes = append(notes, "outside the anti-ideal box")
	}
	return strings.Join(notes, ", ")
}

// isRemeasured reports whether a point has been measured more than once.
func isRemeasured(p *dparetov1.FrontPoint) bool { return len(p.GetTrials()) > 1 || p.GetRuns() > 1 }

// pointText says everything about a point in a line.
func pointText(study *dparetov1.Study, p *dparetov1.FrontPoint, seeded bool) string {
	var parts []string
	for _, m := range show.Objectives(study.GetSpec()) {
		parts = append(parts, words.Metric(m)+" "+frontValueText(m, p.GetValues()[m.GetId()]))
	}
	parts = append(parts, configurationText(study.GetSpec(), p))
	if p.GetPrivacy() != nil {
		of := "one run"
		if seeded {
			of = "a run whose randomness is secret, not for the seeded ones"
		}
		parts = append(parts, "ε is an upper bound for "+of+", "+words.Conditions(p.GetPrivacy()))
	}
	if p.GetConstantPoint() == "" {
		parts = append(parts, "trial "+site.ID(p.GetTrial()))
	}
	if note := pointNote(p); note != "" {
		parts = append(parts, note)
	}
	return strings.Join(parts, "; ")
}

// pointCard says the same as [pointText] as the lines of a card.
func pointCard(study *dparetov1.Study, p *dparetov1.FrontPoint) string {
	title := "Trial " + site.ID(p.GetTrial())
	if p.GetConstantPoint() != "" {
		title = show.ConstantPoint(study.GetSpec(), p.GetConstantPoint())
	}
	if note := pointNote(p); note != "" {
		title += " (" + note + ")"
	}
	lines := []string{title}
	for _, m := range show.Objectives(study.GetSpec()) {
		v := p.GetValues()[m.GetId()]
		text := words.MetricValue(m, v.GetValue())
		if m.GetComputed().GetPrivacy() != nil && text != "no bound" {
			text = "≤ " + text
		}
		lines = append(lines, words.Metric(m)+"\t"+text)
		if v.Lower != nil && v.Upper != nil {
			lines = append(lines, "90 % interval\t"+show.NumberDown(v.GetLower())+" to "+show.NumberUp(v.GetUpper()))
		}
		if v.Observed != nil && v.Lower != nil {
			lines = append(lines, "measured\t"+words.MetricValue(m, v.GetObserved()))
		}
	}
	for _, parameter := range study.GetSpec().GetParameters() {
		if v := p.GetParameters()[parameter.GetId()]; v != nil {
			lines = append(lines, parameter.GetId()+"\t"+words.Value(v))
		}
	}
	return strings.Join(lines, "\n")
}

// configurationText names a point: a configuration, or a constant point by its name.
func configurationText(spec *dparetov1.StudySpec, p *dparetov1.FrontPoint) string {
	if id := p.GetConstantPoint(); id != "" {
		return show.ConstantPoint(spec, id)
	}
	return words.Configuration(spec, p.GetParameters())
}

// pointID identifies a point in a picture.
func pointID(p *dparetov1.FrontPoint) string {
	if id := p.GetConstantPoint(); id != "" {
		return "constant-" + id
	}
	return site.ID(p.GetTrial()) + "-" + strconv.FormatInt(p.GetStep(), 10)
}

// frontValueText returns the value of an objective with its interval and the measured value.
func frontValueText(m *dparetov1.MetricSpec, v *dparetov1.FrontValue) string {
	text := words.MetricValue(m, v.GetValue())
	if v.Lower != nil && v.Upper != nil {
		text += fmt.Sprintf(" (90 %% interval %s to %s)", show.NumberDown(v.GetLower()), show.NumberUp(v.GetUpper()))
	}
	if v.Observed != nil && (v.Lower != nil || v.GetObserved() != v.GetValue()) {
		text += ", measured " + words.MetricValue(m, v.GetObserved())
	}
	if v.StandardError != nil {
		text += " ± " + show.NumberUp(v.GetStandardError()) + " (standard error)"
	}
	return text
}

// choosePath returns where a point leads: to the best that was run with at most its ε, rounded up, where
// the study has one; otherwise to its trial.
func choosePath(study *dparetov1.Study, p *dparetov1.FrontPoint) string {
	privacy := show.PrivacyMetric(study.GetSpec())
	if p.GetConstantPoint() != "" {
		return ""
	}
	if v, ok := p.GetValues()[privacy.GetId()]; ok && len(show.Objectives(study.GetSpec())) == 2 && !math.IsInf(v.GetValue(), 0) {
		query := url.Values{"bound": {privacy.GetId()}, "value": {show.NumberUp(v.GetValue())}, "measured": {"1"}}
		return "/studies/" + site.ID(study.GetName()) + "/choose?" + query.Encode()
	}
	return trialPath(p.GetTrial())
}

// linkOf returns the path of a point's trial, "" for a constant point.
func linkOf(p *dparetov1.FrontPoint) string {
	if p.GetConstantPoint() != "" {
		return ""
	}
	return trialPath(p.GetTrial())
}

// trialPath returns the path of a trial.
func trialPath(name string) string { return "/" + name }

var errNoFront = errors.New("the server has sent no front")

// Picture draws the front.
func (d *frontData) Picture() (template.HTML, error) {
	if d.Front() == nil {
		return "", errNoFront
	}
	switch len(d.Objectives()) {
	case 1:
		return "", nil
	case 2:
		return d.plane("front", 0, 1, chart.Wide).SVG(), nil
	default:
		return d.pairs(), nil
	}
}
