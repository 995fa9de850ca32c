package overview

import (
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

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

// studiesPerPage is the number of studies on a page of the list.
const studiesPerPage = 50

// studyOrders are the orders of the list of studies, the default first.
var studyOrders = []listOption{
	{"create_time desc", "Newest first"}, {"update_time desc", "Last changed first"}, {"name", "By name"},
}

// listOption is a value of a form field and what people read.
type listOption struct{ Value, Label string }

// studiesPage is what studies.html shows.
type studiesPage struct {
	site.Page

	Rows          []studyRow
	Search, State string
	Order         string
	Orders        []listOption
	States        []string
	Labels        []label // filtered by; their paths lead to the list without them
	LabelFields   []string
	Next          string // path of the next page
	IsFiltered    bool
}

// studyRow is a study in the list.
type studyRow struct {
	State  *site.State
	Path   string
	Name   string
	Labels []label
	// Miniature is the path of the picture of the front; empty where there is none.
	Miniature string
}

// showStudies lists the studies: /studies. The query holds a text to search for (q), a state, labels
// (see labelField), an order, and the token of a page.
func (s views) showStudies(w http.ResponseWriter, r *http.Request) error {
	p, err := s.NewPage(r, "Studies")
	if err != nil {
		return err
	}
	query := r.URL.Query()
	data := &studiesPage{Page: *p, Search: query.Get("q"), State: query.Get(stateName), Order: query.Get("order"), Orders: studyOrders}
	data.States = enum.Names(dparetov1.StudyState(0).Descriptor())
	if data.Order == "" {
		data.Order = studyOrders[0].Value
	}
	data.LabelFields = query["label"]
	data.IsFiltered = data.Search != "" || data.State != "" || data.LabelFields != nil
	labels := make(map[string]string)
	for _, field := range data.LabelFields {
		key, value, err := parseLabel(field)
		if err != nil {
			return err
		}
		labels[key] = value
	}
	data.Labels = labelsOf(labels, func(key, value string) string {
		return studiesPath(query, "label", slices.DeleteFunc(slices.Clone(query["label"]), func(f string) bool { return f == labelField(key, value) })...)
	})
	resp, err := s.Studies.ListStudies(site.Outgoing(r), &dparetov1.ListStudiesRequest{
		PageSize: studiesPerPage, PageToken: query.Get("page"), OrderBy: data.Order, Filter: studiesFilter(data.Search, data.State, labels),
	})
	if err != nil {
		return err
	}
	for _, study := range resp.GetStudies() {
		data.Rows = append(data.Rows, newStudyRow(study, query))
	}
	if resp.GetNextPageToken() != "" {
		data.Next = studiesPath(query, "page", resp.GetNextPageToken())
	}
	s.Render(w, http.StatusOK, "studies", data)
	return nil
}

func newStudyRow(study *dparetov1.Study, query url.Values) studyRow {
	row := studyRow{State: site.NewState(study), Path: "/studies/" + site.ID(study.GetName()), Name: study.GetDisplayName()}
	if row.Name == "" {
		row.Name = site.ID(study.GetName())
	}
	row.Labels = labelsOf(study.GetLabels(), func(key, value string) string {
		return studiesPath(query, "label", append(slices.Clone(query["label"]), labelField(key, value))...)
	})
	if len(show.Objectives(study.GetSpec())) >= 2 && study.GetTrialCounts().GetSucceeded() > 0 {
		row.Miniature = row.Path + "/parts/miniature"
	}
	return row
}

// studiesPath returns the path of the list with a setting changed, on its first page unless that is
// the setting.
func studiesPath(query url.Values, name string, values ...string) string {
	changed := make(url.Values)
	for _, key := range []string{"q", stateName, "order", "label"} {
		if query.Get(key) != "" {
			changed[key] = query[key]
		}
	}
	changed[name] = slices.Compact(values)
	if len(changed.Encode()) == 0 {
		return "/studies"
	}
	return "/studies?" + changed.Encode()
}

// label is a label of a study and where it leads.
type label struct{ Key, Value, Path string }

// labelsOf returns labels in the order of their keys.
func labelsOf(labels map[string]string, path func(key, value string) string) []label {
	var out []label
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		out = append(out, label{key, labels[key], path(key, labels[key])})
	}
	return out
}

// labelField returns a label as the list's query has it: key=value, each escaped as in a query.
func labelField(key, value string) string {
	return url.QueryEscape(key) + "=" + url.QueryEscape(value)
}

func parseLabel(field string) (key, value string, err error) {
	key, value, _ = strings.Cut(field, "=")
	key, errKey := url.QueryUnescape(key)
	value, errValue := url.QueryUnescape(value)
	if key == "" || errKey != nil || errValue != nil {
		return "", "", site.Invalid(fmt.Errorf("label must be key=value, is %q", field))
	}
	return key, value, nil
}

// studiesFilter returns the filter of the list.
func studiesFilter(search, state string, labels map[string]string) string {
	var parts []string
	if search != "" {
		q := quoted(search)
		parts = append(parts, "(name:"+q+" OR display_name:"+q+" OR description:"+q+")")
	}
	if state != "" {
		parts = append(parts, "state = "+quoted(strings.ToUpper(state)))
	}
	for _, l := range labelsOf(labels, func(string, string) string { return "" }) {
		parts = append(parts, "labels."+quoted(l.Key)+" = "+quoted(l.Value))
	}
	return strings.Join(parts, " AND ")
}

// quoted returns text as a filter quotes it.
func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(text) + `"`
}

// miniaturePart makes the part "miniature": the front of a study, and its best result, as the view of the
// study shows them.
func (s views) miniaturePart(ctx context.Context, r *site.PartRequest) (any, error) {
	return s.frontPart(ctx, &site.PartRequest{Study: r.Study, Query: url.Values{"others": {"0"}}})
}

// Miniature draws the front of two objectives for a row of a table, "" for others.
func (d *frontData) Miniature() template.HTML {
	all := d.Objectives()
	front := d.Front()
	if len(all) != 2 || front == nil {
		return ""
	}
	var points []chart.Point
	var xs, ys []float64
	for _, p := range front.GetPoints() {
		xs, ys = append(xs, p.GetValues()[all[0].GetId()].GetValue()), append(ys, p.GetValues()[all[1].GetId()].GetValue())
	}
	x, y := d.Settings.Axes[0].axis(xs), d.Settings.Axes[1].axis(ys)
	for _, p := range front.GetPoints() {
		point := chart.Point{X: placed(all[0], &x, p), Y: placed(all[1], &y, p)}
		if !math.IsInf(point.X, 0) && !math.IsInf(point.Y, 0) {
			points = append(points, point)
		}
	}
	id := site.ID(d.Study.GetName())
	c := &chart.Chart{
		ID: "miniature-" + id, Title: "Front of " + id, Size: chart.Miniature,
		Description: strconv.Itoa(len(points)) + " points of " + words.Metric(all[1]) + " over " + words.Metric(all[0]),
		X:           x, Y: y,
	}
	c.Stairs("", points, all[1].GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE)
	c.Dots("front", chart.Thin(points, maxFocusable))
	return c.SVG()
}
