// Package papers holds the calculators of two papers on private tuning, the commands
// dpareto privacy propose-test and dpareto privacy bayesian-optimization. They need no
// server and no other command; only the program's root imports them.
package papers

// Columns and fields of several tables.
const (
	adjacencyColumn   = "adjacency"
	deltaColumn       = "delta"
	epsilonColumn     = "epsilon"
	mechanismColumn   = "mechanism"
	sensitivityColumn = "sensitivity"
)
