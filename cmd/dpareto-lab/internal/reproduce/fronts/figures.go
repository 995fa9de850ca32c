package fronts

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// The axes of a picture of fronts. The paper's pictures end at the anti-ideal ε.
var (
	epsilonAxis = plot.Axis{Label: "ε of one run", Log: true, Reference: anti[0]}
	errorAxis   = plot.Axis{Label: "classification error", Reference: math.NaN()}
)

// subtitle says what every ε of the pictures is.
const subtitle = "δ = 1e-5, replace-one adjacency, RDP accountant with the classic conversion: upper bounds for one run"

// front returns the non-dominated points of one of the errors, within the anti-ideal point.
func front(outcomes []outcome, of func(outcome) float64) []plot.Point {
	return points(pareto.NewFront(costs(outcomes, of), anti).Points())
}

// points returns what was measured.
func points(values [][]float64) []plot.Point {
	all := make([]plot.Point, len(values))
	for i, v := range values {
		all[i] = plot.Point{X: v[0], Y: v[1]}
	}
	return all
}

// overlay is a picture of several fronts on a dataset, with the error of what costs ε = 0.
func (e *Experiment) overlay(title, data string, fronts ...plot.FrontSeries) *plot.Fronts {
	return &plot.Fronts{Title: title, X: epsilonAxis, Y: errorAxis, Fronts: fronts, Levels: e.levels[data]}
}

// panels puts pictures beside each other, as many in a row as given.
func panels(title string, columns int, all ...plot.Panel) *plot.Panels {
	return &plot.Panels{Title: title, Subtitle: []string{subtitle}, Columns: columns, Panels: all}
}

// seriesOfFigure5 are the studies of Figure 5.
func (e *Experiment) seriesOfFigure5() []series {
	var all []series
	for _, s := range slices.Concat(adult(), e.mnist()) {
		all = append(append(all, e.someRandom(s, manyRandom)), e.modelled(s, methodDPareto)...)
	}
	return all
}

// figure5 shows hypervolumes over runs, and the points of both methods.
func (e *Experiment) figure5(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{
		experimentName, runsName, hypervolumeName, "least", "most", "random_same_runs", "random_runs", "random_hypervolume", "random_runs_to_reach", "share_of_random_front_dominated",
	}}
	var all []plot.Panel
	for _, group := range []struct {
		title    string
		settings []setting
	}{{"Adult: hypervolume over runs", adult()}, {"MNIST: hypervolume over runs", e.mnist()}} {
		if p := e.courses(found, group.title, group.settings, t); len(p.Curves) > 0 {
			all = append(all, p)
		}
	}
	if random, modelled, ok := e.pair(found, mnistMLP2); ok {
		initial := int(e.scaleOf(mnistMLP2).initial)
		all = append(all, e.overlay("MNIST, MLP2", dataset.NameMNIST,
			plot.FrontSeries{Name: "DPareto", Front: front(modelled, mean), Points: points(costs(modelled[initial:], mean))},
			plot.FrontSeries{Name: fmt.Sprintf("random, %d runs", len(modelled)), Front: front(random[:min(len(random), len(modelled))], mean)},
			plot.FrontSeries{Name: fmt.Sprintf("the first %d", initial), Front: front(modelled[:initial], mean)}))
	}
	if random, modelled, ok := e.pair(found, adultSGD); ok {
		random = random[:min(len(random), manyRandom)]
		all = append(all, e.overlay("Adult, LogReg+SGD", dataset.NameAdult,
			plot.FrontSeries{Name: fmt.Sprintf("DPareto, %d runs", len(modelled)), Front: front(modelled, mean), Points: points(costs(modelled, mean))},
			plot.FrontSeries{Name: fmt.Sprintf("random, %d runs", len(random)), Front: front(random, mean), Points: points(costs(random, mean))}))
	}
	section := output.Section{
		Name: "figure5", Title: "Figure 5: DPareto over random sampling", Table: t,
		Notes: []string{
			fmt.Sprintf("hypervolume, least and most: of %d seeds of DPareto; random_same_runs: of random sampling with as many runs, the mean of the disjoint parts of the samples. "+
				"random_runs, random_hypervolume: of the first %d random samples, or all. random_runs_to_reach: the number of random samples with DPareto's mean hypervolume; empty where all have less. "+
				"share_of_random_front_dominated: of these samples' front, the points that DPareto's front of seed 1 equals or beats in both.", e.Seeds, manyRandom),
			"The paper prints no numbers of this figure. It says that DPareto has more hypervolume in nearly every experiment, and that with 256 runs on Adult it has a front similar to the one of 1,500 random samples.",
			"The bands hold all seeds of DPareto, and all parts of the random samples.",
		},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure5", Picture: panels("Figure 5: hypervolumes, and the fronts behind them", 2, all...)}}
}

// manyRandom is the number of random samples beside which the paper puts its 256 points.
const manyRandom = 1500

// pair returns the random samples of a setting, and DPareto's study of seed 1.
func (e *Experiment) pair(found results, s setting) (random, modelled []outcome, ok bool) {
	both, ok := found.of(e.random(s), e.modelled(s, methodDPareto)[0])
	if !ok {
		return nil, nil, false
	}
	return both[0], both[1], true
}

// courses returns the hypervolumes of settings over runs, and adds a row for each to the table.
func (e *Experiment) courses(found results, title string, all []setting, t *output.Table) *plot.Curves {
	c := &plot.Curves{Title: title, X: runsName, Y: hypervolumeName, Rising: true}
	for _, s := range all {
		studies, ok := found.of(e.modelled(s, methodDPareto)...)
		random, _, both := e.pair(found, s)
		if !ok || !both {
			continue
		}
		var modelled, sampled [][]float64
		for _, outcomes := range studies {
			modelled = append(modelled, trace(outcomes))
		}
		size := min(len(studies[0]), len(random))
		for part := range slices.Chunk(random, size) {
			if len(part) == size {
				sampled = append(sampled, trace(part))
			}
		}
		c.Curves = append(c.Curves, curve(s.name+", DPareto", bandOf(modelled)), curve(s.name+", random", bandOf(sampled)))
		values, many := hypervolumes(studies), random[:min(len(random), manyRandom)]
		reference := bandOf(sampled).mean
		var needed any
		if n := reached(random, stat.Mean(values, nil)); n > 0 {
			needed = int64(n)
		}
		t.Rows = append(t.Rows, []any{
			s.name, int64(len(studies[0])), stat.Mean(values, nil), slices.Min(values), slices.Max(values), reference[len(reference)-1],
			int64(len(many)), hypervolume(many), needed, dominated(many, studies[0]),
		})
	}
	return c
}

// curve draws a band.
func curve(name string, b band) plot.Series {
	return plot.Series{Name: name, X: b.x, Y: b.mean, Lower: b.lower, Upper: b.upper, Steps: true}
}

// seriesOfFigure6 are the studies of Figure 6.
func (e *Experiment) seriesOfFigure6() []series {
	return append(e.grids(adultSGD), e.modelled(adultSGD, methodDPareto)...)
}

// figure6 compares grids with DPareto.
func (e *Experiment) figure6(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, "method", runsName, hypervolumeName}}
	section := output.Section{
		Name: "figure6", Title: "Figure 6: DPareto over grids", Table: t,
		Notes: []string{"The paper prints no numbers of this figure. It says that both grids, 3^5 and 4^5, are significantly worse than DPareto. " +
			"A third or a quarter of their points have a noise multiplier of 0.1, with which ε is above 1,000."},
	}
	modelled, ok := found.of(e.modelled(adultSGD, methodDPareto)[:1]...)
	if !ok {
		return []output.Section{section}, nil
	}
	picture := e.overlay("Figure 6: DPareto over grids", adultSGD.dataset)
	picture.Subtitle = []string{"Adult, LogReg+SGD", subtitle}
	add := func(name string, outcomes []outcome) {
		t.Rows = append(t.Rows, []any{adultSGD.name, name, int64(len(outcomes)), hypervolume(outcomes)})
		picture.Fronts = append(picture.Fronts, plot.FrontSeries{
			Name: fmt.Sprintf("%s, %d runs", name, len(outcomes)), Front: front(outcomes, mean), Points: points(costs(outcomes, mean)),
		})
	}
	add("DPareto", modelled[0])
	for _, s := range e.grids(adultSGD) {
		if outcomes, ok := found.of(s); ok {
			add(fmt.Sprintf("grid %d^%d", s.levels, gridParameters), outcomes[0])
		}
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure6", Picture: picture}}
}

// seriesOfFigure7 are the studies of Figure 7.
func (e *Experiment) seriesOfFigure7() []series {
	var all []series
	for _, s := range adult() {
		all = append(all, e.modelled(s, methodDPareto)[0])
	}
	return all
}

// figure7 shows the fronts of the mean, the best and the worst runs.
func (e *Experiment) figure7(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, "runs_of_a_point", "hypervolume_mean", "hypervolume_best", "hypervolume_worst", "spread_below_0.1", "spread_above_1"}}
	var all []plot.Panel
	for _, s := range adult() {
		studies, ok := found.of(e.modelled(s, methodDPareto)[0])
		if !ok {
			continue
		}
		outcomes := studies[0]
		volume := func(of func(outcome) float64) float64 { return pareto.Hypervolume(costs(outcomes, of), anti) }
		t.Rows = append(t.Rows, []any{
			s.name, int64(e.scaleOf(s).replicates), volume(mean), volume(best), volume(worst),
			spread(outcomes, 0, 0.1), spread(outcomes, 1, anti[0]),
		})
		all = append(all, e.overlay("Adult, "+s.name, s.dataset, plot.FrontSeries{
			Name: "mean, best and worst run", Front: front(outcomes, mean), Best: front(outcomes, best), Worst: front(outcomes, worst),
		}))
	}
	section := output.Section{
		Name: "figure7", Title: "Figure 7: variability of fronts", Table: t,
		Notes: []string{
			"spread: the mean difference of the worst and the best run's error, over the configurations with ε below 0.1 and above 1 that are on the front of the means.",
			"The paper prints no numbers of this figure. It says that the variability is higher at small ε. Its runs on one worker mostly shared their random numbers by a fault of their seeds, so that it understates the spread; ours are independent.",
		},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure7", Picture: panels("Figure 7: best, mean and worst of the runs of a configuration", len(all), all...)}}
}

// spread returns the mean difference of the worst and the best error over the points of the front of means whose ε is in a
// range, as a cell that is empty without points.
func spread(outcomes []outcome, low, high float64) any {
	onFront := pareto.NewFront(costs(outcomes, mean), anti).Points()
	var spreads []float64
	for _, o := range outcomes {
		isOnFront := slices.ContainsFunc(onFront, func(p []float64) bool { return p[0] == o.epsilon && p[1] == o.mean })
		if isOnFront && low <= o.epsilon && o.epsilon < high {
			spreads = append(spreads, o.worst-o.best)
		}
	}
	if len(spreads) == 0 {
		return nil
	}
	return stat.Mean(spreads, nil)
}

// seriesOfFigure8 are the studies of Figure 8.
func (e *Experiment) seriesOfFigure8() []series {
	var all []series
	for _, s := range slices.Concat(adult(), e.mnist()) {
		all = append(all, e.modelled(s, methodDPareto)[0])
	}
	return all
}

// levels are the ε at which Figure 8 is told in numbers.
var levels = []float64{0.03, 0.1, 0.3, 1, 3, 10}

// figure8 shows the fronts of models and optimisers over each other.
func (e *Experiment) figure8(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, hypervolumeName}}
	for _, l := range levels {
		t.Columns = append(t.Columns, fmt.Sprintf("error_at_%g", l))
	}
	var all []plot.Panel
	for _, group := range []struct {
		name     string
		settings []setting
	}{{dataset.NameAdult, adult()}, {dataset.NameMNIST, e.mnist()}} {
		p := e.overlay(map[string]string{dataset.NameAdult: "Adult", dataset.NameMNIST: "MNIST"}[group.name], group.name)
		for _, s := range group.settings {
			studies, ok := found.of(e.modelled(s, methodDPareto)[0])
			if !ok {
				continue
			}
			row := []any{s.name, hypervolume(studies[0])}
			for _, l := range levels {
				row = append(row, errorAt(studies[0], l))
			}
			t.Rows = append(t.Rows, row)
			p.Fronts = append(p.Fronts, plot.FrontSeries{Name: s.name, Front: front(studies[0], mean)})
		}
		if len(p.Fronts) > 0 {
			all = append(all, p)
		}
	}
	section := output.Section{
		Name: "figure8", Title: "Figure 8: models and optimisers", Table: t,
		Notes: []string{"error_at_x: the least mean error of DPareto's study of seed 1 with ε of at most x; empty where there is none.",
			"The paper prints no numbers of this figure. It says that on Adult LogReg+Adam is nearly always the best, and that on MNIST both networks are alike at large ε and MLP2 is much better at small ε."},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure8", Picture: panels("Figure 8: fronts of models and optimisers", len(all), all...)}}
}

// errorAt returns the least mean error with ε up to a bound, as a cell.
func errorAt(outcomes []outcome, epsilon float64) any {
	least := math.Inf(1)
	for _, o := range outcomes {
		if o.epsilon <= epsilon {
			least = min(least, o.mean)
		}
	}
	if math.IsInf(least, 1) {
		return nil
	}
	return least
}
