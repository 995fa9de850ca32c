// Package linear has the parts to learn a linear model exactly: losses of a margin, examples
// of bounded norm, their mean loss with its derivatives, and the minimiser of a regularised
// mean loss by Newton's method.
//
// A record is a feature vector x with a label y = ±1. A model is a vector θ of one weight
// per feature; there is no intercept; to have one, add a constant feature, which counts
// towards the norm. Everything is a function of the signed and scaled records
//
//	z_i = y_i · x_i / max(B, ‖x_i‖₂)
//
// for a constant B that is public, that is, chosen without looking at the data. So ‖z_i‖
// <= 1, on which private learning relies: records within the bound B are scaled by one
// constant, the others are clipped to it.
//
// Nothing here is private by itself. Losses, gradients, Hessians and exact
// minimisers are functions of the raw data.
package linear
