package privacy

import (
	"github.com/dpareto/dpareto/cmd/internal/output"
	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/enum"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/privacy/stopping"
)

// RandomStopping is the plan of a random search that stops at random, as it is printed.
type RandomStopping struct {
	// Base is the name of the mechanism of one run.
	Base string
	// One and Total are the guarantees of one run and of the search.
	One, Total *dparetov1.PrivacyGuarantee
	// Attack is an ε that the search has if candidates are as easy to tell apart as their
	// profile allows and the score is the worst one; 0 where no attack is known.
	Attack float64
	// Distribution is the distribution of the number of runs.
	Distribution stopping.Distribution
	// Shares are shares of the candidates that count as best, each in [0, 1].
	Shares []float64
}

// Report returns the plan.
func (s RandomStopping) Report() *output.Report {
	r := &output.Report{
		Title: "Random search with a random number of runs of " + s.Base,
		Notes: []string{
			"protects the records that the base mechanism protects: of the training set if it is a training, and of the validation set if its released score is private, under " + enum.Name(s.Total.GetAdjacency()) + " adjacency",
		},
	}
	for _, assumption := range s.Total.GetAssumptions() {
		r.Notes = append(r.Notes, "provided that "+show.Assumption(assumption))
	}
	r.Notes = append(r.Notes,
		"not covered: anything but the best candidate, its model and its score: no front, no other trial, no count of the runs, no time that they took",
		"not covered: candidates that are suggested from earlier results, as by Bayesian optimisation",
		"not covered: records of the validation set, unless the score that decides is private for them and accounted in the base")
	for _, w := range s.Total.GetWarnings() {
		r.Notes = append(r.Notes, "warning: "+w.GetMessage()+" ("+w.GetCode()+")")
	}

	plan := output.FieldTable()
	add := func(field string, value any) { plan.Rows = append(plan.Rows, []any{field, value}) }
	switch distribution := s.Distribution.(type) {
	case stopping.TruncatedNegativeBinomial:
		add("distribution", "truncated negative binomial")
		add("eta", distribution.Eta)
		add("gamma", distribution.Gamma)
	case stopping.Poisson:
		add("distribution", "Poisson")
	}
	add("mean_runs", s.Distribution.MeanRuns())
	add("P(K=0)", s.Distribution.Probability(0))
	add("P(K=1)", s.Distribution.Probability(1))
	add(deltaColumn, output.Bound(s.Total.GetDelta()))
	add("epsilon_of_one_run", output.Bound(s.One.GetEpsilon()))
	add(epsilonColumn, output.Bound(s.Total.GetEpsilon()))
	if lower := s.Total.GetEpsilonLower(); lower > 0 {
		add("epsilon_lower", output.LowerBound(lower))
	}
	if s.Attack > 0 {
		add("epsilon_attack", output.LowerBound(s.Attack))
	}
	add(adjacencyColumn, enum.Underscored(s.Total.GetAdjacency()))
	if one := s.One.GetEpsilon(); one > 0 {
		add("ratio", s.Total.GetEpsilon()/one)
	}
	add("accountant", show.AccountantText(s.Total))
	search := output.Section{Name: "plan", Title: "The search", Table: plan}
	if s.Total.GetEpsilonLower() > 0 {
		search.Notes = append(search.Notes, "epsilon_lower is attained by some data sets and the worst score.")
	}
	if s.Attack > 0 {
		search.Notes = append(search.Notes, "epsilon_attack is attained by the worst score if a run has all of its profile δ(ε): "+
			"no accountant that knows only that profile can prove less.")
	}
	r.Sections = []output.Section{search}

	top := &output.Table{Columns: []string{"best_share", "probability"}}
	for _, q := range s.Shares {
		top.Rows = append(top.Rows, []any{q, s.Distribution.ContainsTop(q)})
	}
	r.Sections = append(r.Sections, output.Section{
		Name: "top", Title: "Probability that one of the runs is among the best of all candidates", Table: top,
		Notes: []string{"best_share is the share of the candidates, under the distribution that they are drawn from, that count as best."},
	})
	return r
}
