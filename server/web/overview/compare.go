package overview

import (
	"cmp"
	"context"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// maxCompared is the number of studies that one picture tells apart.
const maxCompared = 8

// The looks of fronts in one picture: together they differ for every one of maxCompared.
var (
	comparedClasses = []string{"", "second", "third", "fourth"}
	comparedShapes  = []string{"circle", "square", "diamond"}
)

// comparePage is what compare.html shows.
type comparePage struct {
	site.Page

	Chosen []string // ids
	Known  []string // ids of other studies to choose from
	Kind   string   // posterior or observed
	X, Y   string   // scales of the axes; empty for the scales of the metrics
	// Fronts is the path of the part with the fronts, Wait of the view with it at once.
	Fronts, Wait string
	Now          *comparison // the comparison that the view waited for
}

// showCompare compares the fronts of studies: /compare?study=a&study=b. Its frame comes at once and
// the comparison follows; with wait=1 they come together.
func (s views) showCompare(w http.ResponseWriter, r *http.Request) error {
	p, err := s.NewPage(r, "Compare")
	if err != nil {
		return err
	}
	query := r.URL.Query()
	data := &comparePage{Page: *p, Kind: cmp.Or(query.Get("front"), kindPosterior), X: query.Get("x"), Y: query.Get("y")}
	if data.Chosen, err = compared(query); err != nil {
		return err
	}
	list, err := s.Studies.ListStudies(site.Outgoing(r), &dparetov1.ListStudiesRequest{OrderBy: "create_time desc"})
	if err != nil {
		return err
	}
	for _, study := range list.GetStudies() {
		if id := site.ID(study.GetName()); !slices.Contains(data.Chosen, id) {
			data.Known = append(data.Known, id)
		}
	}
	if len(data.Chosen) > 0 {
		if query.Get("wait") == "1" {
			if data.Now, err = s.compare(site.Outgoing(r), query); err != nil {
				return err
			}
		} else {
			data.Fronts = "/compare/fronts?" + query.Encode()
			query.Set("wait", "1")
			data.Wait = "/compare?" + query.Encode()
		}
	}
	s.Render(w, http.StatusOK, "compare", data)
	return nil
}

// compared returns the ids of the studies that a query names, each once.
func compared(query url.Values) ([]string, error) {
	var ids []string
	for _, study := range query["study"] {
		if study = strings.TrimSpace(study); study != "" && !slices.Contains(ids, study) {
			ids = append(ids, study)
		}
	}
	if len(ids) > maxCompared {
		return nil, site.Invalid(fmt.Errorf("study must name at most %d studies, names %d", maxCompared, len(ids)))
	}
	return ids, nil
}

// showComparison answers with the comparison alone: /compare/fronts.
func (s views) showComparison(w http.ResponseWriter, r *http.Request) error {
	data, err := s.compare(site.Outgoing(r), r.URL.Query())
	if err != nil {
		return err
	}
	s.Render(w, http.StatusOK, "comparison", data)
	return nil
}

// comparison is the content of the part "comparison".
type comparison struct {
	Kind    string
	Studies []*comparedStudy
	Notes   []string      // differences that prevent a comparison
	Picture template.HTML // empty if there is nothing to draw
	// NarrowPicture is the same for phones.
	NarrowPicture template.HTML
	// Parallel are the parallel coordinates of the same fronts.
	Parallel template.HTML

	query    url.Values
	settings *frontSettings
}

// comparedStudy is a study in a comparison.
type comparedStudy struct {
	ID, Path   string
	Study      *dparetov1.Study
	Front      *dparetov1.Front
	Problem    string // why there is no front
	Key        template.HTML
	Runs       int64
	Guarantees []string
}

// IsDrawn reports whether the study's front is in the picture.
func (c *comparedStudy) IsDrawn() bool { return c.Problem == "" }

// Seeded reports whether runs of the study were seeded, so that no ε holds for them.
func (c *comparedStudy) Seeded() bool {
	return show.PrivacyMetric(c.Study.GetSpec()) != nil && show.IsSeeded(c.Front.GetWarnings())
}

// Warnings returns the warnings of the front, with the study's name.
func (c *comparedStudy) Warnings() []*dparetov1.Warning {
	var warnings []*dparetov1.Warning
	for _, w := range c.Front.GetWarnings() {
		warnings = append(warnings, &dparetov1.Warning{Code: c.ID + ": " + w.GetCode(), Message: w.GetMessage()})
	}
	return warnings
}

// Hypervolume returns the hypervolume of the front.
func (c *comparedStudy) Hypervolume() string { return show.Number(c.Front.GetHypervolume()) }

// Best returns the best result of the front, as all views say it.
func (c *comparedStudy) Best() *words.Result { return words.Best(c.Study.GetSpec(), c.Front) }

// interval returns the 90 % interval of the best result, false without one.
func (c *comparedStudy) interval() (low, high float64, ok bool) {
	best := c.Best()
	v := best.Point.GetValues()[best.Metric.GetId()]
	return v.GetLower(), v.GetUpper(), v.GetLower() <= v.GetUpper() && v.Lower != nil && v.Upper != nil
}

// References returns the anti-ideal values.
func (c *comparedStudy) References() string {
	var parts []string
	for _, m := range show.Objectives(c.Study.GetSpec()) {
		parts = append(parts, words.Metric(m)+" "+words.MetricValue(m, c.Front.GetReference()[m.GetId()]))
	}
	return strings.Join(parts, ", ")
}

// compare reads the fronts of the studies that a query names. Studies without the objectives of the
// first one are left out.
func (s views) compare(ctx context.Context, query url.Values) (*comparison, error) {
	ids, err := compared(query)
	if err != nil {
		return nil, err
	}
	c := &comparison{Kind: cmp.Or(query.Get("front"), kindPosterior), query: query}
	kind, ok := map[string]dparetov1.FrontKind{kindPosterior: dparetov1.FrontKind_FRONT_KIND_POSTERIOR, kindObserved: dparetov1.FrontKind_FRONT_KIND_OBSERVED}[c.Kind]
	if !ok {
		return nil, site.Invalid(fmt.Errorf("front must be posterior or observed, is %q", c.Kind))
	}
	var reading sync.WaitGroup
	for i, studyID := range ids {
		look := chart.Key(comparedClasses[i%len(comparedClasses)], comparedShapes[i%len(comparedShapes)], true)
		study := &comparedStudy{ID: studyID, Path: "/studies/" + url.PathEscape(studyID), Key: look}
		c.Studies = append(c.Studies, study)
		reading.Go(func() { s.readCompared(ctx, study, kind) })
	}
	reading.Wait()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return c, c.finish()
}

// readCompared reads a study and its front.
func (s views) readCompared(ctx context.Context, c *comparedStudy, kind dparetov1.FrontKind) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: "studies/" + c.ID})
	if err == nil {
		c.Study, c.Guarantees = resp.GetStudy(), words.Guarantees(resp.GetStudy().GetSpec())
		c.Front, err = s.front(ctx, c.Study.GetName(), kind, &frontSettings{NoOthers: true})
	}
	if err != nil {
		c.Problem = site.Message(err)
		return
	}
	var list *dparetov1.ListHypervolumesResponse
	if list, err = s.Fronts.ListHypervolumes(ctx, &dparetov1.ListHypervolumesRequest{Name: c.Study.GetName()}); err != nil {
		c.Problem = site.Message(err)
	} else if points := list.GetPoints(); len(points) > 0 {
		c.Runs = points[len(points)-1].GetRuns()
	}
}

// Verdict says which study has the best result, and whether that is clear; nothing where results are
// not comparable.
func (c *comparison) Verdict() string {
	var all []*comparedStudy
	for _, study := range c.Studies {
		if !study.IsDrawn() {
			continue
		}
		if best := study.Best(); best == nil || best.Point == nil || study.Seeded() ||
			len(all) > 0 && (best.Label != all[0].Best().Label || !slices.Equal(study.Guarantees, all[0].Guarantees)) {
			return ""
		}
		all = append(all, study)
	}
	if len(all) < 2 {
		return ""
	}
	metric := all[0].Best().Metric
	sign := map[bool]float64{true: -1, false: 1}[metric.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE]
	value := func(study *comparedStudy) float64 {
		return sign * study.Best().Point.GetValues()[metric.GetId()].GetValue()
	}
	slices.SortStableFunc(all, func(a, b *comparedStudy) int { return cmp.Compare(value(a), value(b)) })
	var results []string
	isClear, isKnown := true, true
	low, high, ok := all[0].interval()
	for i, study := range all {
		results = append(results, study.ID+" "+study.Best().Value)
		if i > 0 {
			otherLow, otherHigh, otherOK := study.interval()
			isKnown = isKnown && ok && otherOK
			isClear = isClear && (otherHigh < low || high < otherLow)
		}
	}
	text := all[0].Best().Label + ": " + strings.Join(results, ", ") + ". "
	switch {
	case !isKnown:
		return text + "Measured means do not say how certain this order is."
	case isClear:
		return text + all[0].ID + " is better: its 90 % interval overlaps no other."
	default:
		return text + "No study is clearly better: the 90 % intervals overlap."
	}
}

// finish draws the comparable studies and notes the differences.
func (c *comparison) finish() error {
	var first *comparedStudy
	for _, study := range c.Studies {
		if !study.IsDrawn() {
			continue
		}
		metrics := show.Objectives(study.Study.GetSpec())
		switch {
		case len(metrics) != 2:
			study.Problem = fmt.Sprintf("It has %d objectives: only fronts of two are drawn.", len(metrics))
		case first != nil && !slices.EqualFunc(metrics, show.Objectives(first.Study.GetSpec()), sameObjective):
			study.Problem = "It has other objectives than " + first.ID + ": the same two, with the same goals and units, are needed."
		case len(study.Front.GetPoints()) == 0:
			study.Problem = "No trial has succeeded yet."
		case first == nil:
			first = study
		}
		if first == nil || !study.IsDrawn() {
			continue
		}
		if !slices.Equal(study.Guarantees, first.Guarantees) {
			c.Notes = append(c.Notes, "The ε of "+study.ID+" and of "+first.ID+" are not comparable: they differ in δ, adjacency or accountant (see the table).")
		}
		if study.References() != first.References() {
			c.Notes = append(c.Notes, "The hypervolumes of "+study.ID+" and of "+first.ID+" are not comparable: their reference values differ.")
		}
	}
	if first == nil {
		return nil
	}
	var err error
	if c.settings, err = parseFront(c.query, show.Objectives(first.Study.GetSpec())); err != nil {
		return err
	}
	metrics := show.Objectives(first.Study.GetSpec())
	c.Picture, c.NarrowPicture = c.draw("compare", chart.Wide, metrics).SVG(), c.draw("compare-narrow", chart.Narrow, metrics).SVG()
	c.Parallel = c.parallel().SVG()
	return nil
}

// parallel draws the points of all fronts over the objectives and the parameters that all studies have.
func (c *comparison) parallel() *chart.Chart {
	var all []threads
	var parameters []*dparetov1.ParameterSpec
	for i, study := range c.Studies {
		if !study.IsDrawn() {
			continue
		}
		if all == nil {
			parameters = study.Study.GetSpec().GetParameters()
		}
		parameters = slices.DeleteFunc(slices.Clone(parameters), func(p *dparetov1.ParameterSpec) bool {
			return !slices.ContainsFunc(study.Study.GetSpec().GetParameters(), func(other *dparetov1.ParameterSpec) bool { return sameParameter(p, other) })
		})
		all = append(all, threads{
			study: study.Study, front: study.Front, prefix: study.ID + ": ", id: "parallel-" + study.ID,
			class: comparedClasses[i%len(comparedClasses)], shape: comparedShapes[i%len(comparedShapes)],
		})
	}
	return drawParallel("compare-parallel", c.settings.Axes, parameters, all)
}

// sameParameter reports whether values of two parameters have places on one axis: numbers, or the same
// categories.
func sameParameter(a, b *dparetov1.ParameterSpec) bool {
	return a.GetId() == b.GetId() && slices.Equal(a.GetCategoricalDomain().GetCategories(), b.GetCategoricalDomain().GetCategories())
}

// sameObjective reports whether values of two objectives mean the same.
func sameObjective(a, b *dparetov1.MetricSpec) bool {
	return a.GetId() == b.GetId() && a.GetGoal() == b.GetGoal() && a.GetUnit() == b.GetUnit() &&
		(a.GetComputed().GetPrivacy() != nil) == (b.GetComputed().GetPrivacy() != nil)
}

// draw draws the fronts.
func (c *comparison) draw(chartID string, size chart.Size, metrics []*dparetov1.MetricSpec) *chart.Chart {
	values := make([][]float64, len(metrics))
	for i, m := range metrics {
		for _, study := range c.Studies {
			if study.IsDrawn() {
				values[i] = append(values[i], frontValues(study.Front, m)...)
			}
		}
	}
	picture := &chart.Chart{
		ID: chartID, Size: size, Title: "Fronts of " + strings.Join(c.ids(), ", "), Description: "The " + c.Kind + " front of each study; the table after the picture has their hypervolumes.",
		X: c.settings.Axes[0].axis(values[0]), Y: c.settings.Axes[1].axis(values[1]),
	}
	if metrics[0].GetComputed().GetPrivacy() != nil && picture.X.Min < 1 && picture.X.Max > 1 {
		picture.Upright("reference", 1, 0.9, "ε = 1")
	}
	for i, study := range c.Studies {
		if study.IsDrawn() {
			drawFront(picture, study.Study, study.Front, frontStyle{
				id: chartID + "-" + study.ID, class: comparedClasses[i%len(comparedClasses)], shape: comparedShapes[i%len(comparedShapes)],
				x: metrics[0], y: metrics[1], line: true, prefix: study.ID + ": ",
			})
		}
	}
	return picture
}

// ids returns the ids of the studies that are drawn.
func (c *comparison) ids() []string {
	var ids []string
	for _, study := range c.Studies {
		if study.IsDrawn() {
			ids = append(ids, study.ID)
		}
	}
	return ids
}
