package proposetest

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// roundsName is the number of rounds.
const roundsName = "rounds"

// results are all numbers of the experiment.
type results struct {
	figure1, figure2 []cell
	compared         []compared
}

func (r *results) report(e *Experiment) (*reproduce.Result, error) {
	accounts, err := accounts()
	if err != nil {
		return nil, err
	}
	return &reproduce.Result{
		Report: output.Report{
			Title: "Propose-test tuning with doubling step (Ding and Wu 2022)",
			Notes: []string{
				fmt.Sprintf("A simulation: %d candidates with utilities uniform over (0, 1), u0 = 0, ε0 = %g in every round, %d searches for every row. k is the number of parts of the training set, so that the noise has scales 2/(kε0) and 4/(kε0).", candidates, roundEpsilon, e.Runs),
			},
			Sections: []output.Section{r.rounds(), r.reached(), accounts, r.comparison()},
		},
	}, nil
}

// figures are the paper's figures, and the rounds of Figure 1.
func (r *results) figures() []reproduce.Figure {
	return []reproduce.Figure{
		{Name: "figure1", Picture: r.drawFigure1()}, {Name: "figure1-rounds", Picture: r.drawReached()}, {Name: "figure2", Picture: r.drawFigure2()},
	}
}

// summary returns the mean, and the largest value.
func summary(x []float64) (mean, most float64) { return stat.Mean(x, nil), slices.Max(x) }

// meanOrNil returns the mean as a cell, which is empty without values.
func meanOrNil(x []float64) any {
	if len(x) == 0 {
		return nil
	}
	return stat.Mean(x, nil)
}

// rounds is Figure 2 with more columns.
func (r *results) rounds() output.Section {
	t := &output.Table{Columns: []string{"(u*-u0)/g", "noise", "mean_rounds", "largest", "mean_selected_utility", "share_of_defaults", "mean_best_utility"}}
	for _, c := range r.figure2 {
		mean, most := summary(c.rounds)
		t.Rows = append(t.Rows, []any{
			c.ratio, noises[c.noise].name, mean, most, meanOrNil(c.selected), float64(c.defaults) / float64(len(c.best)), stat.Mean(c.best, nil),
		})
	}
	return output.Section{
		Name: "figure2", Title: "Figure 2: rounds until the search ends by itself", Table: t,
		Notes: []string{
			"The paper's figure is the rows of kε0 = 1: about 1 + log2((u*−u0)/g) rounds. It is the noise that passes, not a candidate: what is selected has the mean utility of a random candidate, about 0.5. Without noise there are up to three times as many rounds.",
			"Searches whose first round fails have no candidate in the paper, and take the default here: they are counted in share_of_defaults and not in the mean.",
		},
	}
}

// reached is Figure 1 in numbers.
func (r *results) reached() output.Section {
	t := &output.Table{Columns: []string{"noise", "mean_rounds", "mean_utility_reached", "mean_selected_utility", "share_above_best"}}
	for _, c := range r.figure1 {
		mean, _ := summary(c.rounds)
		above, sum := 0, 0.0
		for i, levels := range c.levels {
			last := levels[len(levels)-1]
			sum += last
			if last > c.best[i] {
				above++
			}
		}
		n := float64(len(c.levels))
		t.Rows = append(t.Rows, []any{noises[c.noise].name, mean, sum / n, meanOrNil(c.selected), float64(above) / n})
	}
	return output.Section{
		Name: "figure1", Title: "Figure 1, g = 0.01: the utility u = u0 + a·g that searches reach", Table: t,
		Notes: []string{"u is a proposal that passed, not a utility of a candidate: with the paper's noise it is above the best of all utilities nearly always."},
	}
}

// accounts compares the cost of rounds in the paper with their true cost.
func accounts() (output.Section, error) {
	t := &output.Table{Columns: []string{roundsName, "paper"}}
	for _, rule := range proposetest.Rules() {
		t.Columns = append(t.Columns, rule.String())
	}
	for _, rounds := range []int64{7, 13, 199} {
		claimed, err := proposetest.Advanced.Epsilon(roundEpsilon, rounds, delta)
		if err != nil {
			return output.Section{}, err
		}
		row := []any{rounds, claimed}
		for _, rule := range proposetest.Rules() {
			epsilon, err := rule.Epsilon(roundEpsilon, rounds, delta)
			if err != nil {
				return output.Section{}, err
			}
			row = append(row, output.Bound(epsilon))
		}
		t.Rows = append(t.Rows, row)
	}
	return output.Section{
		Name: "accounting", Title: fmt.Sprintf("ε of rounds with ε0 = %g, δ′ = %g", roundEpsilon, delta), Table: t,
		Notes: []string{
			"The columns after the second are guarantees for a cap on the rounds that is fixed in advance, basic with δ = 0; the least of a row counts. The second is the advanced composition of the paper.",
			"The paper's ε counts the rounds that were run (7 here), or 2(u*−u0)/g − 1 rounds (up to 199): functions of the data, and so no guarantees. Without a cap the guarantee has to count 2M − 1 = 199 rounds.",
			"For 10 parts and n validation records, a round costs a validation record 1/n, 0.00006 for n = 16,281; the paper does not account it.",
		},
	}, nil
}

func (r *results) comparison() output.Section {
	t := &output.Table{Columns: []string{"parts", "cap", "epsilon", "delta", "propose_test", "report_noisy_max", "permute_and_flip", "best"}}
	for _, c := range r.compared {
		t.Rows = append(t.Rows, []any{
			int64(c.parts), c.cap, output.Bound(c.guarantee.Epsilon), output.Bound(c.guarantee.Delta), c.proposeTest, c.noisyMax, c.permute, c.top,
		})
	}
	return output.Section{
		Name: "comparison", Title: "Mean utility of what is selected, g = 0.01, beside one private maximum with the same ε and δ = 0", Table: t,
		Notes: []string{"The searches are capped, and cost the ε of the cap. One maximum by noise of the same total ε is better in every row."},
	}
}

// drawFigure1 draws the ways of all searches through steps and utilities by how many go there. The longest way that is
// possible would fill the picture: it is a line of text.
func (r *results) drawFigure1() reproduce.Picture {
	most := proposetest.Tuning{Granularity: granularity}.MostRounds()
	p := &plot.Panels{
		Title: "Figure 1: the way of propose-test from u = 0, step = 1, g = 0.01",
		Subtitle: []string{
			fmt.Sprintf("%d searches. A success doubles the step and moves up, a failure halves it; a search ends where a step of 1 fails, or from u = 1 on.", len(r.figure1[0].levels)),
			fmt.Sprintf("The worst case, not drawn, alternates between the two: %d rounds to u = 1.", most),
		},
		Columns: 2, SameAxes: true,
	}
	for _, c := range r.figure1 {
		if !noises[c.noise].drawn {
			continue
		}
		moves := make(map[[4]float64]float64) // the share of the searches that make them
		for i, levels := range c.levels {
			steps := c.steps[i]
			own := make(map[[4]float64]bool)
			for j := 1; j < len(levels); j++ {
				own[[4]float64{steps[j-1], levels[j-1], steps[j], levels[j]}] = true
			}
			for move := range own {
				moves[move] += 1 / float64(len(c.levels))
			}
		}
		often := plot.Series{Name: "half of the searches, or more", Look: plot.Look{Colour: 1}}
		sometimes := plot.Series{Name: "a tenth, or more", Look: plot.Look{Colour: 6}}
		seldom := plot.Series{Name: "fewer", Look: plot.Look{Colour: 5, Baseline: true}}
		for _, move := range slices.SortedFunc(maps.Keys(moves), func(a, b [4]float64) int { return slices.Compare(a[:], b[:]) }) {
			series := &seldom
			switch share := moves[move]; {
			case share >= 0.5:
				series = &often
			case share >= 0.1:
				series = &sometimes
			}
			series.X = append(series.X, math.Log2(move[0]), math.Log2(move[2]), math.NaN())
			series.Y = append(series.Y, move[1], move[3], math.NaN())
		}
		p.Panels = append(p.Panels, &plot.Curves{
			Title: noises[c.noise].name, X: "log2(step)", Y: "u = u0 + a·g", Curves: []plot.Series{seldom, sometimes, often},
		})
	}
	return p
}

// drawReached draws the utility that is reached over the rounds.
func (r *results) drawReached() reproduce.Picture {
	p := &plot.Curves{
		Title: "Utility that propose-test reaches, g = 0.01",
		Subtitle: []string{
			"median over the searches, with the range from the 5th to the 95th percentile",
			"with the paper's noise (kε0 = 1) one of 100 candidates passes every round",
		},
		X: roundsName, Y: "u = u0 + a·g",
	}
	for _, c := range r.figure1 {
		if !noises[c.noise].drawn {
			continue
		}
		_, most := summary(c.rounds)
		series := plot.Series{Name: noises[c.noise].name, Steps: true}
		for round := range int(most) + 1 {
			at := make([]float64, len(c.levels))
			for i, levels := range c.levels {
				at[i] = levels[min(round, len(levels)-1)]
			}
			slices.Sort(at)
			series.X = append(series.X, float64(round))
			series.Y = append(series.Y, stat.Quantile(0.5, stat.Empirical, at, nil))
			series.Lower = append(series.Lower, stat.Quantile(0.05, stat.Empirical, at, nil))
			series.Upper = append(series.Upper, stat.Quantile(0.95, stat.Empirical, at, nil))
		}
		p.Curves = append(p.Curves, series)
	}
	return p
}

// drawFigure2 draws the number of rounds.
func (r *results) drawFigure2() reproduce.Picture {
	p := &plot.Curves{
		Title: "Figure 2: rounds of propose-test until it ends by itself",
		Subtitle: []string{
			"mean, with the range from the 5th to the 95th percentile; at most 2M − 1 rounds are possible",
			"the paper's figure is kε0 = 1, where the selected candidate is a random one",
		},
		X: "log2((u* − u0)/g)", Y: roundsName,
	}
	for j := range noises {
		if !noises[j].drawn {
			continue
		}
		series := plot.Series{Name: noises[j].name}
		for _, c := range r.figure2 {
			if c.noise != j {
				continue
			}
			sorted := slices.Sorted(slices.Values(c.rounds))
			series.X = append(series.X, math.Log2(c.ratio))
			series.Y = append(series.Y, stat.Mean(sorted, nil))
			series.Lower = append(series.Lower, stat.Quantile(0.05, stat.Empirical, sorted, nil))
			series.Upper = append(series.Upper, stat.Quantile(0.95, stat.Empirical, sorted, nil))
		}
		p.Curves = append(p.Curves, series)
	}
	return p
}
