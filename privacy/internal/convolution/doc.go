// Package convolution composes losses on a grid by the fast Fourier transform, rounded up or down, with bounds
// of rounding errors and of what wraps around.
package convolution
