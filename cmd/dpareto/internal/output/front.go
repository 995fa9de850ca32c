package output

import (
	"fmt"
	"strings"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

// Front returns a table of a front, a row for every configuration: the objectives, with
// an interval where the front has one, and the configuration.
func Front(spec *dparetov1.StudySpec, front *dparetov1.Front) *Table {
	t := new(Table)
	interval := make(map[string]bool)
	observed := make(map[string]bool)
	for _, p := range front.GetPoints() {
		for id, v := range p.GetValues() {
			interval[id] = interval[id] || v.Lower != nil
			observed[id] = observed[id] || (v.Observed != nil && front.GetKind() != dparetov1.FrontKind_FRONT_KIND_OBSERVED)
		}
	}
	for _, id := range front.GetObjectives() {
		t.Columns = append(t.Columns, id)
		if interval[id] {
			t.Columns = append(t.Columns, id+"_lower", id+"_upper")
		}
		if observed[id] {
			t.Columns = append(t.Columns, id+"_observed")
		}
	}
	for _, p := range spec.GetParameters() {
		t.Columns = append(t.Columns, p.GetId())
	}
	hasSteps := spec.GetCheckpointParameter() != ""
	t.Columns = append(t.Columns, "trial")
	if hasSteps {
		t.Columns = append(t.Columns, "step")
	}
	t.Columns = append(t.Columns, "runs")

	for _, p := range front.GetPoints() {
		var row []any
		for _, id := range front.GetObjectives() {
			v := p.GetValues()[id]
			if g := p.GetPrivacy(); g != nil && g.GetEpsilon() == v.GetValue() && !interval[id] {
				row = append(row, Bound(v.GetValue()))
			} else {
				row = append(row, v.GetValue())
			}
			if interval[id] {
				row = append(row, optional(v.Lower), optional(v.Upper))
			}
			if observed[id] {
				row = append(row, optional(v.Observed))
			}
		}
		for _, parameter := range spec.GetParameters() {
			row = append(row, Value(p.GetParameters()[parameter.GetId()]))
		}
		row = append(row, ID(p.GetTrial()))
		if hasSteps {
			row = append(row, p.GetStep())
		}
		t.Rows = append(t.Rows, append(row, p.GetRuns()))
	}
	return t
}

func optional(x *float64) any {
	if x == nil {
		return nil
	}
	return *x
}

// FrontHeading returns the lines above the table of a front: what it shows, and what its
// numbers mean.
func FrontHeading(study *dparetov1.Study, front *dparetov1.Front) []string {
	title := Title(study)
	lines := []string{fmt.Sprintf("%s: %s front, %d of %d points, hypervolume %s within %s",
		title, short(front.GetKind().String(), "FRONT_KIND_"), len(front.GetPoints()), front.GetCandidates(),
		Number(front.GetHypervolume()), reference(front))}
	if statement := PrivacyStatement(study.GetSpec()); statement != "" {
		lines = append(lines, statement)
	}
	for _, w := range front.GetWarnings() {
		lines = append(lines, "note: "+w.GetMessage())
	}
	return lines
}

// Title returns the name of a study for headings, labelled if its data are generated.
func Title(study *dparetov1.Study) string {
	title := study.GetDisplayName()
	if title == "" {
		title = ID(study.GetName())
	}
	if IsGenerated(study.GetSpec()) && !strings.Contains(title, GeneratedLabel) {
		title += " (" + GeneratedLabel + ")"
	}
	return title
}

// reference returns the anti-ideal point in words.
func reference(front *dparetov1.Front) string {
	parts := make([]string, len(front.GetObjectives()))
	for i, id := range front.GetObjectives() {
		parts[i] = id + " = " + Plain(front.GetReference()[id])
	}
	return strings.Join(parts, ", ")
}
