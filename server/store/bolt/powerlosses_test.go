//go:build linux && !long

package bolt

// lossCount is the number of power losses of a test; with the build tag long they are more.
const lossCount = 50
