//go:build !amd64 || noasm

package linalg

func vectorKernels(bool) []kernels { return nil }
