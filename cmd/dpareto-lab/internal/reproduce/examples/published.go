package examples

import (
	"fmt"

	"github.com/dpareto/dpareto/cmd/internal/output"
)

// publishedEpsilons are values of ε that the published code computes for the logistic regression.
var publishedEpsilons = []struct{ gamma, sigma, epsilon float64 }{
	{1e-4, 0.1, 144.054439184},
	{1e-4, 1, 6.55928949623},
	{1e-4, 10, 0.522068143107},
	{1e-3, 1, 0.522068143107},
	{1e-2, 0.1, 0.522068143107},
	{0.1, 0.1, 0.0443812100201},
	{1, 0.1, 0.00361230440546},
	{1, 1, 2.6288458785e-4},
	{1, 10, 1.3418596e-5},
}

// publishedSigmas are the standard deviations of publishedErrors.
var publishedSigmas = [...]float64{0, 0.1, 1, 10}

// publishedErrors are mean errors over 50 runs of the published code without its early stopping.
var publishedErrors = []struct {
	gamma  float64
	errors [len(publishedSigmas)]float64
}{
	{0.0001, [...]float64{0.1617, 0.1621, 0.1847, 0.3832}},
	{0.001, [...]float64{0.1697, 0.1705, 0.2085, 0.4815}},
	{0.01, [...]float64{0.2081, 0.2107, 0.2750, 0.4757}},
	{0.031623, [...]float64{0.2461, 0.2432, 0.2900, 0.4656}},
	{0.1, [...]float64{0.2461, 0.2457, 0.3619, 0.4604}},
	{0.3162, [...]float64{0.2461, 0.2459, 0.4477, 0.4664}},
	{1, [...]float64{0.2461, 0.3073, 0.4643, 0.5400}},
}

// publishedSparse are results of the published mechanism of the sparse vector technique.
var publishedSparse = []struct {
	cutoff                int64
	scale, epsilon, error float64
}{
	{1, 0.01, 584.7322102, 0.8182},
	{1, 1, 5.847322102, 0.9473},
	{1, 100, 0.05847322102, 0.9813},
	{5, 0.1, 177.9602352, 0.3355},
	{5, 1, 17.79602352, 0.8307},
	{10, 0.01, 3108.248061, 0},
	{10, 0.1, 310.8248061, 0.0054},
	{10, 1, 31.08248061, 0.7561},
	{10, 5, 6.216496123, 0.8784},
	{10, 100, 0.3108248061, 0.8996},
	{20, 1, 56.11602285, 0.6901},
	{20, 10, 5.611602285, 0.8540},
	{30, 0.1, 802.4105629, 0.0048},
	{30, 1, 80.24105629, 0.6652},
	{30, 100, 0.8024105629, 0.8498},
}

// frontOfFigure1 is the front of Figure 1, read from the picture.
var frontOfFigure1 = []struct{ epsilon, error float64 }{
	{1e-4, 0.455}, {1e-2, 0.25}, {0.1, 0.21}, {1, 0.175}, {10, 0.165}, {100, 0.162},
}

// publishedFront compares the front of the logistic regression with Figure 1. It has the same configurations by
// either sensitivity: ε falls with γσ by both.
func (r *regression) publishedFront(front []observation) (output.Section, error) {
	t := &output.Table{Columns: []string{"epsilon_at_most", columnError, columnStandardError, "error_by_published_sensitivity", "read_from_figure"}}
	for _, c := range frontOfFigure1 {
		row := []any{c.epsilon, nil, nil, nil, c.error}
		for _, o := range front { // by increasing ε and falling error
			theirs, err := epsilon(r.published, o.x, o.y)
			if err != nil {
				return output.Section{}, err
			}
			if o.epsilon <= c.epsilon {
				row[1], row[2] = o.error, o.standardError
			}
			if theirs <= c.epsilon {
				row[3] = o.error
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return output.Section{Name: "figure1_front", Title: "Figure 1: the least error for an ε", Table: t, Notes: []string{
		"error_by_published_sensitivity is the least error where ε is taken from the published sensitivity, as in the figure that was read.",
		fmt.Sprintf("The front has %d configurations of the grid. The least of many means is partly luck: it is a little better than the same configurations would be again.", len(front)),
	}}, nil
}
