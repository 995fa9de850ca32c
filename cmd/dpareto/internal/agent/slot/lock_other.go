//go:build !unix || solaris || aix

package slot

import "errors"

// lock is not available.
func lock(string) (release func(), free bool, err error) {
	return nil, false, errors.ErrUnsupported
}
