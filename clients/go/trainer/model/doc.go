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
// clipped gradients: private training costs hardly more than training.
//
// In float32 the norm of a clipped gradient can exceed L by a few units in its
// seventh digit. A lot with L = +Inf is not clipped at all.
package model
