package bench

import (
	"fmt"
	"math"

	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/cmd/internal/plot"
)

// Curves returns a picture of the observed hypervolume over runs or, without noise and with a
// known maximum, of the logarithm of the distance to the maximum: means over the seeds, with
// a standard deviation to both sides.
func (r *Result) Curves() *plot.Curves {
	difference := r.problem.Exact && !math.IsNaN(r.problem.MaxHypervolume)
	c := &plot.Curves{
		Title:    r.problem.Name,
		Subtitle: []string{fmt.Sprintf("mean over %d seeds, band: one standard deviation", r.options.Seeds)},
		X:        "runs",
		Y:        "observed hypervolume",
		Rising:   !difference,
	}
	if difference {
		c.Y = "log10 of the difference to the maximal hypervolume"
	}
	for _, d := range r.designers {
		curve := plot.Series{Name: d.name, Steps: true}
		for run := range r.options.Budget {
			values := make([]float64, len(d.seeds))
			for i, o := range d.seeds {
				values[i] = o.trace[run]
				if difference {
					values[i] = math.Log10(math.Max(r.problem.MaxHypervolume-values[i], leastDifference))
				}
			}
			mean := stat.Mean(values, nil)
			sd := 0.0
			if len(values) > 1 {
				sd = stat.StdDev(values, nil)
			}
			curve.X = append(curve.X, float64(run+1))
			curve.Y = append(curve.Y, mean)
			curve.Lower = append(curve.Lower, mean-sd)
			curve.Upper = append(curve.Upper, mean+sd)
		}
		c.Curves = append(c.Curves, curve)
	}
	return c
}
