// Package testsize is for tests: it says how often they repeat what is drawn.
package testsize

// Pick returns small in make test, and large with the build tag long.
func Pick(small, large int) int {
	if Long {
		return large
	}
	return small
}
