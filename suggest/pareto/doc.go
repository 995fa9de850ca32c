// Package pareto computes with Pareto fronts of minimised objectives:
// dominance, exact hypervolume, hypervolume improvement and the partition of
// the non-dominated region into boxes, in any dimension.
//
// Points are []float64 with one value per objective, lower being better. The
// reference (anti-ideal) point bounds the region of interest: only points
// strictly below it in every objective count. A maximised objective enters
// with its sign turned.
package pareto
