package front

import (
	"fmt"

	"github.com/dpareto/dpareto/cmd/dpareto/internal/view"
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/show"
)

// Comparison compares the claims of a front with fresh runs of its configurations.
type Comparison struct {
	Study string `json:"study"`
	// Kind is the kind of the front.
	Kind string `json:"kind"`
	// FrontPoints and FrontHypervolume describe the whole front.
	FrontPoints      int     `json:"front_points"`
	FrontHypervolume float64 `json:"front_hypervolume"`
	// ComparedPoints is the number of Points with a complete replicate. ClaimedHypervolume
	// and Hypervolume are their hypervolumes by the front and by the fresh runs. A point
	// whose replicates all failed adds nothing to the latter.
	ComparedPoints     int     `json:"compared_points"`
	ClaimedHypervolume float64 `json:"claimed_hypervolume"`
	Hypervolume        float64 `json:"remeasured_hypervolume"`
	// Points are the configurations that were run again.
	Points []comparedPoint `json:"points"`
}

// comparedPoint is a point of a front with fresh runs of its configuration.
type comparedPoint struct {
	Front *dparetov1.FrontPoint `json:"-"`
	// Trial, Step and Parameters are copied from Front.
	Trial      string         `json:"trial"`
	Step       int64          `json:"step,omitempty"`
	Parameters map[string]any `json:"parameters"`
	// Runs is the number of fresh runs. Without any there are no fresh values.
	Runs int `json:"runs"`
	// Failures is the number of Replicates that ended without a result for this point:
	// infeasible, failed or stopped early. The means leave them out.
	Failures int `json:"failures"`
	// Replicates are the names of the trials of the fresh runs.
	Replicates []string `json:"replicates"`
	// Values are the objectives by id.
	Values map[string]comparedValue `json:"values"`
}

// comparedValue is an objective as a front claims it and as fresh runs give it.
type comparedValue struct {
	Claimed float64  `json:"claimed"`
	Lower   *float64 `json:"claimed_lower,omitempty"`
	Upper   *float64 `json:"claimed_upper,omitempty"`
	// Remeasured is the mean of the fresh runs, and StandardError its standard error. They
	// are nil for computed objectives, which cost no run, and without runs.
	Remeasured    *float64 `json:"remeasured,omitempty"`
	StandardError *float64 `json:"standard_error,omitempty"`
}

// table returns a row for every point.
func (r *Comparison) table(spec *dparetov1.StudySpec, front *dparetov1.Front) *output.Table {
	t := new(output.Table)
	computed := make(map[string]bool)
	for _, m := range spec.GetMetrics() {
		computed[m.GetId()] = m.GetComputed() != nil
	}
	hasInterval := front.GetKind() == dparetov1.FrontKind_FRONT_KIND_POSTERIOR
	for _, id := range front.GetObjectives() {
		if computed[id] {
			t.Columns = append(t.Columns, id)
			continue
		}
		t.Columns = append(t.Columns, id+"_claimed")
		if hasInterval {
			t.Columns = append(t.Columns, id+"_lower", id+"_upper")
		}
		t.Columns = append(t.Columns, id+"_remeasured", id+"_se")
	}
	for _, p := range spec.GetParameters() {
		t.Columns = append(t.Columns, p.GetId())
	}
	t.Columns = append(t.Columns, "trial", "runs", "failures")
	for i := range r.Points {
		p := &r.Points[i]
		var row []any
		for _, id := range front.GetObjectives() {
			v := p.Values[id]
			switch {
			case !computed[id]:
				row = append(row, v.Claimed)
				if hasInterval {
					row = append(row, optional(v.Lower), optional(v.Upper))
				}
				row = append(row, optional(v.Remeasured), optional(v.StandardError))
			case p.Front.GetPrivacy() != nil && p.Front.GetPrivacy().GetEpsilon() == v.Claimed:
				row = append(row, output.Bound(v.Claimed))
			default:
				row = append(row, v.Claimed)
			}
		}
		for _, parameter := range spec.GetParameters() {
			row = append(row, view.Value(p.Front.GetParameters()[parameter.GetId()]))
		}
		t.Rows = append(t.Rows, append(row, view.ID(p.Trial), int64(p.Runs), int64(p.Failures)))
	}
	return t
}

// heading returns the lines above the table.
func (r *Comparison) heading(study *dparetov1.Study, front *dparetov1.Front) []string {
	compared := fmt.Sprintf("%d of its points", len(r.Points))
	if r.ComparedPoints < len(r.Points) {
		compared += fmt.Sprintf(", %d of them run again so far", r.ComparedPoints)
	}
	lines := []string{
		fmt.Sprintf("%s: %s front of %d points, hypervolume %s within %s", view.Title(study), r.Kind, r.FrontPoints, show.Number(r.FrontHypervolume), reference(front)),
		fmt.Sprintf("%s: hypervolume claimed %s, re-measured %s", compared, show.Number(r.ClaimedHypervolume), show.Number(r.Hypervolume)),
	}
	failures, replicates := 0, 0
	for i := range r.Points {
		failures += r.Points[i].Failures
		replicates += len(r.Points[i].Replicates)
	}
	if failures > 0 {
		lines = append(lines, fmt.Sprintf("%d of %d replicates failed, were infeasible or stopped early: fresh values leave them out, and may be too good", failures, replicates))
	}
	if statement := show.PrivacyStatement(study.GetSpec()); statement != "" {
		lines = append(lines, statement)
	}
	return lines
}
