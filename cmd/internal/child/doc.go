// Package child runs processes that end with this one, even if it is killed.
//
// A child has the reading end of a pipe as its standard input. Closing the pipe stops the
// child; the operating system closes it when the parent is killed. The child watches for
// that with [Supervised]. Unlike signals this works on every platform.
package child
