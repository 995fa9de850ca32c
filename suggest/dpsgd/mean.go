package dpsgd

import (
	"fmt"
	"math"
	"slices"
	"sync"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/surrogate"
)

// irrelevant is the length scale of a feature that does not matter.
const irrelevant = 1e6

// publicProcess are the hyperparameters of the Gaussian process (Matérn-5/2) of public runs: over R, ν and C,
// since T and m belong to a data set. Values are standardised over each surface. All optimizers have the same ones.
// The most probable hyperparameters predict data sets that were left out worse on six of nine surfaces.
func publicProcess() surrogate.Hyperparameters {
	return surrogate.Hyperparameters{
		LengthScales:   []float64{LogPath: 0.7, LogRatio: 1.8, LogNorm: 1.0, LogSteps: irrelevant, LogLotSize: irrelevant},
		SignalVariance: 1.3 * 1.3,
		NoiseVariance:  0.4 * 0.4,
	}
}

// meanDeviation is the standard deviation over a surface of the logit of the error that a mean stands for.
// Those of the surfaces are from 0.2 on. A mean that is too flat has the right shape still.
const meanDeviation = 0.2

// meanPoints is the number of points that stand for the public runs: every prediction takes a time linear in it.
const meanPoints = 60

// leastDatasets is the number of data sets that say what is common to all: one says it of itself.
const leastDatasets = 2

// PublicMean returns what public runs with an optimizer say of the logit of an error, but for its level. Runs on
// the given data sets are left out. It returns nil if there are not
// at least two others. The caller must not change the
// result.
func PublicMean(normalized bool, without ...string) *suggest.FeatureMean {
	key := fmt.Sprint(normalized, without)
	if m, ok := means.Load(key); ok {
		return m.(*suggest.FeatureMean)
	}
	m, _ := means.LoadOrStore(key, publicMean(normalized, without))
	return m.(*suggest.FeatureMean)
}

// means are the means so far, each of which takes a tenth of a second.
var means sync.Map

func publicMean(normalized bool, without []string) *suggest.FeatureMean {
	sets := slices.DeleteFunc(PublicDatasets(normalized), func(name string) bool { return slices.Contains(without, name) })
	if len(sets) < leastDatasets {
		return nil
	}
	x, y := standardised(normalized, without)
	h := publicProcess()
	all, err := surrogate.New(nil, h, surrogate.Observations{X: x, Y: y})
	if err != nil {
		panic("dpsgd: " + err.Error()) // the runs and the hyperparameters are fixed
	}
	m := &suggest.FeatureMean{LengthScales: h.LengthScales, Variance: meanDeviation * meanDeviation * h.SignalVariance}
	for _, i := range spread(x, h.LengthScales, meanPoints) {
		mean, _ := all.Predict(x[i])
		m.Points, m.Values = append(m.Points, x[i]), append(m.Values, meanDeviation*mean)
	}
	return m
}

// standardised returns the features and the standardised logits of the public runs with an optimizer.
func standardised(normalized bool, without []string) (x [][]float64, y []float64) {
	for runs := PublicRuns(); len(runs) > 0; {
		n := slices.IndexFunc(runs, func(r PublicRun) bool { return r.Surface != runs[0].Surface })
		if n < 0 {
			n = len(runs)
		}
		one := runs[:n]
		runs = runs[n:]
		if one[0].Normalized != normalized || slices.Contains(without, one[0].Dataset) {
			continue
		}
		values := make([]float64, len(one))
		for i := range one {
			values[i] = one[i].logit()
		}
		mean, deviation := stat.MeanStdDev(values, nil)
		for i := range one {
			features := Scale(one[i].Run.Coordinates(normalized))
			x, y = append(x, features[:]), append(y, (values[i]-mean)/deviation)
		}
	}
	return x, y
}

// spread returns the indices of at most n of the points, each after the first the one that is farthest from those
// before it in units of length scales.
func spread(x [][]float64, lengths []float64, n int) []int {
	distance := make([]float64, len(x))
	for i := range distance {
		distance[i] = math.Inf(1)
	}
	var chosen []int
	for next := 0; len(chosen) < n && distance[next] > 0; next = floats.MaxIdx(distance) {
		chosen = append(chosen, next)
		for i := range x {
			sum := 0.0
			for k, l := range lengths {
				d := (x[i][k] - x[next][k]) / l
				sum += d * d
			}
			distance[i] = math.Min(distance[i], sum)
		}
	}
	return chosen
}
