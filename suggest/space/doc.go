// Package space describes the set of configurations that a study searches:
// its parameters, their scales, the distributions that random designs draw them from,
// and the map to the unit cube in which surrogates see them.
//
// A configuration is a [Point]: one float64 per parameter, in order and in the
// parameter's own unit. A [Space] validates points, encodes them to [0, 1]^Dim
// and back, and turns uniform numbers into points by inverse distribution
// functions, so that random and quasi-random designs have the same distributions.
// Parameters may exist only under a [Condition] on another.
//
// Values of this package are plain data. Goroutines may share them as long as none
// changes them.
package space
