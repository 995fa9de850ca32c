package simulated

import (
	"math"
	"math/rand/v2"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// EpochTraining is a study of runs of up to 64 epochs: the loss of privacy
// grows with the rate and the epochs, the error falls with both and is least for w = 0.3.
func EpochTraining() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "rate", Kind: space.Double, Min: 0.01, Max: 1, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64, Scale: space.Log},
			{Name: "w", Kind: space.Double, Max: 1},
		}},
		Objectives: []suggest.Objective{
			{Name: "loss", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 4, Known: func(q space.Point) float64 { return q[0] * math.Sqrt(q[1]) }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
		Checkpoint: "epochs",
	}
}

// EpochTrainingError is the expected error of a state: what a run learns per epoch
// saturates, so that much privacy is best spent at a high rate in few epochs.
func EpochTrainingError(q space.Point) float64 {
	z := -0.5*math.Log(q[0]*math.Sqrt(q[1])/0.3) - 0.1*math.Log(q[1]) + 6*(q[2]-0.3)*(q[2]-0.3)
	return 0.05 + 0.9/(1+math.Exp(-z))
}

// TrainEpochs adds up to 8 checkpoints of a run of q to h, evenly spaced in the logarithm of
// the epoch.
func TrainEpochs(h *suggest.History, q space.Point, run int64, rng *rand.Rand) {
	const checkpoints = 8
	shared := 0.05 * rng.NormFloat64()
	last := 0.0
	for k := range checkpoints {
		epoch := math.Round(math.Pow(q[1], float64(k)/(checkpoints-1)))
		if epoch <= last {
			continue
		}
		last = epoch
		at := q.Clone()
		at[1] = epoch
		z := Logit(EpochTrainingError(at)) + shared + 0.02*rng.NormFloat64()
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{
			Point: at, Values: []float64{at[0] * math.Sqrt(at[1]), Expit(z)}, Run: run, Cost: q[1],
		})
	}
}

// EpochTrainingHypervolume returns the hypervolume of the exact values of all states.
func EpochTrainingHypervolume(h *suggest.History) float64 {
	return exactHypervolume(h, EpochTrainingError, []float64{4, 1})
}

// RateTraining is a problem of runs of up to 64 epochs of a rate x in [0, 1]: the privacy
// loss x·epochs is known and must be below 32; the error is measured.
func RateTraining() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "x", Kind: space.Double, Max: 1},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64},
		}},
		Objectives: []suggest.Objective{
			{Name: "loss", Goal: suggest.Minimize, Reference: 32, Known: func(q space.Point) float64 { return q[0] * q[1] }},
			{Name: "error", Goal: suggest.Minimize, Reference: 1},
		},
		Checkpoint: "epochs",
	}
}

// NoiseTraining has the checkpoint parameter "epochs" and a known objective that
// grows with it: epochs·noise.
func NoiseTraining(maxEpochs float64) *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "noise", Kind: space.Double, Min: 0.01, Max: 1, Scale: space.Log},
			{Name: "epochs", Kind: space.Integer, Min: 1, Max: maxEpochs, Scale: space.Log},
		}},
		Objectives: []suggest.Objective{
			{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10, Known: func(q space.Point) float64 { return q[0] * q[1] }},
			{Name: "error", Goal: suggest.Minimize, Transform: suggest.Logit, Reference: 1},
		},
		Checkpoint: "epochs",
	}
}
