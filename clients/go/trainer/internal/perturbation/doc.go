// Package perturbation is what the trainers by output and by objective
// perturbation share: their settings and data, the ranges of their parameters,
// their random streams and the evaluation of their models.
package perturbation
