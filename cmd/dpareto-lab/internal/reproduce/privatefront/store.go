package privatefront

import (
	"fmt"
	"os"
	"sync"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
)

// records are the outcomes that are known, kept in a file with one JSON object a line. An interrupted
// experiment loses the studies that were running. Methods are safe for concurrent use.
type records struct {
	path  string     // "": nothing is kept
	mu    sync.Mutex // guards what follows, and the file
	known map[key]*outcome
}

// openRecords reads a file, which is made if it does not exist. Without a path nothing is kept.
func openRecords(path string) (*records, error) {
	r := &records{path: path, known: make(map[key]*outcome)}
	if path == "" {
		return r, nil
	}
	file, err := os.OpenFile(path, os.O_CREATE, 0o644) //nolint:gosec // results are for everybody
	if err != nil {                                    // such as a missing folder: noticed before the first study
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	all, err := lines.Read[outcome](path)
	if err != nil {
		return nil, fmt.Errorf("--store holds no results of private-front that can be read: %w", err)
	}
	for i := range all {
		r.known[all[i].Key] = &all[i]
	}
	return r, nil
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
	if r.path == "" {
		return nil
	}
	return lines.Append(r.path, o)
}
