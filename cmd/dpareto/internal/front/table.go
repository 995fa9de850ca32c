package front

import (
	"fmt"
	"strings"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// table returns a table of a front, a row for every configuration: the objectives, with an interval if the
// front has one, the configuration, and its trial. A wide one also has what was measured, statistics of
// the runs, and the step, which otherwise shows as a parameter.
func table(spec *dparetov1.StudySpec, front *dparetov1.Front, wide bool) *output.Table {
	t := new(output.Table)
	shown := make(map[string]*frontColumns)
	for _, id := range front.GetObjectives() {
		columns := columnsOf(front, id, wide)
		shown[id] = columns
		t.Columns = append(t.Columns, columns.names(id)...)
	}
	for _, p := range spec.GetParameters() {
		t.Columns = append(t.Columns, p.GetId())
	}
	hasSteps := wide && spec.GetCheckpointParameter() != ""
	t.Columns = append(t.Columns, "trial")
	if hasSteps {
		t.Columns = append(t.Columns, "step")
	}
	if wide {
		t.Columns = append(t.Columns, "runs", "contribution")
	}
	t.Columns = append(t.Columns, "remark")

	for _, p := range front.GetPoints() {
		var row []any
		for _, id := range front.GetObjectives() {
			row = append(row, shown[id].cells(p, id)...)
		}
		for _, parameter := range spec.GetParameters() {
			row = append(row, view.Value(p.GetParameters()[parameter.GetId()]))
		}
		if p.GetConstantPoint() == "" {
			row = append(row, view.ID(p.GetTrial()))
		} else {
			row = append(row, nil)
		}
		if hasSteps {
			row = append(row, p.GetStep())
		}
		if wide {
			row = append(row, p.GetRuns(), p.GetContribution())
		}
		t.Rows = append(t.Rows, append(row, remark(p)))
	}
	return t
}

// frontColumns says which columns an objective has.
type frontColumns struct {
	interval, observed, standardError, runs bool
	joined                                  bool // the interval is one column
}

// columnsOf returns the columns of an objective: the ones that any point has a value for.
// Best and worst are left out if every configuration has one run.
func columnsOf(front *dparetov1.Front, id string, wide bool) *frontColumns {
	c := &frontColumns{joined: !wide}
	for _, p := range front.GetPoints() {
		v := p.GetValues()[id]
		c.interval = c.interval || v.Lower != nil
		if !wide {
			continue
		}
		c.observed = c.observed || (v.Observed != nil && front.GetKind() != dparetov1.FrontKind_FRONT_KIND_OBSERVED)
		c.standardError = c.standardError || v.StandardError != nil
		c.runs = c.runs || (v.Best != nil && p.GetRuns() > 1)
	}
	return c
}

func (c *frontColumns) names(id string) []string {
	names := []string{id}
	switch {
	case c.interval && c.joined:
		names = append(names, id+"_90%")
	case c.interval:
		names = append(names, id+"_lower", id+"_upper")
	}
	if c.observed {
		names = append(names, id+"_observed")
	}
	if c.standardError {
		names = append(names, id+"_se")
	}
	if c.runs {
		names = append(names, id+"_best", id+"_worst")
	}
	return names
}

func (c *frontColumns) cells(p *dparetov1.FrontPoint, id string) []any {
	v := p.GetValues()[id]
	cells := []any{v.GetValue()}
	if g := p.GetPrivacy(); g != nil && g.GetEpsilon() == v.GetValue() && !c.interval {
		cells[0] = output.Bound(v.GetValue())
	}
	switch {
	case c.interval && c.joined && v.Lower == nil:
		cells = append(cells, nil)
	case c.interval && c.joined:
		cells = append(cells, show.Number(v.GetLower())+" to "+show.Number(v.GetUpper()))
	case c.interval:
		cells = append(cells, optional(v.Lower), optional(v.Upper))
	}
	if c.observed {
		cells = append(cells, optional(v.Observed))
	}
	if c.standardError {
		cells = append(cells, optional(v.StandardError))
	}
	if c.runs {
		cells = append(cells, optional(v.Best), optional(v.Worst))
	}
	return cells
}

// remark returns what is special about a point.
func remark(p *dparetov1.FrontPoint) any {
	switch {
	case p.GetConstantPoint() != "":
		return "no run: " + p.GetConstantPoint()
	case p.GetBeyondReference():
		return "beyond the reference"
	case p.GetKnee():
		return "knee"
	default:
		return nil
	}
}

func optional(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// Heading returns the lines above the table of a front: its subject, and the meaning of its numbers.
func Heading(study *dparetov1.Study, front *dparetov1.Front) []string {
	title := view.Title(study)
	lines := []string{fmt.Sprintf("%s: %s front, %d of %d points, hypervolume %s within %s",
		title, enum.Name(front.GetKind()), len(front.GetPoints()), front.GetCandidates(),
		show.Number(front.GetHypervolume()), reference(front))}
	if kinds := hypervolumes(front); kinds != "" {
		lines = append(lines, kinds)
	}
	if statement := show.PrivacyStatement(study.GetSpec()); statement != "" {
		lines = append(lines, statement)
	}
	for _, w := range front.GetWarnings() {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}

// hypervolumes returns the hypervolumes of the fronts of every kind in words, or "".
func hypervolumes(front *dparetov1.Front) string {
	var parts []string
	for _, h := range front.GetHypervolumes() {
		parts = append(parts, enum.Name(h.GetKind())+" "+show.Number(h.GetHypervolume()))
	}
	if len(parts) == 0 {
		return ""
	}
	return "hypervolume of the fronts: " + strings.Join(parts, ", ")
}

// trialsName is the unit of the course of a study without steps.
const trialsName = "trials"

// hypervolumeTable returns a table of the hypervolume over the course of a study.
func hypervolumeTable(spec *dparetov1.StudySpec, points []*dparetov1.HypervolumePoint) *output.Table {
	t := &output.Table{Columns: []string{trialsName, "trial", "runs"}}
	steps := spec.GetCheckpointParameter()
	if steps != "" {
		t.Columns = append(t.Columns, steps)
	}
	t.Columns = append(t.Columns, "hypervolume")
	for _, p := range points {
		row := []any{p.GetCompletedTrials(), view.ID(p.GetTrial()), p.GetRuns()}
		if steps != "" {
			row = append(row, p.GetSteps())
		}
		t.Rows = append(t.Rows, append(row, p.GetHypervolume()))
	}
	return t
}

// reference returns the anti-ideal point in words.
func reference(front *dparetov1.Front) string {
	parts := make([]string, len(front.GetObjectives()))
	for i, id := range front.GetObjectives() {
		parts[i] = id + " = " + show.Short(front.GetReference()[id])
	}
	return strings.Join(parts, ", ")
}
