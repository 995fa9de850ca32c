// Package model has the models that the gradient trainers train. A trainer needs the sum
// of a model's clipped gradients over a lot, and its errors.
//
// Two implementations cover all kinds. [Linear] is a hyperplane in float64 under a
// loss of the margin: logistic regression and the support vector machines.
// [Network] is a feedforward network in float32 with ReLU units and softmax
// outputs: softmax regression when it has no hidden layer, multilayer perceptrons
// otherwise. Both read sparse rows as sparse.
//
// # Clipping
//
// The gradient of an example is clipped as one vector over all weights and biases,
// g·min(1, L/‖g‖), before it is summed. No example's gradient is ever stored. In a
// hyperplane it is c·(x, 1) for a number c, and clipping is a bound on |c|. In a
// network, the gradient of the weights of a layer is the outer product of the
// layer's input a and of the gradient δ with respect to its output, so that its
// squared norm is ‖a‖²‖δ‖², and with the biases (‖a‖² + 1)‖δ‖² (Goodfellow,
// "Efficient per-example gradient computations", 2015). Scaling the rows of δ by
// min(1, L/‖g‖) before the one matrix product that sums over the lot then sums
// clipped gradients: clipping costs 4 to 6 % of training, and noise and rounding a constant per parameter and step.
//
// In float32 the norm of a clipped gradient can exceed L by a few units in its
// seventh digit. A lot with L = +Inf is not clipped at all.
//
// # Rounding
//
// Private training sums gradients as integers, in units of a grid
// ([Model].AccumulateRounded), so that exact noise on integers (package random) can be added
// and the sensitivity is one of exact arithmetic: L for a row that is added, left out or made
// to give no gradient, 2L for one that becomes another.
//
// In a hyperplane every coordinate of every clipped gradient is truncated to the grid. This
// makes no coordinate larger. Gradients are clipped at L(1 − 2⁻³⁰), for the rounding errors of
// the norm and the products in float64.
//
// A network sums the clipped gradients of 64 rows, a chunk, in float32, adds the sums of up to four chunks, a block,
// in float32, truncates that sum to the grid, and adds the sums of blocks as integers. A row belongs to a chunk by
// its place in the lot, and what other rows compute does not depend on it. So one row changes one chunk
// of one block. Two sums of a block of which one row differs are apart, for gradients clipped at L′, by
//
//   - L′ or 2L′, and L′·2⁻²³ for the rounding of δ and of the norms;
//   - 2·66·64·u·L′ for the rounding errors of float32 in the chunk, u = 2⁻²⁴: a sum of n products errs by
//     nu/(1−nu) times the sum of their magnitudes at most, in any order, with or without
//     fused operations (Higham, "Accuracy and stability of numerical algorithms", 2002,
//     §3.1), and the norms of 64 vectors of magnitudes sum to 64L′. The sums of the other chunks are the same
//     to the last bit;
//   - 2·3·257·u·L′ for adding four chunks: each of three additions errs by u times its result at most, whose
//     norm is 257L′ at most. Together with the term before, this is 6.0e-4 L′;
//   - the root of the number of coordinates, in units of the grid, for the truncation, of the block once: 2⁻¹³L
//     at most by [CheckGrid].
//
// With L′ = L(1 − 2⁻¹⁰) the sum is below L or 2L. The sums of biases and of sparse rows are truncated chunk by
// chunk, since their rows are added one by one. Rows of lots of a fixed size keep their places under
// replace-one adjacency.
//
// The theorem of Poisson sampling needs more: it compares a lot with the same lot and one row more,
// drawn or not, after which all later rows have other places. Their chunks then have other rounding
// errors: 1e-5 of L′ for each chunk, and more, all of which can add up. So Poisson lots are added in
// groups, by the numbers of rows (package dpsgd). One row more changes its group alone, whose
// first 64 rows are one chunk; the others are summed one by one. The sums are apart by the terms above
// and the truncation of a row that no longer fits into the chunk, 2⁻¹³L: below L. The number of rows
// is public, since it decides how often a row is drawn.
package model
