package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/pld"
)

// OutputPerturbation is private regularised learning by noise on the result:
// permutation-based SGD with steps η_t = min(1/β, 1/(γt)), whatever the number of
// epochs and the batch size, on losses that are convex, β-smooth and
// Lipschitz in the model, plus γ/2·‖w‖², then N(0, StandardDeviation²) on every
// coordinate of the model (Wu, Li, Kumar, Chaudhuri, Jha and Naughton, "Bolt-on
// differential privacy for scalable stochastic gradient descent-based analytics",
// 2017, Algorithm 2). One record is replaced.
type OutputPerturbation struct {
	DatasetSize       int64   // n >= 1
	Regularization    float64 // γ > 0, finite, in the unit of the loss per ‖w‖²
	Lipschitz         float64 // B > 0, finite: bound on the gradient of a record's loss without the regulariser; the feature norm for logistic regression
	StandardDeviation float64 // standard deviation of the noise > 0, finite, in the unit of w
	// Radius is the radius of the ball to which the iterates are projected, 0 for no
	// projection. With a radius R the sensitivity is the published 2(B+γR)/(γn). Without one
	// it is 2B/(γn): at the step where the records differ both runs contract by the same
	// regulariser, so that only the gradients of the losses, at most 2B apart, drive them
	// apart.
	Radius float64
}

// Name returns "output_perturbation".
func (m OutputPerturbation) Name() string { return "output_perturbation" }

// Adjacency returns ReplaceOne.
func (m OutputPerturbation) Adjacency() Adjacency { return ReplaceOne }

// Records returns DatasetSize.
func (m OutputPerturbation) Records() int64 { return m.DatasetSize }

// Validate reports the fields "dataset_size", "regularization", "lipschitz",
// "standard_deviation" and "radius".
func (m OutputPerturbation) Validate() error {
	var errs []error
	if m.DatasetSize < 1 {
		errs = append(errs, FieldErrorf("dataset_size", "must be at least 1, is %d", m.DatasetSize))
	}
	errs = append(errs,
		CheckPositive("regularization", m.Regularization),
		CheckPositive("lipschitz", m.Lipschitz),
		CheckPositive("standard_deviation", m.StandardDeviation))
	if !(m.Radius >= 0) || math.IsInf(m.Radius, 1) {
		errs = append(errs, FieldErrorf("radius", "must not be negative and finite, is %g", m.Radius))
	}
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the trainer must meet.
func (m OutputPerturbation) Assumptions() []Assumption {
	return []Assumption{
		PremiseFixedInAdvance.Assume("the number of passes and every other choice are made before looking at the data; no early stopping"),
		PremiseSensitivity.Assume("the norm of the features is bounded by clipping or by a public constant, not by a maximum over the data"),
		assumeSecretNoise,
		PremiseNoise.Assume("rounding errors of the descent are small against the sensitivity, which is proven for real numbers"),
		PremiseTheorem.Assume("projected or plain SGD over permutations of the records, with steps of min(1/β, 1/(γt)) for a β-smooth loss with the ridge γ/2·‖w‖²"),
	}
}

// L2Sensitivity returns the Euclidean sensitivity of the model.
func (m OutputPerturbation) L2Sensitivity() float64 {
	return 2 * (m.Lipschitz + m.Regularization*m.Radius) / (m.Regularization * float64(m.DatasetSize))
}

// GaussianMu returns the sensitivity over StandardDeviation.
func (m OutputPerturbation) GaussianMu() float64 { return m.L2Sensitivity() / m.StandardDeviation }

// RenyiCurve returns α·μ²/2.
func (m OutputPerturbation) RenyiCurve() RenyiCurve {
	mu := m.GaussianMu()
	return linearRenyi(0.5 * mu * mu)
}

// DominatingPairs returns the pair of [PairMechanism]. Logistic losses do not attain the sensitivity, so
// that nothing bounds ε from below.
func (m OutputPerturbation) DominatingPairs() pld.Pairs {
	return pld.Pairs{Upper: []pld.Pair{pld.Gaussian(m.GaussianMu())}}
}

// ObjectiveCalibration is a way to divide ε between the noise and the regulariser of
// objective perturbation.
type ObjectiveCalibration int

const (
	// RankOne uses that replacing a record of a linear model changes the Hessian by
	// one term of rank one on each side: ε = log(1 + c/(nτ)) + 2β for the total
	// regularisation τ. The share Split of ε goes to the first term. It is the
	// default.
	RankOne ObjectiveCalibration = iota
	// Chaudhuri is the original calibration (Chaudhuri, Monteleoni and Sarwate,
	// "Differentially private empirical risk minimization", 2011, Algorithm 2),
	// whose noise has a pole at ε = 2·log(1 + c/(nλ)).
	Chaudhuri
	// ContinuousChaudhuri uses the first branch of Chaudhuri for as long as it is
	// valid, up to ε = 4·log(1 + c/(nλ)), where the two agree.
	ContinuousChaudhuri
)

// ObjectivePerturbation is private learning of a linear model by a random linear
// term b·θ/n in the objective
//
//	1/n·Σ ℓ(θ·z_i) + τ/2·‖θ‖² + b·θ/n,  density of b ∝ e^{−β‖b‖₂}
//
// for convex ℓ with derivatives |ℓ′| <= 1 and 0 <= ℓ″ <= Curvature and records of
// norm ‖z_i‖₂ <= 1. It is pure ε-DP when one record is replaced.
type ObjectivePerturbation struct {
	DatasetSize    int64                // n >= 1
	Regularization float64              // λ > 0, finite: τ is at least that
	Curvature      float64              // c > 0, finite; 1/4 for logistic regression
	Epsilon        float64              // ε > 0, finite
	Calibration    ObjectiveCalibration // default RankOne
	Split          float64              // share of RankOne in (0, 1); 0 means 0.05
}

// Name returns "objective_perturbation".
func (m ObjectivePerturbation) Name() string { return "objective_perturbation" }

// Adjacency returns ReplaceOne.
func (m ObjectivePerturbation) Adjacency() Adjacency { return ReplaceOne }

// Records returns DatasetSize.
func (m ObjectivePerturbation) Records() int64 { return m.DatasetSize }

// Validate reports the fields "dataset_size", "regularization", "curvature",
// "epsilon", "calibration" and "split".
func (m ObjectivePerturbation) Validate() error {
	var errs []error
	if m.DatasetSize < 1 {
		errs = append(errs, FieldErrorf("dataset_size", "must be at least 1, is %d", m.DatasetSize))
	}
	errs = append(errs,
		CheckPositive("regularization", m.Regularization),
		CheckPositive("curvature", m.Curvature),
		CheckPositive("epsilon", m.Epsilon))
	if m.Calibration < RankOne || m.Calibration > ContinuousChaudhuri {
		errs = append(errs, FieldErrorf("calibration", "unknown calibration %d", int(m.Calibration)))
	}
	if !(m.Split >= 0 && m.Split < 1) {
		errs = append(errs, FieldErrorf("split", "must lie in [0, 1), is %g", m.Split))
	}
	return errors.Join(errs...)
}

// Assumptions returns the conditions that the trainer must meet.
func (m ObjectivePerturbation) Assumptions() []Assumption {
	return []Assumption{
		PremiseSensitivity.Assume("every record has Euclidean norm at most 1, by clipping or a public constant"),
		PremiseNoise.Assume("the noise has density proportional to exp(-beta·norm), not independent Laplace coordinates"),
		PremiseNoise.Assume("the noise is drawn in secret; noise and minimiser are real numbers: a floating-point model has digits that the proof does not cover"),
		PremiseTheorem.Assume("the model is linear in its parameters, and its loss convex with derivatives ℓ′ in [−1, 1] and ℓ″ in [0, curvature]"),
		PremiseTheorem.Assume("the exact minimiser of mean loss + τ/2·‖θ‖² + b·θ/n is released, with τ in place of the ridge λ"),
	}
}

// PureEpsilon returns m.Epsilon.
func (m ObjectivePerturbation) PureEpsilon() float64 { return m.Epsilon }

// Share returns the share of ε of the regulariser under RankOne: Split or its default.
func (m ObjectivePerturbation) Share() float64 {
	if m.Split == 0 {
		return 0.05
	}
	return m.Split
}

// Calibrate returns the rate β of the noise, whose norm is Gamma distributed with
// shape d and scale 1/β, and the regularisation τ. The parameters must be valid.
func (m ObjectivePerturbation) Calibrate() (beta, tau float64) {
	n, c, lambda := float64(m.DatasetSize), m.Curvature, m.Regularization
	if m.Calibration == RankOne {
		split := m.Share()
		tau = math.Max(lambda, c/(n*math.Expm1(split*m.Epsilon)))
		return 0.5 * (m.Epsilon - math.Log1p(c/(n*tau))), tau
	}
	jacobian := 2 * math.Log1p(c/(n*lambda))
	limit := jacobian
	if m.Calibration == ContinuousChaudhuri {
		limit *= 2
	}
	if m.Epsilon <= limit {
		return 0.25 * m.Epsilon, math.Max(lambda, c/(n*math.Expm1(0.25*m.Epsilon)))
	}
	return 0.5 * (m.Epsilon - jacobian), lambda
}
