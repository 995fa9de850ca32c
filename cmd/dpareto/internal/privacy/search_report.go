package privacy

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
)

// SearchPrices are the prices of the ways to search, as they are printed.
type SearchPrices struct {
	// Mechanism is the name of the mechanism of one run.
	Mechanism string
	// Request is the request, and Response the answer.
	Request  *dparetov1.PriceSearchRequest
	Response *dparetov1.PriceSearchResponse
}

// Report returns the prices. Programs get δ and adjacency in every row, people in the title.
func (p SearchPrices) Report(format output.Format) *output.Report {
	adjacency := enum.Name(p.Request.GetPrivacy().GetAdjacency())
	title := fmt.Sprintf("What a search with %d runs of %s costs: ε for δ = %s under %s adjacency",
		p.Request.GetRuns(), p.Mechanism, show.Plain(p.Request.GetPrivacy().GetDelta()), adjacency)
	if p.Request.GetBudget() > 0 {
		title += fmt.Sprintf("; runs_for_budget: how many runs ε = %s pays for", show.Plain(p.Request.GetBudget()))
	}
	ways := output.Section{Name: "ways", Title: "Choose a way before the first run", Table: p.table(format), Notes: p.assumptions()}
	ways.Notes = append(ways.Notes,
		"epsilon_lower: an attack shows that no bound can be lower.",
		"adaptive says whether configurations may depend on earlier results. Where they may not, all are fixed, or drawn independently of the data.")
	if filter := p.defaultFilter(); filter != "" {
		ways.Notes = append(ways.Notes, fmt.Sprintf("filters: private_mode takes the one that admits most runs, unless train_filter names another: here %q.", filter))
	}
	if p.Request.GetTestRecords() > 0 {
		ways.Notes = append(ways.Notes, fmt.Sprintf("test_epsilon protects the %d test records, under replace-one adjacency and for the same δ; epsilon protects the training records. "+
			"A person must be in one of the two sets only.", p.Request.GetTestRecords()))
	} else {
		ways.Notes = append(ways.Notes, "protected are the records that one run protects. Not covered: records that scores are computed from. --test-records and --test-noise account them.")
	}
	return &output.Report{Title: title, Sections: []output.Section{ways}}
}

// defaultFilter returns the filter that costs least, "" if there is none.
func (p SearchPrices) defaultFilter() (name string) {
	least := math.Inf(1)
	for _, w := range p.Response.GetWays() {
		if epsilon := w.GetTraining().GetEpsilon(); strings.HasSuffix(w.GetWay(), " filter") && epsilon < least {
			name, least = w.GetWay(), epsilon
		}
	}
	return name
}

// table has a row for every way.
func (p SearchPrices) table(format output.Format) *output.Table {
	withTest, withBudget := p.Request.GetTestRecords() > 0, p.Request.GetBudget() > 0
	forPrograms := format == output.JSON || format == output.CSV
	t := &output.Table{Columns: []string{"way", "released", "mean_runs", "max_runs", epsilonColumn, "epsilon_lower"}}
	if withTest {
		t.Columns = append(t.Columns, "test_epsilon", "test_noise")
	}
	t.Columns = append(t.Columns, "accountant", "adaptive")
	if withBudget {
		t.Columns = append(t.Columns, "runs_for_budget")
	}
	if forPrograms {
		t.Columns = append(t.Columns, deltaColumn, adjacencyColumn)
	}
	for _, w := range p.Response.GetWays() {
		g := w.GetTraining()
		row := []any{w.GetWay(), w.GetReleased(), whole(w.GetMeanRuns()), optional(w.MaxRuns), output.Bound(g.GetEpsilon()), nil}
		if g.EpsilonLower != nil {
			row[len(row)-1] = output.LowerBound(g.GetEpsilonLower())
		}
		if withTest {
			row = append(row, output.Bound(w.GetTest().GetEpsilon()), w.GetTestNoise())
		}
		adaptive := "no"
		if w.GetAdaptive() {
			adaptive = "yes"
		}
		row = append(row, enum.Underscored(g.GetAccountant()), adaptive)
		if withBudget {
			row = append(row, optional(w.RunsForBudget))
		}
		if forPrograms {
			row = append(row, output.Delta(g.GetDelta()), enum.Underscored(g.GetAdjacency()))
		}
		t.Rows = append(t.Rows, row)
	}
	return t
}

// whole returns a number without its fraction where it has none.
func whole(x float64) any {
	if x == math.Trunc(x) {
		return int64(x)
	}
	return x
}

// optional returns a number, or nothing.
func optional(n *int64) any {
	if n == nil {
		return nil
	}
	return *n
}

// assumptions returns what must be true, each with the ways that it is for unless it is for one run.
func (p SearchPrices) assumptions() []string {
	var names []string
	var all []*dparetov1.Assumption
	ofWays := make(map[string][]string) // by assumption
	for _, w := range p.Response.GetWays() {
		names = append(names, w.GetWay())
		here := show.JoinAssumptions(w.GetTraining().GetAssumptions(), w.GetTest().GetAssumptions())
		for _, a := range here {
			ofWays[a.GetText()] = append(ofWays[a.GetText()], w.GetWay())
		}
		all = show.JoinAssumptions(all, here)
	}
	notes := make([]string, len(all))
	for i, a := range all {
		notes[i] = "provided that " + show.Assumption(a)
		if ways := ofWays[a.GetText()]; len(ways) < len(names) {
			notes[i] += " (" + joinWays(ways, names) + ")"
		}
	}
	return notes
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
