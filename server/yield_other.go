//go:build !linux

package server

// giveWay does nothing: here only whole processes have a priority.
func giveWay() (done func()) { return func() {} }
