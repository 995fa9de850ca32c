//go:build !linux

package yield

// lowerPriority does nothing: here only processes have priorities.
func lowerPriority() {}
