// Package clock tells the time in two ways: by the wall clock, for people, and how much time has
// passed since the process started, for everything that must not follow when somebody, or a time
// service, sets the wall clock.
package clock
