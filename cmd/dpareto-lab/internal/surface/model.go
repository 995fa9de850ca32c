package surface

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

const (
	// maxLearned is the number of observations from which hyperparameters are learned, and
	// maxObservations the number of those that predictions are made from. Time grows with their cube.
	maxLearned, maxObservations = 300, 1500
	// perRun is the number of epochs of a run that are observations, if the table is small.
	perRun = 5
)

// Model answers for any configuration of a surface what its training gives: the posterior mean, given
// a table, of a Gaussian process over the logarithms of R, ν, C, T and m, of the logit of the error.
// Noise of one run is Gaussian on that scale. Its logarithm is linear in the inputs, and its
// correlation between epochs falls with the logarithm of their ratio.
//
// A Model is immutable and safe for concurrent use.
type Model struct {
	Surface *Surface

	frame frame
	mean  *surrogate.GP // its posterior mean is the surface
	full  *surrogate.GP // the posterior given the table
	decay float64
	// configurations are the observations of each configuration, by number.
	configurations [][]int
	observations   surrogate.Observations
}

// Fit returns the model of a table. It returns the errors of [surrogate.Fit].
func Fit(ctx context.Context, t *Table) (*Model, error) {
	m := &Model{Surface: t.Surface, frame: t.Surface.frame()}
	learned, _ := m.observe(t.Runs, maxLearned)
	fitted, err := surrogate.Fit(ctx, learned, surrogate.Options{NoiseSlopes: true, Restarts: 1, Tolerance: 0.01, Seed: seed})
	if err != nil {
		return nil, fmt.Errorf("surface %s: %w", t.Surface.Name, err)
	}
	h := fitted.Hyperparameters()
	m.decay = h.NoiseDecay
	observations, configurations := m.observe(t.Runs, maxObservations)
	m.configurations, m.observations = configurations, observations
	if m.full, err = surrogate.New(nil, h, observations); err != nil {
		return nil, fmt.Errorf("surface %s: %w", t.Surface.Name, err)
	}
	// Without observations of its own, a process with a base has the base's posterior mean, which takes
	// a time linear in the number of observations.
	h.Mean, h.BaseWeight = 0, 1
	if m.mean, err = surrogate.NewWithBase(nil, h, surrogate.Observations{}, m.full); err != nil {
		return nil, fmt.Errorf("surface %s: %w", t.Surface.Name, err)
	}
	return m, nil
}

// observe returns at most a number of observations, and for each configuration the indices of its
// own. Runs come in the order of the table, spread over it where they are too many for one
// observation each; and of a run its end and, if there is room, earlier epochs whose logarithms
// are evenly spaced.
func (m *Model) observe(runs []Run, most int) (o surrogate.Observations, configurations [][]int) {
	count := min(len(runs), most)
	each := min(perRun, most/count)
	index := make(map[int]int)
	for i := range count {
		run := runs[i*len(runs)/count]
		configuration, ok := index[run.Number]
		if !ok {
			configuration = len(configurations)
			index[run.Number] = configuration
			configurations = append(configurations, nil)
		}
		before := 0
		for k := 1; k <= each; k++ {
			epoch := int(math.Round(math.Pow(float64(len(run.Errors)), float64(k)/float64(each))))
			if epoch == before {
				continue
			}
			before = epoch
			configurations[configuration] = append(configurations[configuration], len(o.Y))
			o.X = append(o.X, m.input(run.Point, int64(epoch)))
			o.Y = append(o.Y, m.logit(run.Errors[epoch-1]))
			o.Groups = append(o.Groups, i+1)
			o.Positions = append(o.Positions, math.Log(float64(epoch)))
		}
	}
	return o, configurations
}

// input returns the inputs of the model after a number of epochs.
func (m *Model) input(q space.Point, passed int64) []float64 {
	return m.frame.scale(m.Surface.coordinates(q, passed))
}

// logit returns the logit of an error, with half a record more on both sides: an error of 0 is
// possible.
func (m *Model) logit(failed float64) float64 {
	n := float64(m.Surface.TestRows)
	return math.Log((failed*n + 0.5) / ((1-failed)*n + 0.5))
}

// fraction is the inverse of logit, but that it is never below 0 or above 1.
func (m *Model) fraction(logit float64) float64 {
	n := float64(m.Surface.TestRows)
	p := 1 / (1 + math.Exp(-logit))
	return min(max((p*(n+1)-0.5)/n, 0), 1)
}

// Error returns the error after the epochs of a configuration, without noise: the median of a run's.
func (m *Model) Error(q space.Point) float64 {
	mean, _ := m.mean.Predict(m.input(q, int64(q[epochs])))
	return m.fraction(mean)
}

// Train returns the errors of one run after every epoch: of the mean, or with the noise that the seed
// determines, rounded to a number of test records.
func (m *Model) Train(q space.Point, noisy bool, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 1))
	out := make([]float64, int(q[epochs]))
	z := 0.0
	for i := range out {
		x := m.input(q, int64(i+1))
		logit, _ := m.mean.Predict(x)
		if !noisy {
			out[i] = m.fraction(logit)
			continue
		}
		shared := 0.0
		if i > 0 && m.decay > 0 {
			shared = math.Exp(-math.Log(float64(i+1)/float64(i)) / m.decay)
		}
		z = shared*z + math.Sqrt(1-shared*shared)*rng.NormFloat64()
		n := float64(m.Surface.TestRows)
		out[i] = math.Round(n*m.fraction(logit+math.Sqrt(m.full.Noise(x))*z)) / n
	}
	return out
}

// Validation says how well a model predicts configurations that it does not know.
type Validation struct {
	Configurations, Observations int
	// Residual is the root mean square of measured less predicted logit of the error, where all
	// runs of a configuration are left out, and Noise the root mean square of the noise of one run,
	// which no prediction can remove.
	Residual, Noise float64
	// Error is the mean of the absolute difference of measured and predicted error.
	Error float64
	// Spread is the standard deviation of the logits.
	Spread float64
}

// Validate predicts every configuration from the others, with the hyperparameters of all.
func (m *Model) Validate(ctx context.Context) (Validation, error) {
	left, err := surrogate.LeaveOut(ctx, m.full, m.configurations)
	if err != nil {
		return Validation{}, err
	}
	v := Validation{Configurations: len(m.configurations), Observations: len(m.observations.Y)}
	sum, squares := 0.0, 0.0
	for k, block := range m.configurations {
		for a, i := range block {
			y, residual := m.observations.Y[i], left[k].Residuals[a]
			v.Residual += residual * residual
			v.Error += math.Abs(m.fraction(y) - m.fraction(y-residual))
			sum, squares = sum+y, squares+y*y
		}
	}
	n := float64(len(m.observations.Y))
	v.Residual, v.Error = math.Sqrt(v.Residual/n), v.Error/n
	v.Spread = math.Sqrt(squares/n - sum/n*sum/n)
	v.Noise = math.Sqrt(m.meanNoise())
	return v, nil
}

// meanNoise returns the mean noise variance of one run over the observations.
func (m *Model) meanNoise() float64 {
	sum := 0.0
	for _, x := range m.observations.X {
		sum += m.full.Noise(x)
	}
	return sum / float64(len(m.observations.X))
}
