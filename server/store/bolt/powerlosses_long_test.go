//go:build linux && long

package bolt

// lossCount is the number of power losses of a test.
const lossCount = 250
