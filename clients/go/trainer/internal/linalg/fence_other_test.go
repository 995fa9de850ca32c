//go:build !linux

package linalg

import "testing"

// fenced returns n elements; only on Linux is a fence around them.
func fenced(_ *testing.T, n int, _ bool) []float32 { return make([]float32, n) }
