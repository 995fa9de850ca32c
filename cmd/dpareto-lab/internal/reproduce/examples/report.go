package examples

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/cmd/internal/plot"
	"github.com/dpareto/dpareto/internal/show"
	"github.com/dpareto/dpareto/suggest/space"
)

// axis returns the axis of a parameter.
func (l *landscape) axis(j int) plot.Axis {
	p := &l.space.Parameters[j]
	return plot.Axis{Label: p.Name, Log: p.Scale == space.Log}
}

func (l *landscape) objectiveAxes() (epsilon, errors plot.Axis) {
	return plot.Axis{Label: "ε of one run", Log: true, Reference: math.NaN()}, plot.Axis{Label: l.errorLabel, Reference: math.NaN()}
}

// heatMap returns a map over the grid. Values of ε are drawn by their decimal logarithms.
func (l *landscape) heatMap(title, label string, values [][]float64, marks ...plot.Marks) *plot.HeatMap {
	return &plot.HeatMap{
		Title: title, X: l.axis(0), Y: l.axis(1), Label: label,
		Xs: l.xs, Ys: l.ys, Values: values, Marks: marks,
	}
}

// logEpsilon is the label of decimal logarithms of ε.
const logEpsilon = "log10 ε"

func log10(values [][]float64) [][]float64 {
	out := make([][]float64, len(values))
	for i, row := range values {
		for _, v := range row {
			out[i] = append(out[i], math.Log10(v))
		}
	}
	return out
}

func epsilonOf(o observation) float64 { return o.epsilon }
func errorOf(o observation) float64   { return o.error }

// marks are the configurations of observations in a map.
func marks(name string, symbol plot.Symbol, all []observation) plot.Marks {
	m := plot.Marks{Name: name, Symbol: symbol}
	for _, o := range all {
		m.X, m.Y = append(m.X, o.x), append(m.Y, o.y)
	}
	return m
}

// points are the outcomes of observations.
func points(all []observation) []plot.Point {
	out := make([]plot.Point, len(all))
	for i, o := range all {
		out[i] = plot.Point{X: o.epsilon, Y: o.error}
	}
	return out
}

// frontRows is the number of points of a front that are listed, at most.
const frontRows = 24

// addOracles adds the tables of the oracles, and returns their figure: Figure 1 or 2.
func (l *landscape) addOracles(result *reproduce.Result, figure int) reproduce.Figure {
	t := &output.Table{Columns: []string{columnEpsilon, columnError, columnStandardError, l.space.Parameters[0].Name, l.space.Parameters[1].Name}}
	step := max(1, (len(l.front)+frontRows-1)/frontRows)
	for i, o := range l.front {
		if i%step != 0 {
			continue
		}
		t.Rows = append(t.Rows, []any{output.Bound(o.epsilon), o.error, o.standardError, o.x, o.y})
	}
	l.checks[0].Notes = append(l.checks[0].Notes, l.notes...)
	result.Report.Sections = append(result.Report.Sections, l.checks...)
	result.Report.Sections = append(result.Report.Sections, output.Section{
		Name: fmt.Sprintf("figure%d_configurations", figure), Title: fmt.Sprintf("Figure %d: configurations of the front", figure), Table: t,
		Notes: []string{fmt.Sprintf("%d of the %d configurations of the front.", len(t.Rows), len(l.front))},
	})
	x, y := l.objectiveAxes()
	return reproduce.Figure{
		Name: fmt.Sprintf("figure%d", figure),
		Picture: &plot.Panels{
			Title: fmt.Sprintf("Figure %d: the oracles and their front, %s", figure, l.name), Subtitle: l.subtitle, Columns: 2,
			Panels: []plot.Panel{
				l.heatMap("Privacy", logEpsilon, log10(l.values(epsilonOf))),
				l.heatMap("Utility", l.errorLabel, l.values(errorOf)),
				&plot.Fronts{Title: "Pareto front", X: x, Y: y, Levels: l.levels, Fronts: []plot.FrontSeries{{Name: l.frontName, Front: points(l.front), Unmarked: true}}},
				l.heatMap("Configurations of the front", l.errorLabel, l.values(errorOf), marks("on the front", plot.Rings, l.front)),
			},
		},
	}
}

// addSearch adds the tables of the model and its next step, and returns their figure: Figure 3 or 4.
func (l *landscape) addSearch(result *reproduce.Result, s *search, figure int) reproduce.Figure {
	title := fmt.Sprintf("Figure %d: ", figure)
	before := nonDominated(s.points)
	after := nonDominated(append(append([]observation(nil), s.points...), s.next))
	x, y := l.space.Parameters[0].Name, l.space.Parameters[1].Name
	next := &output.Table{Columns: []string{x, y, "predicted_epsilon", columnEpsilon, "predicted_error", columnError, columnStandardError, "hvpoi"}}
	predictions := s.suggestion.Predictions
	next.Rows = append(next.Rows, []any{
		s.next.x, s.next.y, predictions[0].Median, output.Bound(s.next.epsilon), predictions[1].Median, s.next.error, s.next.standardError, s.suggestion.Acquisition,
	})
	fronts := &output.Table{Columns: []string{"front", "configurations", "hypervolume"}}
	for _, f := range []struct {
		name  string
		front []observation
	}{{l.frontName, l.front}, {"initial points", before}, {"with the next point", after}} {
		fronts.Rows = append(fronts.Rows, []any{f.name, int64(len(f.front)), hypervolume(f.front)})
	}
	predicted := [][][]float64{s.predicted(0), s.predicted(1)}
	result.Report.Sections = append(result.Report.Sections,
		output.Section{Name: fmt.Sprintf("figure%d_next", figure), Title: title + "the next configuration", Table: next, Notes: []string{
			fmt.Sprintf("The maximum of HVPoI given %d different initial points (%d draws), with the acquisition of the published code: in units of log ε and logit error, below the reference that it estimates.", len(s.points), initialPoints),
			fmt.Sprintf("Over the grid the posterior medians differ from the oracles by a factor of %s in ε and by %s in error (root mean squares).",
				show.Number(math.Exp(difference(predicted[0], l.values(epsilonOf), true))), show.Number(difference(predicted[1], l.values(errorOf), false))),
			"The Gaussian processes are of log ε and logit error, as the paper describes, over the parameters on their scales. " + l.published + " The paper prints no numbers of this figure.",
		}},
		output.Section{Name: fmt.Sprintf("figure%d_fronts", figure), Title: title + "fronts before and after", Table: fronts, Notes: []string{
			"Hypervolumes within ε = 10 and an error of 1. Measured errors are means of a few runs: the luckiest can lie beyond the exact front.",
		}})
	const least = 1e-3 // of the maximum; on a linear scale nothing but the maximum shows
	var surface [][]float64
	for _, row := range s.surface {
		var values []float64
		for _, v := range row {
			values = append(values, max(v.HVPoI, least*s.suggestion.Acquisition))
		}
		surface = append(surface, values)
	}
	sampled := marks("initial points", plot.Dots, s.points)
	epsilon, errors := l.objectiveAxes()
	return reproduce.Figure{
		Name: fmt.Sprintf("figure%d", figure),
		Picture: &plot.Panels{
			Title: title + "the model and the next configuration, " + l.name, Subtitle: l.subtitle, Columns: 2,
			Panels: []plot.Panel{
				l.heatMap("Posterior median of ε", logEpsilon, log10(predicted[0]), sampled),
				l.heatMap("Posterior median of the error", l.errorLabel, predicted[1], sampled),
				&plot.Fronts{Title: "Fronts", X: epsilon, Y: errors, Levels: l.levels, Fronts: []plot.FrontSeries{
					{Name: l.frontName, Front: points(l.front), Unmarked: true},
					{Name: "initial points", Front: points(before), Points: points(s.points)},
					{Name: "with the next point", Front: points(after), Unmarked: true, Points: points([]observation{s.next})},
				}},
				l.heatMap("HVPoI above 1/1000 of maximum", "log10 HVPoI", log10(surface), marks("maximum", plot.Star, []observation{s.next})),
			},
		},
	}
}
