//go:build !linux

package server

// lowerPriority does nothing: here only whole processes have a priority.
func lowerPriority() {}
