// Package inversion computes δ(ε) of a sum of losses by integrating its characteristic function along a contour
// through the saddle point, and inverts it in ε.
package inversion
