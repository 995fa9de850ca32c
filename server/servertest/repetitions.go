//go:build !long

package servertest

// How often random tests draw, once for every make test; with the build tag long they draw more.
const (
	RandomRequests    = 8 // for each method
	RandomBudgetPaths = 2 // studies with private_mode
)
