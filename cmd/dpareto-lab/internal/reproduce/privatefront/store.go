package privatefront

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
)

// records are the outcomes that are known, kept in a file with one JSON object a line. An interrupted
// experiment loses the studies that were running. Methods are safe for concurrent use.
type records struct {
	mu    sync.Mutex // guards what follows
	file  *os.File   // nil: nothing is kept
	known map[key]*outcome
}

// openRecords reads a file, which is made if it does not exist. Without a path nothing is kept.
func openRecords(path string) (_ *records, err error) {
	r := &records{known: make(map[key]*outcome)}
	if path == "" {
		return r, nil
	}
	if r.file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666); err != nil { //nolint:gosec // as the umask says
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.file.Close())
		}
	}()
	whole := int64(0)
	for lines := bufio.NewReader(r.file); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) { // what follows the last line was being written
			break
		} else if err != nil {
			return nil, err
		}
		whole += int64(len(line))
		o := new(outcome)
		if err := json.Unmarshal(bytes.TrimSpace(line), o); err != nil {
			return nil, fmt.Errorf("--store: %s holds no results of private-front: %w", path, err)
		}
		r.known[o.Key] = o
	}
	if err := r.file.Truncate(whole); err != nil {
		return nil, err
	}
	_, err = r.file.Seek(whole, io.SeekStart)
	return r, err
}

// get returns the outcome with a key, nil if there is none.
func (r *records) get(k key) *outcome {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.known[k]
}

// add keeps an outcome.
func (r *records) add(o *outcome) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known[o.Key] = o
	if r.file == nil {
		return nil
	}
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = r.file.Write(append(line, '\n'))
	return err
}

// close closes the file.
func (r *records) close() error {
	if r.file == nil {
		return nil
	}
	return r.file.Close()
}
