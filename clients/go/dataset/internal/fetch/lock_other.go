//go:build !unix || solaris || aix

package fetch

// lock lets everybody pass where the system has no such locks. Two processes may then
// spoil each other's download, which the digest shows, but never a finished file.
func lock(string) (release func(), free bool, err error) {
	return func() {}, true, nil
}
