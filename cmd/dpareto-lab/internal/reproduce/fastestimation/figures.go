package fastestimation

import (
	"fmt"
	"math"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce"
	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// figures returns the paper's figures for every way to train: Figure 1 with a row of panels
// for each dataset and a column for each loss, Figure 2 with the panels in a row of two.
func figures(e *Experiment, outcomes []*outcome) []reproduce.Figure {
	if len(outcomes) == 0 {
		return nil
	}
	var all []reproduce.Figure
	for i, t := range trainings {
		p := &plot.Panels{
			Title: "Figure 1, training " + t.name + ": by how much estimates of the loss are wrong",
			Subtitle: []string{
				fmt.Sprintf("Distance of an estimate from the mean loss on the training records, over %d draws of the noise; a function of the raw records.", e.Draws),
				"A line of equation 9 is exact at the ε of its model, the cubic at the ε of its three models. ε is pure, for replacing a record.",
			},
			Columns: len(e.losses()), SameAxes: true,
		}
		for _, o := range outcomes {
			p.Panels = append(p.Panels, o.figure1(i))
		}
		all = append(all, reproduce.Figure{Name: "figure1-" + t.name, Picture: p})
	}
	for i, t := range trainings {
		p := &plot.Panels{
			Title:    "Figure 2, training " + t.name + ": error of the line by the number of records",
			Subtitle: []string{fmt.Sprintf("Mean over ε = 0.05, 0.10, ..., 1.00 (pure, for replacing a record); %d draws.", e.Draws)},
			Columns:  2, SameAxes: true,
		}
		for _, o := range outcomes {
			if o.trained[i].bySize != nil {
				p.Panels = append(p.Panels, o.figure2(e, i))
			}
		}
		if len(p.Panels) > 0 {
			all = append(all, reproduce.Figure{Name: "figure2-" + t.name, Picture: p})
		}
	}
	return all
}

// figure1 is a panel of Figure 1: the distance of the three lines, and of the interpolation where there is one, from
// the losses. Where an estimate is right there is a gap.
func (o *outcome) figure1(training int) *plot.Curves {
	t := o.trained[training]
	truth := t.truth[0].losses()
	c := &plot.Curves{Title: o.source.title + ", " + o.loss.title, X: "ε", Y: "error", LogY: true} // gonum leaves space above a logarithmic axis with a long label
	add := func(name string, estimate []float64, look plot.Look) {
		distance := make([]float64, len(truth))
		for i := range truth {
			if distance[i] = math.Abs(estimate[i] - truth[i]); distance[i] < leastDistance {
				distance[i] = math.NaN()
			}
		}
		c.Curves = append(c.Curves, plot.Series{Name: name, X: targets, Y: distance, Look: look})
	}
	for _, through := range drawn {
		add("line at "+epsilonColumn(through), t.truth[0].line(through), plot.Look{})
	}
	if t.estimated != nil {
		add("3 models, cubic", t.estimated[0].losses(), plot.Look{Colour: 7, Baseline: true})
	}
	return c
}

// leastDistance is the least error that Figure 1 shows: below it an estimate is exact but for rounding.
const leastDistance = 1e-6

// figure2 is a panel of Figure 2.
func (o *outcome) figure2(e *Experiment, training int) *plot.Curves {
	series := plot.Series{Name: "measured at " + epsilonColumn(o.through()), Y: o.trained[training].bySize}
	for _, rows := range e.sizes() {
		series.X = append(series.X, float64(rows))
	}
	return &plot.Curves{
		Title: o.source.title + ", " + o.loss.title, X: "training records", Y: "mean error", LogY: true,
		Curves: []plot.Series{series},
	}
}
