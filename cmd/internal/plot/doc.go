// Package plot draws Pareto fronts: the front as a staircase over all points, the
// anti-ideal box, and what the numbers mean, as SVG or PNG.
package plot
