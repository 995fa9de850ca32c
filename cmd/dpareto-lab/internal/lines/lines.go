// Package lines keeps results in files with one JSON value a line. A program that is killed while it writes leaves
// an unfinished last line. Read skips this line and Append removes it.
package lines

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Read returns the values of a file, none if it does not exist. An error about a line names the file and the line,
// from 1. The file is only read.
func Read[T any](path string) ([]T, error) {
	content, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var all []T
	for line := range bytes.Lines(content[:finished(content)]) {
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, len(all)+1, err)
		}
		all = append(all, v)
	}
	return all, nil
}

// Append adds a value to a file, which is made if it does not exist. Calls for one file must not overlap.
func Append(path string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	line = append(line, '\n')
	content, err := os.ReadFile(path)
	end := finished(content)
	if end < len(content) {
		err = os.Truncate(path, int64(end))
	} else if end > 0 && content[end-1] != '\n' {
		line = append([]byte{'\n'}, line...)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // results are for everybody
	if err != nil {
		return err
	}
	_, err = file.Write(line)
	return errors.Join(err, file.Close())
}

// finished returns the length of the finished lines. The last one may lack its line end.
func finished(content []byte) int {
	end := bytes.LastIndexByte(content, '\n') + 1
	if json.Valid(content[end:]) {
		return len(content)
	}
	return end
}
