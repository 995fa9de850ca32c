// Package lbfgs minimises differentiable functions of a few variables within a box,
// by a limited-memory quasi-Newton method.
package lbfgs
