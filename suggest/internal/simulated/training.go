package simulated

import (
	"math"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// TrainingSpace returns the space of [Train].
func TrainingSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "epochs", Kind: space.Integer, Min: 1, Max: 64, Design: space.Uniform{}},
		{Name: "lot_size", Kind: space.Integer, Min: 8, Max: 512, Scale: space.Log},
		{Name: "learning_rate", Kind: space.Double, Min: 5e-4, Max: 5e-2, Scale: space.Log},
		{Name: "noise", Kind: space.Double, Min: 0.1, Max: 16, Scale: space.Log},
		{Name: "optimizer", Kind: space.Categorical, Choices: []string{"sgd", "adam"}},
	}}
}

// TrainingObjectives returns the objectives of [Train], both measured.
func TrainingObjectives() []suggest.Objective {
	return []suggest.Objective{
		{Name: "epsilon", Goal: suggest.Minimize, Transform: suggest.Log, Reference: 10},
		{Name: "accuracy", Goal: suggest.Maximize, Transform: suggest.Logit, Reference: 0, SampleSize: 1000},
	}
}

// Training returns the problem of [Train].
func Training() *suggest.Problem {
	return &suggest.Problem{Space: TrainingSpace(), Objectives: TrainingObjectives()}
}

// Train is a smooth stand-in for private training: the privacy loss falls with
// noise, the accuracy has its optimum at high noise on a face of the space.
func Train(q space.Point) suggest.Evaluation {
	epsilon := Loss(q)
	effect := math.Log(q[2]/5e-4)/math.Log(100) - 0.1*q[4]
	accuracy := 0.95 - 0.2*(1-effect)*(1-effect) - 0.3*math.Exp(-2*q[0]/64) - 0.2/(1+5*epsilon)
	return suggest.Evaluation{Point: q, Values: []float64{epsilon, accuracy}}
}

// Loss is the privacy loss of [Train].
func Loss(q space.Point) float64 { return 0.5 * math.Sqrt(q[0]*q[1]/32) / q[3] }

// RoughLoss is [Loss] but for up to 2 %, too small nearly everywhere.
func RoughLoss(q space.Point) float64 { return Loss(q) * (0.985 + 0.01*math.Sin(50*q[3])) }

// KnownTraining is the problem of [Train] with its privacy loss known.
func KnownTraining(checkpoint bool) *suggest.Problem {
	p := Training()
	p.Objectives[0].Known, p.Objectives[0].Search = Loss, RoughLoss
	if checkpoint {
		p.Checkpoint = "epochs"
	}
	return p
}

// SmallSpace has 12 points.
func SmallSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "a", Kind: space.Integer, Min: 1, Max: 3},
		{Name: "b", Kind: space.Categorical, Choices: []string{"x", "y"}},
		{Name: "c", Kind: space.Discrete, Values: []float64{0.5, 4}},
	}}
}

// ConditionalSpace has parameters that exist for some models only.
func ConditionalSpace() *space.Space {
	return &space.Space{Parameters: []space.Parameter{
		{Name: "depth", Kind: space.Integer, Min: 1, Max: 9, Condition: &space.Condition{Parent: 1, Values: []float64{1}}},
		{Name: "model", Kind: space.Categorical, Choices: []string{"linear", "forest", "network"}},
		{Name: "rate", Kind: space.Double, Min: 1e-3, Max: 1, Scale: space.Log, Condition: &space.Condition{Parent: 1, Values: []float64{0, 2}}},
		{Name: "noise", Kind: space.Double, Min: 0.1, Max: 10, Scale: space.Log},
	}}
}
