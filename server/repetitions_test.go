//go:build !long

package server_test

// repetitions are how often random tests draw, once for every make test; with the build tag long
// they are more.
const (
	randomRequests    = 8 // for each method
	randomBudgetPaths = 2 // studies with private_mode
)
