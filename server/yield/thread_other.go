//go:build !linux

package yield

// lowerPriority does nothing: here only whole processes have a priority.
func lowerPriority() {}
