package analysis

import (
	"context"
	"fmt"
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/surrogate"
)

// Validation says how well a model predicts one measured objective where it does not know the
// answer.
type Validation struct {
	// Objective is the index of the objective.
	Objective int

	// Points are the measured configurations that the model was made of, in its order. It is
	// empty if only an earlier study has measured the objective.
	Points []ValidationPoint

	// Coverage is the share of Points within their intervals, NaN without points.
	Coverage float64

	// RSquared is the share of the variance of the measurements that the predictions explain,
	// on the scale of the objective's transform: 1 − Σ(z − ẑ)² / Σ(z − z̄)². It is at most 1,
	// and NaN if the measurements do not vary.
	RSquared float64
}

// ValidationPoint compares a measurement with its prediction from other configurations.
type ValidationPoint struct {
	// Configuration is the index in [model.Model.Configurations].
	Configuration int

	// Observed is the mean of the configuration's runs, in the objective's own unit.
	Observed float64

	// Predicted is the distribution of that mean, noise included, given the runs of other
	// configurations.
	Predicted suggest.Prediction
}

// CrossValidate predicts every measurement of a model without the runs of its configuration,
// and with the hyperparameters of the model: they are learned from all runs, so that the result
// is slightly optimistic where there are few. With a checkpoint parameter, configurations that
// differ in it alone are states of the same runs, and are left out together.
//
// Predictions come from the posterior that reports show, see [model.Model.LeaveOut], whose errors are
// returned. Whether an interval holds a measurement is decided on the scale of the surrogate.
func CrossValidate(ctx context.Context, m *model.Model) ([]Validation, error) {
	var all []Validation
	for j := range m.Problem().Objectives {
		if m.Surrogate(j) == nil {
			continue
		}
		observed := m.Observed(j)
		blocks := blocks(m, observed)
		left, err := m.LeaveOut(ctx, j, blocks)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", m.Problem().Objectives[j].Name, err)
		}
		all = append(all, validation(m, j, observed, blocks, left))
	}
	return all, nil
}

// blocks returns the observations of each configuration, whatever the checkpoint.
func blocks(m *model.Model, observed model.Observed) [][]int {
	checkpoint := m.Problem().CheckpointIndex()
	var blocks [][]int
	index := make(map[string]int)
	for i, c := range observed.Configurations {
		if c < 0 {
			continue
		}
		q := m.Configurations()[c].Point
		if checkpoint >= 0 {
			q = q.Clone()
			q[checkpoint] = 0
		}
		key := q.Key()
		b, ok := index[key]
		if !ok {
			b = len(blocks)
			index[key] = b
			blocks = append(blocks, nil)
		}
		blocks[b] = append(blocks[b], i)
	}
	return blocks
}

// halfWidth is the 95 % quantile of the standard Gaussian: half of a central 90 % interval.
const halfWidth = 1.6448536269514722

// validation compares the observations of metric j with their predictions.
func validation(m *model.Model, j int, observed model.Observed, blocks [][]int, left []surrogate.LeftOut) Validation {
	out := Validation{Objective: j}
	means := pooledMeans(m, observed, blocks, left)
	var mean, inside float64
	for c := range means {
		p := &means[c]
		if value := m.Configurations()[c].Values[j]; p.runs > 0 && !math.IsInf(value, 0) {
			out.Points = append(out.Points, ValidationPoint{
				Configuration: c,
				Observed:      value,
				Predicted:     m.Measured(j, p.value-p.residual, p.variance, int(p.runs)),
			})
			mean += p.value
			if math.Abs(p.residual) <= halfWidth*math.Sqrt(p.variance) {
				inside++
			}
		} else {
			p.runs = 0
		}
	}
	n := float64(len(out.Points))
	mean /= n
	var unexplained, total, largest float64
	for _, p := range means {
		if p.runs > 0 {
			unexplained += p.residual * p.residual
			total += (p.value - mean) * (p.value - mean)
			largest = math.Max(largest, math.Abs(p.value))
		}
	}
	out.Coverage, out.RSquared = inside/n, 1-unexplained/total
	const rounding = 1e-12 // of means of equal values, relative
	if total <= n*rounding*largest*rounding*largest {
		out.RSquared = math.NaN()
	}
	return out
}

// pooledMean is the mean of the runs of one configuration on the scale of a surrogate.
type pooledMean struct {
	runs     float64 // 0 without observations
	value    float64
	residual float64 // value − its prediction
	variance float64 // of the residual
}

// pooledMeans pools the observations of each configuration.
func pooledMeans(m *model.Model, observed model.Observed, blocks [][]int, left []surrogate.LeftOut) []pooledMean {
	means := make([]pooledMean, len(m.Configurations()))
	for i, c := range observed.Configurations {
		if c >= 0 {
			means[c].runs += float64(observed.Runs[i])
		}
	}
	for b, block := range blocks {
		for a, i := range block {
			c := observed.Configurations[i]
			p := &means[c]
			weight := float64(observed.Runs[i]) / p.runs
			p.value += weight * observed.Values[i]
			p.residual += weight * left[b].Residuals[a]
			for a2, i2 := range block {
				if observed.Configurations[i2] == c {
					p.variance += weight * float64(observed.Runs[i2]) / p.runs * left[b].Covariance.At(a, a2)
				}
			}
		}
	}
	return means
}
