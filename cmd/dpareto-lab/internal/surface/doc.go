// Package surface holds the surfaces on which designers are compared without training: the
// error of DP training as a function of its parameters, from tables of the bundled trainers' runs.
//
// [Make] trains the configurations of a [Surface] and writes its table, [Read] reads one, and
// [Fit] makes a [Model] of it: the error after every epoch of any configuration, with or
// without the noise of one run.
package surface
