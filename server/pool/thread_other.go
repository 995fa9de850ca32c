//go:build !linux

package pool

// lowerPriority does nothing: here only processes have priorities.
func lowerPriority() {}
