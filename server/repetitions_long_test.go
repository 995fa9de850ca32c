//go:build long

package server_test

// repetitions are how often random tests draw.
const (
	randomRequests    = 200 // for each method
	randomBudgetPaths = 30  // studies with private_mode
)
