package papers

import (
	"fmt"
	"math"
	"strings"

	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy/bayesopt"
)

// nameScales is the name of the section of scales.
const nameScales = "scales"

// tail is a of the utility bounds that are shown: the mechanism's noise exceeds its part of them with
// a probability of e⁻³, 5 %.
const tail = 3

// noisyOptimisation is Algorithm 1 of private Bayesian optimisation as it is printed.
type noisyOptimisation struct {
	bayesopt.Noisy
	// GainSource says where the bound on the information gain comes from.
	GainSource string
	// Deviation is the standard deviation of the prior in units of the utility, or 0 where it
	// is not known.
	Deviation float64
	// Records is the number of validation records, or 0 where it is not known.
	Records int64
}

// Report returns the quantities as the paper has them and as they have to be.
func (o noisyOptimisation) Report() (*output.Report, error) {
	paper, err := o.Paper()
	if err != nil {
		return nil, err
	}
	corrected, err := o.Scales()
	if err != nil {
		return nil, err
	}
	choice, err := o.CandidateUtility(tail)
	if err != nil {
		return nil, err
	}
	maximum, err := o.MaximumUtility(tail)
	if err != nil {
		return nil, err
	}
	t := &output.Table{Columns: []string{"quantity", "paper", "corrected"}}
	if o.Deviation > 0 {
		t.Columns = append(t.Columns, "corrected_in_utility")
	}
	for _, q := range []struct {
		name             string
		paper, corrected float64
		isUtility        bool
	}{
		{"choice: beta", paper.Beta, corrected.Beta, false},
		{"choice: c", paper.ChoiceDistance, corrected.ChoiceDistance, true},
		{"choice: sensitivity", paper.ChoiceSensitivity, corrected.ChoiceSensitivity, true},
		{"choice: odds of the best over one 4 standard deviations below", paper.MostOdds(o.Epsilon, 4), corrected.MostOdds(o.Epsilon, 4), false},
		{"choice: loss of the mean at most (Theorem 2)", choice.Paper, choice.Bound, true},
		{"maximum: beta_T", paper.RegretBeta, corrected.RegretBeta, false},
		{"maximum: C1", paper.C1, corrected.C1, false},
		{"maximum: gamma_T", o.InformationGain, o.InformationGain, false},
		{"maximum: Omega/T", paper.Regret, corrected.Regret, true},
		{"maximum: c", paper.MaximumDistance, corrected.MaximumDistance, true},
		{"maximum: q", paper.MaximumNoise, corrected.MaximumNoise, true},
		{"maximum: sensitivity", paper.MaximumSensitivity, corrected.MaximumSensitivity, true},
		{"maximum: Laplace scale", paper.LaplaceScale, corrected.LaplaceScale, true},
		{"maximum: error at most (Theorem 4)", maximum.Paper, maximum.Bound, true},
	} {
		row := []any{q.name, q.paper, q.corrected}
		if o.Deviation > 0 {
			var cell any
			if q.isUtility {
				cell = q.corrected * o.Deviation
			}
			row = append(row, cell)
		}
		t.Rows = append(t.Rows, row)
	}
	notes := []string{o.GainSource, "both releases, the candidate and the largest utility, cost " + fmt.Sprintf("(%s, %s)", show.Plain(2*o.Epsilon), show.Plain(2*o.Delta)) + " together"}
	notes = append(notes, boundsNote(choice.Failure, maximum.Failure))
	if o.Deviation > 0 {
		notes = append(notes, fmt.Sprintf("in the worst case, without the model, the noise makes the choice %s-DP and the maximum %s-DP if scores and means are clipped to [0, 1]. That much must be charged",
			show.Number(bayesopt.WorstCase(o.Epsilon, corrected.ChoiceSensitivity*o.Deviation, 1)), show.Number(1/(corrected.LaplaceScale*o.Deviation))))
	}
	if odds := corrected.MostOdds(o.Epsilon, 4); odds < 2 {
		notes = append(notes, fmt.Sprintf("VACUOUS choice: a candidate that is better by 4 standard deviations of the prior is likelier by a factor of %s only", show.Number(odds)))
	}
	if corrected.LaplaceScale >= 1 {
		notes = append(notes, "VACUOUS maximum: the noise is larger than the standard deviation of all that the utility might be")
	}
	r := conditionalReport("Algorithm 1, Bayesian optimisation with observation noise", o.Statement(), output.Section{
		Name: nameScales, Title: "In standard deviations of the prior", Table: t, Notes: notes,
	})
	if o.Records > 0 {
		r.Sections = append(r.Sections, fixedCandidates(o.Candidates, o.Records, o.Epsilon))
	}
	return r, nil
}

// boundsNote says how often a bound of a theorem on the utility may fail.
func boundsNote(failures ...float64) string {
	texts := make([]string, len(failures))
	for i, p := range failures {
		texts[i] = show.Number(p)
	}
	return "the theorem on the utility, with a = 3, fails with a probability of at most " + strings.Join(texts, " and ")
}

// noiseFreeReport returns the quantities of Algorithm 2.
func noiseFreeReport(a bayesopt.NoiseFree) (*output.Report, error) {
	s, err := a.Scales()
	if err != nil {
		return nil, err
	}
	u, err := a.Utility(tail)
	if err != nil {
		return nil, err
	}
	t := output.FieldTable()
	t.Rows = [][]any{{"regret", s.Regret}, {"c", s.Distance}, {sensitivityColumn, s.Sensitivity}, {"Laplace scale", s.LaplaceScale}, {"error at most (Theorem 6)", u.Bound}}
	return conditionalReport("Algorithm 2, Bayesian optimisation without observation noise", a.Statement(), output.Section{
		Name: nameScales, Title: "In standard deviations of the prior", Table: t, Notes: []string{boundsNote(u.Failure)},
	}), nil
}

// conditionalReport returns a report of an algorithm whose ε rests on a prior.
func conditionalReport(title string, s bayesopt.Statement, scales output.Section) *output.Report {
	r := &output.Report{Title: fmt.Sprintf("%s: (%s, %s) for one release", title, show.Plain(s.Epsilon), show.Plain(s.Delta))}
	r.Notes = append(r.Notes, s.Condition, "protects "+s.Protects)
	for _, assumption := range s.Assumptions {
		r.Notes = append(r.Notes, "provided that "+assumption.String())
	}
	for _, missing := range s.NotCovered {
		r.Notes = append(r.Notes, "not covered: "+missing)
	}
	r.Sections = []output.Section{scales}
	return r
}

// ridgeReport returns the quantities of Algorithm 3.
func ridgeReport(a bayesopt.Ridge) (*output.Report, error) {
	g, err := a.Guarantee()
	if err != nil {
		return nil, err
	}
	u, err := a.Utility(tail)
	if err != nil {
		return nil, err
	}
	r := &output.Report{Title: "Algorithm 3, the best score over the penalty of a convex model: " + modelText(g)}
	r.Notes = append(r.Notes, "protects "+bayesopt.Protects)
	for _, assumption := range g.Assumptions {
		r.Notes = append(r.Notes, "provided that "+assumption.String())
	}
	for _, missing := range a.NotCovered() {
		r.Notes = append(r.Notes, "not covered: "+missing)
	}
	t := &output.Table{Columns: []string{"quantity", "paper", "corrected"}}
	t.Rows = [][]any{
		{"sensitivity without the range as a cap", a.Paper(), a.Uncapped()},
		{sensitivityColumn, a.Paper(), a.Sensitivity()},
		{"Laplace scale", a.Paper() / a.Epsilon, a.LaplaceScale()},
		{"error at most (Theorem 8)", u.Paper, u.Bound},
		{"Laplace scale over the range", a.Paper() / a.Epsilon / a.Range, a.LaplaceScale() / a.Range},
	}
	scales := output.Section{Name: nameScales, Title: "In units of the score", Table: t, Notes: []string{boundsNote(u.Failure)}}
	if a.Vacuous() {
		scales.Notes = append(scales.Notes, "VACUOUS: the analysis only bounds the best score by its range")
	}
	r.Sections = []output.Section{scales}
	return r, nil
}

// fixedCandidates is the cost of a choice among candidates that were fixed beforehand.
func fixedCandidates(candidates, records int64, epsilon float64) output.Section {
	bound := 2 / (float64(records) * epsilon) * math.Log(float64(candidates))
	t := &output.Table{Columns: []string{mechanismColumn, epsilonColumn, sensitivityColumn, "expected_loss_at_most"}}
	t.Rows = [][]any{{"permute-and-flip", epsilon, 1 / float64(records), output.Bound(bound)}}
	return output.Section{
		Name: "fixed_candidates", Title: "The same number of candidates, fixed beforehand, chosen among by an accuracy", Table: t,
		Notes: []string{"pure differential privacy in the worst case, replace-one, without any assumption about the utilities; the loss is in units of the accuracy"},
	}
}
