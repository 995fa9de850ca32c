// Package linalg is the float32 linear algebra under the network trainers: the
// matrix product in all its transposed forms ([Engine.Gemm]) and the few other
// operations of dense layers and of their per-example gradient norms.
//
// [New] chooses the kernels: AVX-512 or AVX2 with fused multiply-add where the CPU
// has them, else plain Go. Results differ in the last bits between these. On one
// machine they are always the same, and row i of a product does not depend on how
// many other rows there are: callers may divide the rows among goroutines.
//
// Matrices are gonum's [blas32.General]: row-major, with a stride.
//
// The build tag noasm leaves the kernels in Go only, as on architectures other than
// amd64. The program in gen prints the assembly.
package linalg

//go:generate go run ./gen -out kernels_amd64.s
