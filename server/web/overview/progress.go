package overview

import (
	"context"
	"html/template"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/site"
	"github.com/dpareto/dpareto/server/web/words"
)

const (
	// maxSeries is how many points of a long series are drawn, maxTwin how many its table lists.
	maxSeries = 1000
	maxTwin   = 20
)

// seriesData is a series with its table.
type seriesData struct {
	ID, Title, XLabel, YLabel string
	X                         []float64
	Y                         []*float64 // nil where there is none
	text                      func(float64) string
}

// Picture draws the series as a staircase, with its last value.
func (d *seriesData) Picture() template.HTML {
	var line []chart.Point
	values := make([]float64, 0, len(d.Y))
	last := ""
	for i, y := range d.Y {
		if y == nil {
			continue
		}
		line, values, last = append(line, chart.Point{X: d.X[i], Y: *y}), append(values, *y), d.text(*y)
	}
	c := &chart.Chart{
		ID: "series-" + d.ID, Title: d.Title, Description: "A staircase up to " + last + "; the table has the numbers.",
		X: chart.Fit(d.XLabel, chart.Linear, d.X...), Y: chart.Fit(d.YLabel, chart.Linear, values...),
	}
	c.X.Whole = true
	c.Steps("", line)
	if n := len(line); n > 0 {
		c.Dots("front", line[n-1:])
		c.Text("strong", "end", chart.Point{X: line[n-1].X, Y: c.Y.Value(c.Y.At(line[n-1].Y) - 0.08)}, last)
	}
	return c.SVG()
}

// Rows returns at most maxTwin rows of the table.
func (d *seriesData) Rows() [][2]string {
	var rows [][2]string
	for i := range d.X {
		rows = append(rows, [2]string{show.Plain(d.X[i]), "none"})
		if d.Y[i] != nil {
			rows[i][1] = d.text(*d.Y[i])
		}
	}
	return chart.Thin(rows, maxTwin)
}

// hypervolumePart makes the part "hypervolume": how the observed front has grown over runs and, with
// a checkpoint parameter, over steps. With one objective it is the best value so far, which follows
// from the hypervolume: that is its distance from the reference value.
func (s views) hypervolumePart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	list, err := s.Fronts.ListHypervolumes(ctx, &dparetov1.ListHypervolumesRequest{
		Name: r.Study, Kind: dparetov1.FrontKind_FRONT_KIND_OBSERVED, FinalOnly: r.Query.Get("final") == "1",
	})
	if err != nil {
		return nil, err
	}
	return newHypervolumes(resp.GetStudy().GetSpec(), list), nil
}

func newHypervolumes(spec *dparetov1.StudySpec, list *dparetov1.ListHypervolumesResponse) []*seriesData {
	all := list.GetPoints()
	if len(all) == 0 {
		return nil
	}
	points := chart.Thin(all, maxSeries)
	text := show.Number
	name, unit, value := "Hypervolume of the observed front", hypervolumeName, func(v float64) *float64 { return &v }
	if metrics := show.Objectives(spec); len(metrics) == 1 {
		unit = words.Metric(metrics[0])
		name, value = "Best measured mean of "+unit+" so far", func(v float64) *float64 { return bestOf(metrics[0], list.GetReference()[metrics[0].GetId()], v) }
		text = func(v float64) string { return words.MetricValue(metrics[0], v) }
	}
	runs := &seriesData{ID: runsName, Title: name + " over runs", XLabel: runsName, YLabel: unit, text: text}
	steps := &seriesData{ID: "steps", Title: name + " over " + spec.GetCheckpointParameter(), XLabel: spec.GetCheckpointParameter() + " of all runs", YLabel: unit, text: text}
	for _, p := range points {
		y := value(p.GetHypervolume())
		runs.X, runs.Y = append(runs.X, float64(p.GetRuns())), append(runs.Y, y)
		steps.X, steps.Y = append(steps.X, float64(p.GetSteps())), append(steps.Y, y)
	}
	if spec.GetCheckpointParameter() == "" {
		return []*seriesData{runs}
	}
	return []*seriesData{runs, steps}
}

// bestOf returns the best value of a single objective from its hypervolume; nil without one that is
// better than the reference.
func bestOf(m *dparetov1.MetricSpec, reference, hypervolume float64) *float64 {
	if hypervolume <= 0 {
		return nil
	}
	v := reference - hypervolume
	if m.GetGoal() == dparetov1.Goal_GOAL_MAXIMIZE {
		v = reference + hypervolume
	}
	return &v
}

// runningData is the content of the part "running".
type runningData struct {
	Study  *dparetov1.Study
	Trials []runningTrial
	More   int64 // trials that are not listed
	// Idle are the last trials of workers that hold none, of few if there are many.
	Idle []runningTrial
}

// State is the state of the study.
func (d *runningData) State() *site.State { return site.NewState(d.Study) }

// Workers says how many workers hold the listed trials, and how many of them are silent.
func (d *runningData) Workers() string {
	all, silent := make(map[string]bool), make(map[string]bool)
	for _, t := range d.Trials {
		all[t.Worker] = true
		if t.Expired {
			silent[t.Worker] = true
		}
	}
	text := show.Count(int64(len(all)), "worker") + " at work"
	if len(silent) > 0 {
		text += ", " + strconv.Itoa(len(silent)) + " not heard from"
	}
	return text
}

// runningTrial is a trial that a worker holds, or the last one that it held.
type runningTrial struct {
	Path, Number, Worker string
	Since, Until         time.Time
	Stopping             bool
	Expired              bool // its lease is over
	Last                 string
}

const (
	// maxRunning is the number of trials that the table of running ones lists.
	maxRunning = 100
	// maxIdle is the number of idle workers that it lists.
	maxIdle = 10
)

// runningPart makes the part "running": who runs what.
func (s views) runningPart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	trials, err := s.running(ctx, r.Study)
	if err != nil {
		return nil, err
	}
	study := resp.GetStudy()
	data := &runningData{Study: study, More: max(0, study.GetTrialCounts().GetActive()+study.GetTrialCounts().GetStopping()-int64(min(len(trials), maxRunning)))}
	for _, t := range trials[:min(len(trials), maxRunning)] {
		data.Trials = append(data.Trials, runningTrial{
			Path: trialPath(t.GetName()), Number: site.ID(t.GetName()), Worker: t.GetWorkerId(),
			Stopping: t.GetState() == dparetov1.TrialState_TRIAL_STATE_STOPPING,
			Since:    t.GetStartTime().AsTime(), Until: t.GetLease().GetExpireTime().AsTime(), Expired: t.GetLease().GetExpireTime().AsTime().Before(time.Now()),
			Last: lastText(study.GetSpec(), t),
		})
	}
	ended, err := s.Studies.ListTrials(ctx, &dparetov1.ListTrialsRequest{
		Parent: r.Study, OrderBy: "number desc", Filter: "state = SUCCEEDED OR state = INFEASIBLE OR state = FAILED",
	})
	if err != nil {
		return nil, err
	}
	data.Idle = idle(ended.GetTrials(), trials)
	return data, nil
}

// idle returns the last of the ended trials of each worker that holds none, the latest first.
func idle(ended, running []*dparetov1.Trial) []runningTrial {
	known := map[string]bool{"": true} // of a trial that no worker ran
	for _, t := range running {
		known[t.GetWorkerId()] = true
	}
	slices.SortStableFunc(ended, func(a, b *dparetov1.Trial) int { return b.GetEndTime().AsTime().Compare(a.GetEndTime().AsTime()) })
	var last []runningTrial
	for _, t := range ended {
		if worker := t.GetWorkerId(); !known[worker] && len(last) < maxIdle {
			known[worker] = true
			last = append(last, runningTrial{Path: trialPath(t.GetName()), Number: site.ID(t.GetName()), Worker: worker, Since: t.GetEndTime().AsTime(), Last: enum.Name(t.GetState())})
		}
	}
	return last
}

// lastText returns the objectives at the last measurement of a trial in a line.
func lastText(spec *dparetov1.StudySpec, t *dparetov1.Trial) string {
	m := lastMeasurement(t)
	if m == nil {
		return "nothing yet"
	}
	parts := []string{"step " + strconv.FormatInt(m.GetStep(), 10)}
	for _, metric := range show.Objectives(spec) {
		if v, ok := valueAt(t, m, metric); ok {
			parts = append(parts, words.Metric(metric)+" "+words.MetricValue(metric, v))
		}
	}
	return strings.Join(parts, ", ")
}

// spentData is the content of the part "spent".
type spentData struct {
	// Streams says that the part carries its tile along: both need one ledger, which takes long.
	Streams bool
	Study   *dparetov1.Study
	Ledger  *dparetov1.GetPrivacyLedgerResponse
	Problem string // why there is none
	Ledgers []ledgerData
	// Releases are the publications of the study, at most the first page of them.
	Releases []*dparetov1.Release
}

// ledgerData is a ledger that the study charges.
type ledgerData struct {
	Name, Records string
	Ledger        *dparetov1.Ledger
	Problem       string // why there is none
}

// spentPart makes the part "spent": the cost of the whole search.
func (s views) spentPart(ctx context.Context, r *site.PartRequest) (any, error) {
	resp, err := s.Studies.GetStudy(ctx, &dparetov1.GetStudyRequest{Name: r.Study})
	if err != nil {
		return nil, err
	}
	data := &spentData{Study: resp.GetStudy(), Streams: r.Early != nil}
	spec := data.Study.GetSpec()
	if show.PrivacyMetric(spec) != nil {
		if data.Ledger, err = s.Privacy.GetPrivacyLedger(ctx, &dparetov1.GetPrivacyLedgerRequest{Name: r.Study}); err != nil {
			if ctx.Err() != nil {
				return nil, err
			}
			data.Problem = site.Message(err)
		}
	}
	for _, l := range []ledgerData{{Name: spec.GetTrainLedger(), Records: "Training records"}, {Name: spec.GetTestLedger(), Records: "Test records"}} {
		if l.Name == "" {
			continue
		}
		found, err := s.Releases.GetLedger(ctx, &dparetov1.GetLedgerRequest{Name: l.Name})
		if l.Ledger = found.GetLedger(); err != nil {
			l.Problem = site.Message(err)
		}
		data.Ledgers = append(data.Ledgers, l)
	}
	data.Releases = s.releases(ctx, r.Study)
	return data, nil
}

// releases returns the publications of a study, at most the first page of them, and nothing to
// readers who may not see it.
func (s views) releases(ctx context.Context, study string) []*dparetov1.Release {
	list, err := s.Releases.ListReleases(ctx, &dparetov1.ListReleasesRequest{Parent: study})
	if err != nil {
		return nil
	}
	return list.GetReleases()
}

// Seeded reports whether runs were seeded, so that no ε holds for them.
func (d *spentData) Seeded() bool { return show.IsSeeded(d.Ledger.GetWarnings()) }

// Statement states the meaning of the ε of one run.
func (d *spentData) Statement() string { return show.PrivacyStatement(d.Study.GetSpec()) }

// Costliest states the cost of the costliest run, if the cost of any is known.
func (d *spentData) Costliest() string {
	if d.Ledger.GetRuns() == d.Ledger.GetUnknownRuns() {
		return ""
	}
	known := ""
	if d.Ledger.GetUnknownRuns() > 0 {
		known = " of known cost"
	}
	if math.IsInf(d.Ledger.GetLargestEpsilon(), 1) {
		return "The costliest single run" + known + ": no bound on its ε is known."
	}
	return "The costliest single run" + known + ": ε ≤ " + show.NumberUp(d.Ledger.GetLargestEpsilon()) + "."
}

// Covers states the meaning of an ε of the study.
func (d *spentData) Covers() []string { return words.Guarantees(d.Study.GetSpec()) }

// HasPrivacy reports whether the study has an ε at all.
func (d *spentData) HasPrivacy() bool { return show.PrivacyMetric(d.Study.GetSpec()) != nil }
