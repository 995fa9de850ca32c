package trials

import (
	"context"
	"errors"
	"html/template"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
)

const (
	// trialsOnPage is the number of trials on a page of the table.
	trialsOnPage = 50
	// maxTrail bounds the pages that a reader can go back, so that URLs stay short.
	maxTrail = 20
	// newestFirst is the default order.
	newestFirst = "number desc"
	// trialsView is the name of the view.
	trialsView = "trials"
	// stateName is the setting of the state, and the part that shows the state of the study.
	stateName = "state"
)

// trialsQuery are the settings of the table of trials: what its URL says after "?".
type trialsQuery struct {
	Filter string // as ListTrials takes it
	State  string // a name of enum, "" for all
	Order  string
	Token  string   // of the page; "" for the first
	Trail  []string // tokens of the pages before
	// Columns are the columns to show, by their fields; empty for the usual ones.
	Columns []string
}

func newTrialsQuery(values url.Values) *trialsQuery {
	q := &trialsQuery{
		Filter: site.ValidText(values.Get("filter")), State: site.ValidText(values.Get(stateName)), Order: site.ValidText(values.Get("order_by")),
		Token: site.ValidText(values.Get("page_token")), Trail: values["trail"], Columns: values["column"],
	}
	if q.Order == "" {
		q.Order = newestFirst
	}
	return q
}

// condition returns the filter and the state as one filter.
func (q *trialsQuery) condition() string {
	switch {
	case q.State == "":
		return q.Filter
	case strings.TrimSpace(q.Filter) == "":
		return "state = " + strconv.Quote(q.State)
	default:
		return "(" + q.Filter + ") AND state = " + strconv.Quote(q.State)
	}
}

// values returns the settings without the page.
func (q *trialsQuery) values() url.Values {
	values := make(url.Values)
	for name, value := range map[string]string{"filter": q.Filter, stateName: q.State, "order_by": q.Order} {
		if value != "" && (name != "order_by" || value != newestFirst) {
			values.Set(name, value)
		}
	}
	if len(q.Columns) > 0 {
		values["column"] = q.Columns
	}
	return values
}

// IsFirst reports whether the settings show the newest trials, so that the table can stay up to date.
func (q *trialsQuery) IsFirst() bool { return q.Token == "" && q.Order == newestFirst }

// trialsPage is what trials.html shows.
type trialsPage struct {
	site.Page

	Query  *trialsQuery
	States []string
	// Chips are the conditions, each with the address of the view without it.
	Chips []chip
	// Suggestions are beginnings of conditions.
	Suggestions []string
	// Meant is what the reader may have meant by a filter that the server refuses.
	Meant *chip
	// Columns are the columns to choose from.
	Columns []columnChoice
	// FilterError is the server's error about the filter.
	FilterError string
	// Problem stands in place of the table where the server does not show it.
	Problem string
	Trials  *trialsData
	News    *trialsNews // where the table itself is not updated
}

// showTrials lists trials: /studies/{study}/trials?filter=&state=&order_by=&page_token=.
func (s views) showTrials(w http.ResponseWriter, r *http.Request) error {
	frame, err := s.NewPage(r, "Trials")
	if err != nil {
		return err
	}
	frame.View = trialsView
	p := &trialsPage{Page: *frame, Query: newTrialsQuery(r.URL.Query()), States: enum.Names(dparetov1.TrialState(0).Descriptor())}
	spec := frame.Study.GetSpec()
	p.Chips, p.Suggestions, p.Columns = chips(frame.Path()+"/trials", p.Query), suggestions(spec), choices(spec, p.Query)
	code := http.StatusOK
	switch p.Trials, err = s.trials(site.Outgoing(r), frame.Study, p.Query); status.Code(err) {
	case codes.OK:
		live := p.Query.values()
		live["part"] = []string{stateName, "trials-table"}
		if !p.Query.IsFirst() {
			p.News = new(trialsNews)
			live["part"] = []string{stateName, "trials-news"}
			live.Set("since", strconv.FormatInt(p.Trials.Revision, 10))
		}
		p.Live = frame.Path() + "/live?" + live.Encode()
	case codes.InvalidArgument:
		p.FilterError, code = site.Message(err), http.StatusUnprocessableEntity
		p.Meant = meant(spec, frame.Path()+"/trials", p.Query)
	case codes.FailedPrecondition, codes.PermissionDenied:
		p.Problem = site.Message(err)
	default:
		return err
	}
	s.Render(w, code, "trials", p)
	return nil
}

// trialsData is the content of the part "trials-table".
type trialsData struct {
	Path     string // of the study
	Columns  []trialsColumn
	Rows     []trialsRow
	Revision int64
	// Statement states the meaning of an ε in the table; "" for a study without.
	Statement string
	// Seeded says that the table has trials for which no ε holds.
	Seeded                bool
	First, Previous, Next string // URLs; "" for none
}

// trialsColumn is a head of the table.
type trialsColumn struct {
	Label  string
	Field  string // names the column in the query
	Link   string // sorts by the column; "" if it cannot
	Sort   string // aria-sort
	Number bool
}

// trialsRow is a trial in the table.
type trialsRow struct {
	Number  int64
	Cells   []trialsCell
	Trial   *dparetov1.Trial
	Remarks []string
	// Pill is the class of the pill of the state.
	Pill string
	// StoppedAt is the step at which the run was stopped before its last one, 0 otherwise.
	StoppedAt int64
}

// trialsCell is a cell of a row.
type trialsCell struct {
	Text   string
	Number bool
	// Picture or Time stands in place of Text.
	Picture template.HTML
	Time    *timestamppb.Timestamp
}

// trials makes the table.
func (s views) trials(ctx context.Context, study *dparetov1.Study, q *trialsQuery) (*trialsData, error) {
	resp, err := s.Studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{
		Parent: study.GetName(), PageSize: trialsOnPage, PageToken: q.Token, Filter: q.condition(), OrderBy: q.Order,
	})
	if err != nil {
		return nil, err
	}
	spec := study.GetSpec()
	d := &trialsData{Path: "/studies/" + site.ID(study.GetName()), Statement: show.PrivacyStatement(spec), Revision: resp.GetRevision()}
	columns := shown(spec, q)
	d.head(columns, q)
	low, high := math.Inf(1), math.Inf(-1)
	curved := curvedMetric(spec)
	for _, trial := range resp.GetTrials() {
		for _, p := range pointsOf(spec, trial, curved) {
			low, high = min(low, p.Y), max(high, p.Y)
		}
	}
	for _, trial := range resp.GetTrials() {
		row := trialsRow{Number: trial.GetNumber(), Trial: trial, Pill: pillOf(trial.GetState()), Remarks: remarks(trial), StoppedAt: stoppedAt(spec, trial)}
		for _, c := range columns {
			cell := c.cell(trial)
			if c.Field == curveField {
				cell.Picture = chart.Spark(pointsOf(spec, trial, curved), low, high)
			}
			cell.Number = c.Number
			row.Cells = append(row.Cells, cell)
		}
		d.Rows = append(d.Rows, row)
		d.Seeded = d.Seeded || show.IsSeeded(trial.GetWarnings())
	}
	d.pages(q, resp.GetNextPageToken())
	return d, nil
}

// head adds the heads, which sort by their columns.
func (d *trialsData) head(columns []column, q *trialsQuery) {
	add := func(label, field string, number, sorts bool) {
		c := trialsColumn{Label: label, Field: field, Number: number, Sort: "none"}
		if sorts {
			sorted := *q
			sorted.Order = field
			switch q.Order {
			case field:
				c.Sort, sorted.Order = "ascending", field+" desc"
			case field + " desc":
				c.Sort = "descending"
			}
			c.Link = d.Path + "/trials?" + sorted.values().Encode()
		}
		d.Columns = append(d.Columns, c)
	}
	add("Trial", "number", false, true)
	add("State", "state", false, true)
	for _, c := range columns {
		add(c.Label, c.Field, c.Number, c.Field != curveField && c.Field != stepField)
	}
	add("Remarks", "", false, false)
}

// remarks returns the special features of a trial.
func remarks(trial *dparetov1.Trial) []string {
	var all []string
	if of := trial.GetReplicateOf(); of != "" {
		all = append(all, "replicate of "+site.ID(of))
	}
	for _, w := range trial.GetWarnings() {
		all = append(all, strings.ToLower(strings.ReplaceAll(w.GetCode(), "_", " ")))
	}
	for _, key := range sortedKeys(trial.GetLabels()) {
		all = append(all, key+"="+trial.GetLabels()[key])
	}
	return all
}

// pillOf returns the class of the pill of a state.
func pillOf(state dparetov1.TrialState) string {
	switch state {
	case dparetov1.TrialState_TRIAL_STATE_SUCCEEDED:
		return "ok"
	case dparetov1.TrialState_TRIAL_STATE_ACTIVE, dparetov1.TrialState_TRIAL_STATE_STOPPING:
		return "run"
	case dparetov1.TrialState_TRIAL_STATE_INFEASIBLE:
		return "warn"
	case dparetov1.TrialState_TRIAL_STATE_FAILED:
		return "bad"
	default:
		return ""
	}
}

// stoppedAt returns the step at which a run succeeded before its last one, 0 if it did not.
func stoppedAt(spec *dparetov1.StudySpec, trial *dparetov1.Trial) int64 {
	last := trial.GetParameters()[spec.GetCheckpointParameter()].GetIntValue()
	final := trial.GetFinalMeasurement().GetStep()
	if trial.GetState() != dparetov1.TrialState_TRIAL_STATE_SUCCEEDED || final >= last {
		return 0
	}
	return final
}

// metricOf returns a metric of a trial: at its end, or what is known of it before.
func metricOf(trial *dparetov1.Trial, metric string) *dparetov1.MetricValue {
	if value := trial.GetFinalMeasurement().GetMetrics()[metric]; value != nil {
		return value
	}
	return trial.GetComputedMetrics()[metric]
}

// lastStep returns the step of the latest measurement of a trial, 0 for none.
func lastStep(spec *dparetov1.StudySpec, trial *dparetov1.Trial) int64 {
	steps := stepsOf(spec, trial)
	if len(steps) == 0 {
		return 0
	}
	return steps[len(steps)-1].GetStep()
}

// pages makes the links to other pages.
func (d *trialsData) pages(q *trialsQuery, next string) {
	link := func(token string, trail []string) string {
		values := q.values()
		values["trail"] = trail
		if token != "" {
			values.Set("page_token", token)
		}
		return d.Path + "/trials?" + values.Encode()
	}
	if next != "" {
		trail := append(slices.Clone(q.Trail), q.Token)
		d.Next = link(next, trail[max(0, len(trail)-maxTrail):])
	}
	if q.Token != "" {
		d.First = link("", nil)
	}
	if n := len(q.Trail); n > 0 {
		d.Previous = link(q.Trail[n-1], q.Trail[:n-1])
	}
}

// trialsPart makes the part "trials-table".
func (s views) trialsPart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	return s.trials(ctx, resp.GetStudy(), newTrialsQuery(r.Query))
}

// trialsNews is the content of the part "trials-news": whether the table is out of date.
type trialsNews struct {
	Changed int  // number of trials
	More    bool // there are more
	Link    string
}

// trialsNewsPart makes the part "trials-news": /studies/{study}/parts/trials-news?since=REVISION.
func (s views) trialsNewsPart(ctx context.Context, r *site.PartRequest) (any, error) {
	since, err := strconv.ParseInt(r.Query.Get("since"), 10, 64)
	if err != nil || since <= 0 {
		return nil, site.Invalid(errors.New("since must be a revision of the study"))
	}
	q := newTrialsQuery(r.Query)
	resp, err := s.Studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{Parent: r.Study, PageSize: trialsOnPage, AfterRevision: since, Filter: q.condition()})
	if err != nil {
		return nil, err
	}
	return &trialsNews{
		Changed: len(resp.GetTrials()) + len(resp.GetDeletedTrials()), More: resp.GetNextPageToken() != "",
		Link: "/studies/" + site.ID(r.Study) + "/trials?" + q.values().Encode(),
	}, nil
}
