//go:build !amd64 || noasm

package linalg

func vectorKernels() []kernels { return nil }
