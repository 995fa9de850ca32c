//go:build unix

package child

import "syscall"

// ownGroup are the attributes of a process that signals of the parent's terminal do not
// reach, not even before it can ignore them.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
