// Package gaussian has the normal distribution far into its tails, and the exact profile δ(ε) of Gaussian DP
// with its inverses in ε and μ.
package gaussian
