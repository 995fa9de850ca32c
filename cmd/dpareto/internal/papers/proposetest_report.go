package papers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// searchReport is a propose-test search as it is printed.
type searchReport struct {
	// Tuning has the cap that was planned or given.
	Tuning proposetest.Tuning
	// Budget is the ε that the cap was planned for, or 0.
	Budget float64
	// ValidationRecords is the size of the validation set, or 0 where it is not known.
	ValidationRecords int64
	// Names are the names of the candidates in order, and Result is the outcome of a run; both
	// are nil without a run.
	Names  []string
	Result *proposetest.Result
	// Simulated says that the noise of the run came from a seed.
	Simulated bool
	// Claim is the paper's statement about a simulated run, or nil.
	Claim *proposetest.PaperClaim
}

// Report returns the plan, and the outcome of a run if there is one.
func (p searchReport) Report() (*output.Report, error) {
	guarantee, err := p.Tuning.Guarantee()
	if err != nil {
		return nil, err
	}
	r := &output.Report{Title: "propose-test, " + modelText(guarantee)}
	r.Notes = []string{"protects " + proposetest.Protects + ", " + dashed(guarantee.Adjacency) + " adjacency"}
	for _, assumption := range guarantee.Assumptions {
		r.Notes = append(r.Notes, "provided that "+assumption.String())
	}
	for _, missing := range proposetest.NotCovered() {
		r.Notes = append(r.Notes, "not covered: "+missing)
	}
	r.Sections = []output.Section{p.search(guarantee)}
	rules, err := p.rules()
	if err != nil {
		return nil, err
	}
	r.Sections = append(r.Sections, rules)
	if p.ValidationRecords > 0 {
		validation, err := p.validation()
		if err != nil {
			return nil, err
		}
		r.Sections = append(r.Sections, validation)
	}
	if p.Result != nil {
		r.Sections = append(r.Sections, p.outcome(), p.rounds())
	}
	if p.Claim != nil {
		r.Sections = append(r.Sections, p.claim())
	}
	return r, nil
}

func (p searchReport) search(g privacy.Guarantee) output.Section {
	t := output.FieldTable()
	scale := p.Tuning.Sensitivity() / p.Tuning.Epsilon
	t.Rows = [][]any{
		{epsilonColumn, output.Bound(g.Epsilon)},
		{deltaColumn, output.Bound(g.Delta)},
		{adjacencyColumn, g.Adjacency.String()},
		{"cap", g.Steps},
		{"most_rounds", 2*p.Tuning.Levels() - 1},
		{"levels", p.Tuning.Levels()},
		{"round_epsilon", p.Tuning.Epsilon},
		{sensitivityColumn, p.Tuning.Sensitivity()},
		{"threshold_noise_scale", 2 * scale},
		{"candidate_noise_scale", 4 * scale},
	}
	s := output.Section{Name: "search", Title: "The search", Table: t}
	if 4*scale >= 0.1 {
		s.Notes = []string{fmt.Sprintf("warning: the noise of scale %s on utilities in [0, 1] makes the choice close to a random one. The product of parts and round ε should be 100 or more", show.Number(4*scale))}
	}
	return s
}

// rules compares the theorems of composition.
func (p searchReport) rules() (output.Section, error) {
	t := &output.Table{Columns: []string{"rule", epsilonColumn, deltaColumn}}
	if p.Budget > 0 {
		t.Columns = append(t.Columns, "cap_for_budget")
	}
	for _, rule := range proposetest.Rules() {
		epsilon, err := rule.Epsilon(p.Tuning.Epsilon, p.Tuning.MostRounds(), p.Tuning.Delta)
		if err != nil {
			return output.Section{}, err
		}
		delta := p.Tuning.Delta
		if rule == proposetest.Basic {
			delta = 0
		}
		row := []any{rule.String(), output.Bound(epsilon), output.Bound(delta)}
		if p.Budget > 0 {
			most, err := rule.Rounds(p.Tuning.Epsilon, p.Tuning.Delta, p.Budget)
			if err != nil {
				return output.Section{}, err
			}
			row = append(row, most)
		}
		t.Rows = append(t.Rows, row)
	}
	title := fmt.Sprintf("What %d rounds cost by every theorem of composition; the least counts", p.Tuning.MostRounds())
	if p.Budget > 0 {
		title += fmt.Sprintf("; and how many rounds ε = %s pays for", show.Plain(p.Budget))
	}
	return output.Section{Name: "rules", Title: title, Table: t}, nil
}

func (p searchReport) validation() (output.Section, error) {
	g, err := p.Tuning.ValidationGuarantee(p.ValidationRecords)
	if err != nil {
		return output.Section{}, err
	}
	t := output.FieldTable()
	t.Rows = [][]any{
		{"records", p.ValidationRecords}, {epsilonColumn, output.Bound(g.Epsilon)}, {deltaColumn, output.Bound(g.Delta)}, {adjacencyColumn, g.Adjacency.String()},
	}
	s := output.Section{Name: "validation", Title: "What the same noise guarantees for the validation records", Table: t}
	for _, assumption := range g.Assumptions {
		s.Notes = append(s.Notes, "provided that "+assumption.String())
	}
	return s, nil
}

// simulationNote says that a result must not be released.
const simulationNote = "SIMULATION: the noise comes from a seed, so anyone who guesses the seed can remove it. Do not release this result."

func (p searchReport) outcome() output.Section {
	t := output.FieldTable()
	t.Rows = [][]any{
		{"candidate", int64(p.Result.Selected)},
		{"name", p.Names[p.Result.Selected]},
		{"rounds", int64(len(p.Result.Rounds))},
		{"ended_by_cap", strconv.FormatBool(p.Result.Capped)},
	}
	s := output.Section{Name: "selected", Title: "Selected", Table: t}
	if p.Simulated {
		s.Notes = append(s.Notes, simulationNote)
	} else {
		s.Notes = append(s.Notes, "The guarantee covers this result once. It was charged to no ledger: a second run on these records costs as much again.")
	}
	if !slices.ContainsFunc(p.Result.Rounds, func(r proposetest.Round) bool { return r.Passed >= 0 }) {
		s.Notes = append(s.Notes, "No round succeeded: this is the default candidate.")
	}
	return s
}

func (p searchReport) rounds() output.Section {
	t := &output.Table{Columns: []string{"round", "level", "step", "proposed", "passed"}}
	for i, round := range p.Result.Rounds {
		passed := "none"
		if round.Passed >= 0 {
			passed = p.Names[round.Passed]
		}
		t.Rows = append(t.Rows, []any{
			int64(i + 1), round.Level, round.Step, p.Tuning.Lower + float64(round.Level+round.Step)*p.Tuning.Granularity, passed,
		})
	}
	return output.Section{Name: "rounds", Title: "Rounds, which the guarantee covers", Table: t}
}

func (p searchReport) claim() output.Section {
	t := output.FieldTable()
	t.Rows = [][]any{{"theorem", p.Claim.WorstCase}, {"empirical", p.Claim.Empirical}}
	return output.Section{
		Name: "paper_claim", Title: "What the paper would claim, which is not a guarantee", Table: t,
		Notes: []string{"no guarantee, because " + strings.Join(p.Claim.Reasons, "; ") + "."},
	}
}

// modelText returns a guarantee of package privacy in one line.
func modelText(g privacy.Guarantee) string {
	return fmt.Sprintf("ε at most %s, %s, %s adjacency", output.Cell(output.Bound(g.Epsilon)), show.DeltaText(g.Delta), dashed(g.Adjacency))
}

// dashed returns the name of an adjacency as flags have it.
func dashed(a privacy.Adjacency) string { return strings.ReplaceAll(a.String(), "_", "-") }
