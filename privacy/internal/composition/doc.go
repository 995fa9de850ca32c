// Package composition finds ε of mechanisms that run together from their dominating pairs, by the first method
// that is precise: closed forms, contours (package inversion), or grids (package convolution). It gives bounds
// from above and from below, for each direction in which data sets can differ.
package composition
