// Package nufft is a fast Fourier transform of masses at any places (nonuniform FFT) by Gaussian gridding
// (Dutt and Rokhlin, "Fast Fourier transforms for nonequispaced data", 1993; Greengard and Lee, "Accelerating
// the nonuniform fast Fourier transform", 2004). Its errors are 1e-16 of the mass; [Noise] bounds them.
package nufft
