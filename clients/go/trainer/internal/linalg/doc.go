// Package linalg is the float32 linear algebra under the network trainers: the
// matrix product in all its transposed forms ([Engine.Gemm]) and the few other
// operations of dense layers and of their per-example gradient norms.
//
// An [Engine] is chosen by its caller. [Best] is the fastest that the CPU can do.
// The results of [Reproducible] are those of the scalar kernels of this package,
// bit for bit and on every machine: every product is rounded before it is added,
// and every sum has one order. The vector instructions that it uses where there
// are any keep both. [Scalar] executes the scalar kernels themselves. An engine's
// results never depend on the number of its workers, and row i of a product never
// on how many other rows there are. Bits of NaNs are not covered: every NaN is one.
//
// Matrices are gonum's [blas32.General]: row-major, with a stride. Where gonum's
// own routines are wanted, [Engine.BLAS] puts an engine under [blas32.Use].
//
// The build tag noasm leaves the scalar kernels only, as on architectures other
// than amd64. The assembly is printed by the program in gen.
package linalg

//go:generate go run ./gen -out kernels_amd64.s
