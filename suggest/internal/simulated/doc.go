// Package simulated has studies of simulated training for tests: problems, their runs, and
// histories of them.
package simulated
