//go:build !unix

package child

import "syscall"

// ownGroup has no attributes: a child ignores the signals of the parent's terminal as
// soon as it runs.
func ownGroup() *syscall.SysProcAttr { return nil }
