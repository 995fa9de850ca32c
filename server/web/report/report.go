package report

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/server/web/chart"
	"github.com/dpareto/dpareto/server/web/words"
)

// Report is the state of a study at one time.
type Report struct {
	Study *dparetov1.Study
	Made  time.Time
	Info  *dparetov1.GetServerInfoResponse // of the server
	// Front is nil if there is a FrontProblem, Ledger if there is a LedgerProblem or the study has no ε.
	// The problems say why the server does not show them.
	Front                       *dparetov1.Front
	Ledger                      *dparetov1.GetPrivacyLedgerResponse
	FrontProblem, LedgerProblem string
	Recommendations             []Recommendation
	Releases                    []*dparetov1.Release
	Specification               string // as JSON, which creates the study again
}

// Recommendation is a configuration for an ε.
type Recommendation struct {
	Epsilon float64 // asked for, at most
	*dparetov1.QueryFrontResponse
}

// Title returns the name of the study.
func (r *Report) Title() string {
	if name := r.Study.GetDisplayName(); name != "" {
		return name
	}
	return r.ID()
}

// ID returns the study's.
func (r *Report) ID() string { return strings.TrimPrefix(r.Study.GetName(), "studies/") }

// Seeded reports whether runs of the study were seeded, so that no ε holds for them.
func (r *Report) Seeded() bool {
	return show.IsSeeded(r.Study.GetWarnings()) || show.IsSeeded(r.Front.GetWarnings()) || show.IsSeeded(r.Ledger.GetWarnings())
}

// Generated reports whether the trainer used generated data.
func (r *Report) Generated() bool { return show.IsGenerated(r.Study.GetSpec()) }

// Best returns the best result of the front, nil without an objective that is not an ε.
func (r *Report) Best() *words.Result { return words.Best(r.Study.GetSpec(), r.Front) }

// Knee returns the knee of the front, nil for a front without.
func (r *Report) Knee() *words.Result { return words.Knee(r.Study.GetSpec(), r.Front) }

// KneeEpsilon returns the ε of the knee, "" without one.
func (r *Report) KneeEpsilon() string {
	knee, m := r.Knee(), epsilonObjective(r.Study.GetSpec())
	if knee == nil || m == nil {
		return ""
	}
	return words.Epsilon(knee.Point.GetValues()[m.GetId()].GetValue())
}

// Plain states in a sentence the limit that an ε sets, "" for a study without.
func (r *Report) Plain() string { return words.Plain(r.Study.GetSpec()) }

// Statement states the meaning of an ε, "" for a study without.
func (r *Report) Statement() string { return show.PrivacyStatement(r.Study.GetSpec()) }

// Warnings returns what a reader must know, each once.
func (r *Report) Warnings() []*dparetov1.Warning {
	var all []*dparetov1.Warning
	for _, w := range slices.Concat(r.Study.GetWarnings(), r.Front.GetWarnings(), r.Ledger.GetWarnings()) {
		if !slices.ContainsFunc(all, func(other *dparetov1.Warning) bool {
			return other.GetCode() == w.GetCode() && other.GetMessage() == w.GetMessage()
		}) {
			all = append(all, w)
		}
	}
	return all
}

// Objectives returns the coordinates of the front, in the order of the spec.
func (r *Report) Objectives() []*dparetov1.MetricSpec { return show.Objectives(r.Study.GetSpec()) }

// epsilonObjective returns the objective that is an ε, or nil.
func epsilonObjective(spec *dparetov1.StudySpec) *dparetov1.MetricSpec {
	if m := show.PrivacyMetric(spec); m.GetRole() == dparetov1.MetricRole_METRIC_ROLE_OBJECTIVE {
		return m
	}
	return nil
}

// guaranteeText returns a guarantee with everything without which its ε means nothing.
func guaranteeText(g *dparetov1.PrivacyGuarantee) string {
	if math.IsInf(g.GetEpsilon(), 1) {
		return "no bound on ε is known"
	}
	return fmt.Sprintf("ε at most %s, %s, %s, accountant %s, an upper bound", show.NumberUp(g.GetEpsilon()), show.DeltaText(g.GetDelta()),
		show.AdjacencyText(enum.Name(g.GetAdjacency())+" adjacency", g.GetAssumptions()), show.AccountantText(g))
}

// frontRow is a point of the front.
type frontRow struct {
	Values     []string // of the objectives
	Parameters []string
	Trial      string
	Step       int64
	Runs       int64
	Remark     string
}

// maxRows bounds the table of the front.
const maxRows = 50

// FrontRows returns the points of the front for a table: all, or as many that are evenly spread.
func (r *Report) FrontRows() []frontRow {
	var rows []frontRow
	for _, p := range chart.Thin(r.Front.GetPoints(), maxRows) {
		row := frontRow{Trial: p.GetTrial()[strings.LastIndexByte(p.GetTrial(), '/')+1:], Step: p.GetStep(), Runs: p.GetRuns()}
		for _, m := range r.Objectives() {
			row.Values = append(row.Values, objectiveText(m, p.GetValues()[m.GetId()]))
		}
		for _, parameter := range r.Study.GetSpec().GetParameters() {
			row.Parameters = append(row.Parameters, words.Value(p.GetParameters()[parameter.GetId()]))
		}
		switch {
		case p.GetConstantPoint() != "":
			row.Remark = "no run: " + show.ConstantPoint(r.Study.GetSpec(), p.GetConstantPoint())
		case p.GetKnee():
			row.Remark = "knee"
		case p.GetBeyondReference():
			row.Remark = "beyond the reference"
		}
		rows = append(rows, row)
	}
	return rows
}

// objectiveText returns the value of an objective at a point, with its interval.
func objectiveText(m *dparetov1.MetricSpec, v *dparetov1.FrontValue) string {
	switch {
	case m.GetComputed().GetPrivacy() != nil:
		return words.Epsilon(v.GetValue())
	case v.Lower == nil || v.Upper == nil:
		return show.Number(v.GetValue())
	default:
		return fmt.Sprintf("%s (%s to %s)", show.Number(v.GetValue()), show.Number(v.GetLower()), show.Number(v.GetUpper()))
	}
}

// recommendedRow is a recommendation for a table.
type recommendedRow struct {
	Asked      string
	Reached    []string // by objective
	Parameters []string
	Remark     string
}

// RecommendedRows returns the recommendations for a table.
func (r *Report) RecommendedRows() []recommendedRow {
	var rows []recommendedRow
	for _, a := range r.Recommendations {
		row := recommendedRow{Asked: show.Plain(a.Epsilon)}
		for _, m := range r.Objectives() {
			text := ""
			if p := a.GetPredictions()[m.GetId()]; p != nil {
				text = fmt.Sprintf("%s (%s to %s)", show.Number(p.GetMedian()), show.Number(p.GetLower()), show.Number(p.GetUpper()))
			} else if v := a.GetComputedMetrics()[m.GetId()]; v != nil && v.Value != nil {
				text = show.Number(v.GetValue())
				if m.GetComputed().GetPrivacy() != nil {
					text = words.EpsilonWithin(v.GetValue(), a.Epsilon)
				}
			}
			if v, ok := a.GetReached()[m.GetId()]; ok && text == "" { // as measured
				text = show.Number(v)
			}
			if a.GetConstantPoint() != "" {
				text = show.Number(a.GetReached()[m.GetId()])
			}
			row.Reached = append(row.Reached, text)
		}
		for _, p := range r.Study.GetSpec().GetParameters() {
			row.Parameters = append(row.Parameters, words.Value(a.GetParameters()[p.GetId()]))
		}
		switch {
		case !a.GetReachable():
			row.Remark = "not reachable: this is what comes nearest"
		case a.GetConstantPoint() != "":
			row.Remark = "no run is needed: " + show.ConstantPoint(r.Study.GetSpec(), a.GetConstantPoint())
		case len(a.GetTrials()) == 0:
			row.Remark = "a prediction: it was never run"
		default:
			row.Remark = "measured in " + show.Count(a.GetRuns(), "run")
		}
		rows = append(rows, row)
	}
	return rows
}

// Settings returns the trainer's settings, sorted.
func (r *Report) Settings() [][2]string {
	var rows [][2]string
	all := r.Study.GetSpec().GetTrainer().GetSettings()
	for _, key := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, [2]string{key, all[key]})
	}
	return rows
}
