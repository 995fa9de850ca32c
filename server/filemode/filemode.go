// Package filemode refuses files that others may read or write though they should not.
package filemode

import (
	"fmt"
	"io/fs"
	"runtime"
)

// owner are the permissions that an owner may always have.
const owner fs.FileMode = 0o700

// Check returns an error if a file, whose links are followed, has more permissions for others than
// allowed. The error says what is at stake. The group often gets permissions: it can be a service's,
// and Kubernetes gives the files of volumes to a group. Windows has no such permissions.
func Check(path string, info fs.FileInfo, allowed fs.FileMode, danger string) error {
	if !Exceeds(info, allowed) {
		return nil
	}
	return fmt.Errorf("%s has mode %#o: %s; chmod 600 it", path, info.Mode().Perm(), danger)
}

// Exceeds reports whether a file has more permissions for others than allowed.
func Exceeds(info fs.FileInfo, allowed fs.FileMode) bool {
	return runtime.GOOS != "windows" && info.Mode().Perm()&^(owner|allowed) != 0
}
