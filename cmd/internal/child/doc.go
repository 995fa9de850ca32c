// Package child runs processes that end with this one, however it ends.
//
// A child holds the reading end of a pipe as its standard input. It is stopped by closing
// the pipe, which the operating system does, too, when the parent is killed; the child
// watches for it with [Supervised]. This works on every platform, unlike signals.
package child
