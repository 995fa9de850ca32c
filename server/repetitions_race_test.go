//go:build race && !long

package server_test

// repetitions are how often random tests draw, fewer under the race detector, which is slow.
const (
	randomRequests    = 4 // for each method
	randomBudgetPaths = 1 // studies with private_mode
)
