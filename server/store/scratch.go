package store

import (
	"errors"
	"os"
	"runtime"
)

// ScratchIn creates an unlinked temporary file in a folder, for a store with a name. Close removes it.
func ScratchIn(folder, name string) (*os.File, error) {
	file, err := os.CreateTemp(folder, "."+name+".scratch-*")
	if err != nil {
		return nil, err
	}
	if runtime.GOOS != "windows" {
		if err := os.Remove(file.Name()); err != nil {
			return nil, errors.Join(err, file.Close())
		}
		return file, nil
	}
	// Windows removes no open file, but offers to do so when it is closed.
	const deleteOnClose = 0x04000000 // FILE_FLAG_DELETE_ON_CLOSE
	if err := file.Close(); err != nil {
		return nil, err
	}
	return os.OpenFile(file.Name(), os.O_RDWR|deleteOnClose, 0o600)
}
