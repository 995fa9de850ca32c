package command

import (
	"io"
	"os"
)

// standardStream in place of the path of a file stands for standard input.
const standardStream = "-"

// Open opens a file, or standard input if the path is "-".
func (e *Env) Open(path string) (io.ReadCloser, error) {
	if path == standardStream {
		return io.NopCloser(e.Stdin), nil
	}
	return os.Open(path)
}

// ReadFile reads a file, or standard input if the path is "-".
func (e *Env) ReadFile(path string) ([]byte, error) {
	if path == standardStream {
		return io.ReadAll(e.Stdin)
	}
	return os.ReadFile(path)
}

// SourceName returns the name of a file for errors.
func SourceName(path string) string {
	if path == standardStream {
		return "standard input"
	}
	return path
}
