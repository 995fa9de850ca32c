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
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/suggest/pareto"
)

// Captions of pictures: what is drawn.
const (
	ofCourses = "Hypervolumes are means; bands have all studies of DPareto, and thin edges 95 % of the draws of random samples. Fronts are of seed 1"
	ofSeedOne = "Fronts of the study of seed 1, by the mean, least and largest error over the runs of a configuration"
	ofMedians = "Median of the studies at each ε, with a band of all; errors are means over the runs of a configuration"
)

// subtitle says what every ε of the pictures is.
const subtitle = "δ = 1e-5, replace-one adjacency, RDP accountant (classic conversion); ε is a bound for one run"

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

// overlay is a picture of several fronts on a dataset, with the error of what costs ε = 0. As in the paper it ends at the
// anti-ideal ε; and a little above that error, where training is worse than none.
func (e *Experiment) overlay(title, data string, fronts ...plot.FrontSeries) *plot.Fronts {
	f := &plot.Fronts{
		Title: title, Fronts: fronts, Levels: e.levels[data],
		X: plot.Axis{Label: "ε of one run", Log: true, Reference: anti[0]}, Y: plot.Axis{Label: "classification error", Reference: math.NaN()},
	}
	if len(f.Levels) > 0 {
		f.Y.Reference = f.Levels[0].Y
	}
	return f
}

// panels puts pictures beside each other, as many in a row as given.
func panels(title, caption string, columns int, all ...plot.Panel) *plot.Panels {
	return &plot.Panels{Title: title, Subtitle: []string{subtitle, caption}, Columns: columns, Panels: all}
}

// seriesOfFigure5 are the studies of Figure 5.
func (e *Experiment) seriesOfFigure5() []series {
	var all []series
	for _, s := range slices.Concat(adult(), e.mnist()) {
		all = append(append(all, e.random(s)...), e.modelled(s, methodDPareto)...)
	}
	return all
}

// figure5 shows hypervolumes over runs, and the points of both methods.
func (e *Experiment) figure5(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{
		experimentName, seedsName, runsName, hypervolumeName, lowerName, upperName, "least", "most", untouchedName,
		"random_same_runs", "random_runs", "random_hypervolume", "random_untouched", "random_runs_to_reach", "share_of_random_front_dominated",
	}}
	var all []plot.Panel
	for _, group := range []struct {
		title    string
		settings []setting
	}{{"Adult: hypervolume over runs", adult()}, {e.datasetTitle(mnistMLP2) + ": hypervolume over runs", e.mnist()}} {
		if p := e.courses(found, group.title, group.settings, t); len(p.Curves) > 0 {
			all = append(all, p)
		}
	}
	for _, s := range []setting{adultSGD, mnistMLP2} {
		look := plot.Look{Colour: e.colour(s)}
		sampled, both := found.of(e.random(s)[0])
		modelled, ok := found.of(e.modelled(s, methodDPareto)[0])
		if !ok || !both {
			continue
		}
		all = append(all, e.overlay(e.datasetTitle(s)+", "+s.name, s.dataset,
			plot.FrontSeries{Name: fmt.Sprintf("DPareto, %d runs", len(modelled[0])), Front: front(modelled[0], mean), Points: points(costs(modelled[0], mean)), Look: look},
			plot.FrontSeries{Name: fmt.Sprintf("random, %d runs", len(sampled[0])), Front: front(sampled[0], mean), Points: points(costs(sampled[0], mean)), Look: plot.Look{Colour: look.Colour, Baseline: true}}))
	}
	section := output.Section{
		Name: "figure5", Title: "Figure 5: DPareto over random sampling", Table: t,
		Notes: []string{
			"hypervolume, lower and upper: the mean over the seeds of DPareto with its 95 % interval by Student's t; least and most are of single seeds. " +
				"random_same_runs: of random sampling with as many runs, the mean of 1,000 draws from all random samples. " +
				"random_runs, random_hypervolume: of the random samples of seed 1. random_runs_to_reach: how many of them have DPareto's mean hypervolume; empty where all have less. " +
				"share_of_random_front_dominated: of their front, the points that DPareto's front of seed 1 equals or beats in both.",
			"The paper prints no numbers of this figure. It says that DPareto has more hypervolume in nearly every experiment, and that with 256 runs on Adult it has a front similar to the one of 1,500 random samples.",
			"The bands hold all seeds of DPareto, and 95 % of the draws of random sampling. The fronts and points are of seed 1.",
		},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure5", Picture: panels("Figure 5: hypervolumes, and the fronts behind them", ofCourses, 2, all...)}}
}

// datasetTitle returns the name of a setting's dataset, and which part of the protocol is run on it.
func (e *Experiment) datasetTitle(s setting) string {
	title := "Adult"
	if s.dataset == dataset.NameMNIST {
		title = "MNIST"
	}
	if most := e.scaleOf(s).maxEpochs; most > 0 {
		title += fmt.Sprintf(", at most %d epochs", most)
	}
	return title
}

// colour returns the colour of a setting in all pictures, which settings of other datasets share.
func (e *Experiment) colour(s setting) int {
	all := adult()
	if s.dataset == dataset.NameMNIST {
		all = e.mnist()
	}
	return 1 + slices.Index(all, s)
}

// courses returns the hypervolumes of settings over runs, and adds a row for each to the table.
func (e *Experiment) courses(found results, title string, all []setting, t *output.Table) *plot.Curves {
	c := &plot.Curves{Title: title, X: runsName, Y: hypervolumeName, Rising: true}
	for _, s := range all {
		studies, ok := found.of(e.modelled(s, methodDPareto)...)
		sampled, both := found.of(e.random(s)...)
		if !ok || !both {
			continue
		}
		modelled := make([][]float64, len(studies))
		for k, outcomes := range studies {
			modelled[k] = trace(outcomes)
		}
		random := bandOf(resampled(slices.Concat(sampled...), min(len(studies[0]), len(sampled[0]))), 0.025, 0.975)
		c.Curves = append(c.Curves, curve(s.name+", DPareto", bandOf(modelled, 0, 1), plot.Look{Colour: e.colour(s)}),
			curve(s.name+", random", random, plot.Look{Colour: e.colour(s), Baseline: true}))
		values := each(studies, hypervolume)
		value, lower, upper := confidence(values)
		var needed any
		if n := reached(sampled[0], value); n > 0 {
			needed = int64(n)
		}
		t.Rows = append(t.Rows, []any{
			s.name, int64(len(studies)), int64(len(studies[0])), value, lower, upper, slices.Min(values), slices.Max(values), meanUntouched(studies),
			random.mean[len(random.mean)-1], int64(len(sampled[0])), hypervolume(sampled[0]), known(untouchedHypervolume(sampled[0])), needed, dominated(sampled[0], studies[0]),
		})
	}
	return c
}

// curve draws a band.
func curve(name string, b band, look plot.Look) plot.Series {
	return plot.Series{Name: name, X: b.x, Y: b.mean, Lower: b.lower, Upper: b.upper, Steps: true, Look: look}
}

// seriesOfFigure6 are the studies of Figure 6.
func (e *Experiment) seriesOfFigure6() []series {
	return append(e.grids(adultSGD), e.modelled(adultSGD, methodDPareto)...)
}

// figure6 compares grids with DPareto.
func (e *Experiment) figure6(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, "method", runsName, hypervolumeName, untouchedName}}
	section := output.Section{
		Name: "figure6", Title: "Figure 6: DPareto over grids", Table: t,
		Notes: []string{"The paper prints no numbers of this figure. It says that both grids, 3^5 and 4^5, are significantly worse than DPareto. " +
			"A third or a quarter of their points have a noise multiplier of 0.1, with which ε is above 1,000."},
	}
	studies, ok := found.of(e.modelled(adultSGD, methodDPareto)...)
	if !ok {
		return []output.Section{section}, nil
	}
	picture := e.overlay("Figure 6: DPareto over grids", adultSGD.dataset)
	picture.Subtitle = []string{"Adult, LogReg+SGD", subtitle, ofMedians}
	median, worst, best := attainment(studies)
	picture.Fronts = append(picture.Fronts, plot.FrontSeries{
		Name: fmt.Sprintf("DPareto, %d runs, %d seeds", len(studies[0]), len(studies)), Front: median, Unmarked: true, Best: best, Worst: worst,
	})
	t.Rows = append(t.Rows, []any{
		adultSGD.name, methodDPareto.name(), int64(len(studies[0])), stat.Mean(each(studies, hypervolume), nil), meanUntouched(studies),
	})
	for _, s := range e.grids(adultSGD) {
		grid, ok := found.of(s)
		if !ok {
			continue
		}
		name := fmt.Sprintf("grid of %d values", s.levels)
		t.Rows = append(t.Rows, []any{adultSGD.name, name, int64(len(grid[0])), hypervolume(grid[0]), known(untouchedHypervolume(grid[0]))})
		picture.Fronts = append(picture.Fronts, plot.FrontSeries{Name: fmt.Sprintf("%s, %d runs", name, len(grid[0])), Front: front(grid[0], mean), Look: plot.Look{Baseline: true}})
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure6", Picture: picture}}
}

// seriesOfFigure7 are the studies of Figure 7.
func (e *Experiment) seriesOfFigure7() []series {
	var all []series
	for _, s := range adult() {
		all = append(all, e.modelled(s, methodDPareto)...)
	}
	return all
}

// figure7 shows the fronts of the mean, the best and the worst runs.
func (e *Experiment) figure7(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, seedsName, "runs_of_a_point", "hypervolume_mean", "hypervolume_best", "hypervolume_worst", "spread_below_0.1", "spread_above_1"}}
	var all []plot.Panel
	for _, s := range adult() {
		studies, ok := found.of(e.modelled(s, methodDPareto)...)
		if !ok {
			continue
		}
		volume := func(of func(outcome) float64) float64 {
			return stat.Mean(each(studies, func(all []outcome) float64 { return pareto.Hypervolume(costs(all, of), anti) }), nil)
		}
		t.Rows = append(t.Rows, []any{
			s.name, int64(len(studies)), int64(e.scaleOf(s).replicates), volume(mean), volume(best), volume(worst),
			spread(studies, 0, 0.1), spread(studies, 1, anti[0]),
		})
		all = append(all, e.overlay(s.name, s.dataset,
			plot.FrontSeries{Name: "mean", Front: front(studies[0], mean)},
			plot.FrontSeries{Name: "best run", Front: front(studies[0], best), Look: plot.Look{Colour: 3, Baseline: true}},
			plot.FrontSeries{Name: "worst run", Front: front(studies[0], worst), Look: plot.Look{Colour: 2, Baseline: true}}))
	}
	section := output.Section{
		Name: "figure7", Title: "Figure 7: variability of fronts", Table: t,
		Notes: []string{
			"Means over the seeds; the picture is of seed 1. spread: the mean difference of the worst and the best run's error, over the configurations with ε below 0.1 and above 1 that are on the front of the means.",
			"The paper prints no numbers of this figure. It says that the variability is higher at small ε. Its runs on one worker mostly shared their random numbers by a fault of their seeds, so that it understates the spread; ours are independent.",
		},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	picture := panels("Figure 7: fronts of the mean, the best and the worst run on Adult", ofSeedOne, len(all), all...)
	picture.SameAxes = true
	return []output.Section{section}, []reproduce.Figure{{Name: "figure7", Picture: picture}}
}

// spread returns the mean difference of the worst and the best error over the points of the fronts of means whose ε is in a
// range, as a cell that is empty without points.
func spread(studies [][]outcome, low, high float64) any {
	var spreads []float64
	for _, outcomes := range studies {
		for _, o := range onFront(outcomes) {
			if low <= o.epsilon && o.epsilon < high {
				spreads = append(spreads, o.worst-o.best)
			}
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
		all = append(all, e.modelled(s, methodDPareto)...)
	}
	return all
}

// levels are the ε at which Figure 8 is told in numbers.
var levels = []float64{0.03, 0.1, 0.3, 1, 3, 10}

// figure8 shows the fronts of models and optimisers over each other.
func (e *Experiment) figure8(found results) ([]output.Section, []reproduce.Figure) {
	t := &output.Table{Columns: []string{experimentName, seedsName, hypervolumeName, untouchedName}}
	for _, l := range levels {
		t.Columns = append(t.Columns, fmt.Sprintf("error_at_%g", l))
	}
	var all []plot.Panel
	for _, group := range [][]setting{adult(), e.mnist()} {
		p := e.overlay(e.datasetTitle(group[0]), group[0].dataset)
		for _, s := range group {
			studies, ok := found.of(e.modelled(s, methodDPareto)...)
			if !ok {
				continue
			}
			row := []any{s.name, int64(len(studies)), stat.Mean(each(studies, hypervolume), nil), meanUntouched(studies)}
			for _, l := range levels {
				row = append(row, errorAt(studies, l))
			}
			t.Rows = append(t.Rows, row)
			median, worst, best := attainment(studies)
			p.Fronts = append(p.Fronts, plot.FrontSeries{
				Name: fmt.Sprintf("%s, %s", s.name, show.Count(int64(len(studies)), "seed")), Front: median, Unmarked: true, Best: best, Worst: worst, Look: plot.Look{Colour: e.colour(s)},
			})
		}
		if len(p.Fronts) > 0 {
			all = append(all, p)
		}
	}
	section := output.Section{
		Name: "figure8", Title: "Figure 8: models and optimisers", Table: t,
		Notes: []string{"error_at_x: the least mean error of DPareto's studies with ε of at most x, the mean over the seeds; empty where one has none. The picture has the median of the seeds at each ε, and a band of all.",
			"The paper prints no numbers of this figure. It says that on Adult LogReg+Adam is nearly always the best, and that on MNIST both networks are alike at large ε and MLP2 is much better at small ε."},
	}
	if len(all) == 0 {
		return []output.Section{section}, nil
	}
	return []output.Section{section}, []reproduce.Figure{{Name: "figure8", Picture: panels("Figure 8: fronts of models and optimisers", ofMedians, len(all), all...)}}
}

// errorAt returns the mean over studies of the least mean error with ε up to a bound, as a cell.
func errorAt(studies [][]outcome, epsilon float64) any {
	value := stat.Mean(each(studies, func(all []outcome) float64 { return leastError(all, epsilon) }), nil)
	if math.IsInf(value, 1) {
		return nil
	}
	return value
}
