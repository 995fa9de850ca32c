// Package correlated has the matrices of correlated noise (DP-FTRL, matrix factorisation): their sensitivity, the
// error that they leave in sums of gradients, and columns that keep it small.
//
// With gradients G, one row a step, and a lower triangular matrix C the mechanism releases C·G + Z for Gaussian Z of
// standard deviation σ·sens(C)·L, where L is the clipping norm. Optimisers use G + C⁻¹Z, which follows from it: steps
// get noise that later steps partly take back. All matrices here are Toeplitz, and a [Column] is the first column.
//
//   - [SquareRoot] and [Optimise] make banded columns, [BLT] those of buffered linear Toeplitz matrices.
//   - [Column.Sensitivity] is sens(C) where a record takes part several times.
//   - [Tree] is tree aggregation.
//   - [Plan] chooses the number of bands of privacy.BandMF.
//
// Without sampling the mechanism is one [privacy.Gaussian] of that sensitivity for the whole run, also if later
// gradients depend on earlier releases (Denisov, McMahan, Rush, Smith and Thakurta, "Improved differential privacy
// for SGD via optimal private linear operators on adaptive streams", 2022): given what was released, the difference
// of the rows of C·G between neighbours is known, and its squared norm is at most sens². Under replace-one adjacency
// differences are twice as long. With sampling it is [privacy.BandMF].
//
// Besides package privacy this package imports nothing of the module.
package correlated
