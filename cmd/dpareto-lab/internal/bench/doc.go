// Package bench compares designers: it runs each of them in this process on one problem
// under several seeds, from the same initial points and with the same random streams of
// training, and measures the fronts that they find and the processor time that they take.
//
// Problems are the test problems of suggest/problems and studies with a trainer: [Run] runs
// designers on them.
//
// A [Surface] is tabulated DP training (package surface). [Compare] runs designers on it, with a
// [Record] for each study, which [Report] makes a table of.
//
// Programs in other languages take part in either as a [Tool].
package bench
