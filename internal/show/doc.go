// Package show writes numbers, durations and guarantees as people read them, on the command line
// and on the page: an upper bound is rounded up, and an ε comes with its δ, its adjacency and its
// accountant.
package show
