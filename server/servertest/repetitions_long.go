//go:build long

package servertest

// How often random tests draw.
const (
	RandomRequests    = 200 // for each method
	RandomBudgetPaths = 30  // studies with private_mode
)
