// Package sparsevector runs the sparse vector technique on the task by which
// Avent, González, Diethe, Paleyes and Balle, "Automatic Discovery of
// Privacy-Utility Pareto Fronts" (PoPETs 2020, §3.3 and Algorithm 1), introduce
// the search for a privacy-utility front: it takes microseconds, and the exact
// utility, and so the exact front, is known ([ExpectedError], [ExactFront]).
//
// The task has 100 queries with answers 0 or 1, of which 10, at random places,
// are 1. With the noise b split as
//
//	b₁ = b / (1 + (2C)^⅓),  b₂ = b − b₁,
//
// the mechanism draws ρ ~ Laplace(b₁) once, selects query i when
// qᵢ + νᵢ ≥ ½ + ρ with a fresh νᵢ ~ Laplace(b₂), and stops after C selections.
// It is ε-differentially private with
//
//	ε = (1 + (2C)^⅓)(1 + (2C)^⅔) / b.
//
// The noise is exact: discrete Laplace numbers on grids of which 0, ½ and 1 are multiples
// (noise.Source.Laplace), for which the proof holds as it stands, since it needs nothing of the
// noise but that shifts by 1 and 2 change probabilities by e^(1/b₁) and e^(2/b₂) at most. It comes
// from the operating system's entropy or, for experiments, from the seed of the run.
//
// The parameters are cutoff (C, an integer, at least 1) and noise_scale (b,
// positive). The metric error is 1 − F₁ of the selected queries against those
// whose answer is 1, in [0, 1]; every replicate places them afresh.
package sparsevector
