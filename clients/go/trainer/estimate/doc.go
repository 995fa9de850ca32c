// Package estimate predicts the utility of a linear model trained with objective
// perturbation at any ε, from a few trainings.
//
// With the noise b = u/β(ε) for a unit noise u that stays the same, the model
//
//	θ(ε) = argmin L(θ) + τ(ε)/2·‖θ‖² + u·θ/(β(ε)n)
//
// is a smooth function of ε, and its derivatives in ε follow from the optimality
// condition: Theorems 1 and 2 of "Fast estimation for privacy and utility in
// differentially private machine learning" (submitted to ICLR 2021), here with the
// signs and terms that finite differences confirm. A [Problem] describes what is trained,
// [Problem.Solve] trains one model, and [Problem.Derivatives] differentiates it.
//
// # Methods
//
//   - [Problem.Newton] solves for every ε, each from the model before: exact, two or
//     three Newton steps for each ε.
//   - [Problem.Hermite] solves at a few anchors and interpolates with their exact
//     slopes, in log ε. It is the recommended method.
//   - [Problem.Line] is the paper's equation 9: a line in ε through one model. Losses
//     grow like 1/ε², so that a line is the wrong shape; it is here for comparison.
//
// Each is a [Path], for one unit noise. [New] averages paths over draws of the noise
// and reports standard errors; [Estimator.EpsilonFor] inverts the average.
//
// # Branches
//
// Calibrations have two branches: at small ε the regulariser grows with 1/ε, at large ε
// it is λ alone. [Boundary] returns where they meet. The two branches of
// privacy.Chaudhuri do not agree there, so that more budget may give a worse model:
// nothing here expands across that boundary; it returns a [DiscontinuityError] instead.
// The branches of the other calibrations agree in value but not in slope; interpolation
// puts an anchor with two slopes there.
//
// # Privacy
//
// None. Losses, derivatives, models at another ε and answers to "which ε for this
// loss" are functions of the raw training records, for internal use only. Two models
// of one unit noise must never both be released: their optimality conditions are two
// equations from which the noise can be eliminated. A choice of ε by these estimates
// is itself a function of the data, which the ε of the trained model does not cover.
package estimate
