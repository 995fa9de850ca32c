// Package problems holds multi-objective test problems of the literature, cheap to
// evaluate and with known fronts, on which designers are compared. All objectives are
// minimised.
//
// [ByName] returns a problem with the dimension in which it is usually quoted; [ZDT1]
// and others take the dimension.
package problems
