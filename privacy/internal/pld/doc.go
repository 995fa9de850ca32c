// Package pld has privacy loss distributions: the dominating pairs of mechanisms ([Pair]), quadratures of their
// moments with bounds of the errors ([Nodes]), their discretisation ([Grid]), and sums of independent losses
// with Chernoff bounds ([Sum], [Bound], [Line]). Packages convolution and inversion compose sums.
//
// # Adding a pair
//
// A mechanism with finitely many losses needs no code here: [NewAtoms] takes losses and masses. One whose losses
// have a density implements Pair in a file of its own, as replacepair.go does. Nothing else lists the pairs, but
// for [Sum]: it knows which pairs are not their own mirror images, and of which infinite losses come from rounding.
package pld
