package privacy

import (
	"context"
	"fmt"
	"slices"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
)

// Report returns the prices. Programs get δ and adjacency in every row, people in the title.
func (s *Search) Report(ctx context.Context, format output.Format) (*output.Report, error) {
	adjacency := s.Run.Mechanism.Adjacency()
	t := &output.Table{Columns: []string{"way", "released", "mean_runs", "largest_runs", epsilonColumn, "accountant", "adaptive"}}
	if s.Budget > 0 {
		t.Columns = append(t.Columns, "runs_for_budget")
	}
	var assumptions, names []string
	ofWays := make(map[string][]string) // by assumption
	for _, w := range s.ways() {
		cells, p, err := s.row(ctx, w)
		if err != nil {
			return nil, err
		}
		if cells == nil {
			continue
		}
		t.Rows, names = append(t.Rows, cells), append(names, w.name)
		for _, a := range p.guarantee.Assumptions {
			if ofWays[a] == nil {
				assumptions = append(assumptions, a)
			}
			ofWays[a] = append(ofWays[a], w.name)
		}
	}
	if format == output.JSON || format == output.CSV {
		t.Columns = append(t.Columns, deltaColumn, adjacencyColumn)
		for i := range t.Rows {
			t.Rows[i] = append(t.Rows[i], output.Delta(s.Delta), adjacency.String())
		}
	}
	title := fmt.Sprintf("What a search with %d runs of %s costs: ε for δ = %s under %s adjacency", s.Runs, s.Mechanism, show.Plain(s.Delta), dashed(adjacency))
	if s.Budget > 0 {
		title += fmt.Sprintf("; runs_for_budget: how many runs ε = %s pays for", show.Plain(s.Budget))
	}
	r := &output.Report{Title: title, Sections: []output.Section{{Name: "ways", Title: "Choose a way before the first run", Table: t}}}
	run := s.Run.Mechanism.Assumptions()
	for _, a := range assumptions {
		if slices.Contains(run, a) {
			r.Sections[0].Notes = append(r.Sections[0].Notes, "provided that "+a)
		} else {
			r.Sections[0].Notes = append(r.Sections[0].Notes, fmt.Sprintf("provided that %s (%s)", a, joinWays(ofWays[a], names)))
		}
	}
	r.Sections[0].Notes = append(r.Sections[0].Notes,
		"adaptive says whether configurations may depend on earlier results. Where they may not, all are fixed, or drawn independently of the data.",
		"protected are the records that one run protects. Not covered: records that scores are computed from, unless the score is private for them and part of the run.")
	return r, nil
}

// joinWays names some of all ways, which are next to each other.
func joinWays(names, all []string) string {
	switch last := names[len(names)-1]; {
	case len(names) == 1:
		return last
	case last == all[len(all)-1]:
		return names[0] + ", and all below"
	default:
		return names[0] + " to " + last
	}
}
