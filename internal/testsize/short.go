//go:build !long

package testsize

// Long says whether tests have the build tag long, which asks for all that they can do.
const Long = false
