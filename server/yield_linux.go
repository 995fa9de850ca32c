package server

import "syscall"

// fitNice is the nice value of threads that fit models, of at most 19: they get about a
// tenth of what a normal thread gets, and all that is left over.
const fitNice = 10

// lowerPriority lowers the priority of the calling thread for good.
func lowerPriority() {
	// On Linux this is about one thread. It can always be lowered; if it were refused, fits
	// would have the priority of calls.
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, 0, fitNice)
}
