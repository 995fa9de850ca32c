//go:build !unix

package auth

import (
	"io/fs"
	"os"
)

// keepOwner does nothing: files have no Unix owners here.
func keepOwner(*os.File, fs.FileInfo) error { return nil }
