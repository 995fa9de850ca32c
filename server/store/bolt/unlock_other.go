//go:build !unix || solaris || aix

package bolt

import "os"

// release closes a file that bbolt has panicked on.
func release(file *os.File) error { return file.Close() }
