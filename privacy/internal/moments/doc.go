// Package moments has the published bound on the Rényi divergence of the Gaussian mechanism on fixed-size
// samples (Wang, Balle and Kasiviswanathan, 2019), from moments of the likelihood ratio.
package moments
