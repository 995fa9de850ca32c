// Package correlated has the matrices of correlated noise (DP-FTRL, matrix factorisation): their sensitivity, the
// error that they leave in sums of gradients, and columns that keep it small.
//
// With gradients G, one row a step, and a lower triangular matrix C the mechanism releases C·G + Z for Gaussian Z of
// standard deviation σL, where L is the clipping norm, which is as private as a Gaussian mechanism of sensitivity sens(C)·L. Optimisers use G + C⁻¹Z, which follows from it: steps
// get noise that later steps partly take back. All matrices here are Toeplitz, and a [Column] is the first column.
//
//   - [SquareRoot] and [Optimise] make banded columns, [BLT] the columns of buffered linear Toeplitz matrices.
//   - [Matrix] is a column, or a [Tree] for tree aggregation, with sens(C) where a record takes part several times.
//
// Without sampling the whole run is one [privacy.DPFTRL] of that sensitivity. With sampling it is rounds of
// [privacy.BandMF].
//
// Besides package privacy this package imports nothing of the module.
package correlated
