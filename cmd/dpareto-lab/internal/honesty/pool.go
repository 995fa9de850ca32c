package honesty

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"

	"github.com/dpareto/dpareto/suggest/space"
)

const (
	// poolSize is the number of configurations of a training.
	poolSize = 40
	// freshRuns is the number of runs of each configuration, besides the one that a study sees.
	freshRuns = 6
	// poolSeed determines the configurations of a training and its runs.
	poolSeed = 3
)

// member is a configuration of a pool and its runs, the first for studies.
type member struct {
	Point space.Point `json:"point"`
	// Runs are the outcomes by run and checkpoint.
	Runs [][]outcome `json:"runs"`
}

// pool are the recorded runs of a training.
type pool struct {
	training *training
	program  program
	members  []member
}

// openPool opens a training. It reads the runs in the file that is named after it in a folder, and adds those that are missing.
// Without a folder nothing is kept.
func openPool(ctx context.Context, t *training, folder, dataDir string) (*pool, error) {
	opened, err := t.open(ctx, dataDir)
	if err != nil {
		return nil, err
	}
	p := &pool{training: t, program: opened}
	path := filepath.Join(folder, "honesty-"+t.name+".jsonl")
	if folder != "" {
		if p.members, err = readLines[member](path); err != nil {
			return nil, err
		}
	}
	rng := rand.New(rand.NewPCG(poolSeed, uint64(t.rows)))
	for number := range poolSize {
		q := t.space().Sample(rng)
		if number < len(p.members) {
			continue
		}
		runs, err := p.runs(ctx, q, uint64(number), freshRuns+1)
		if err != nil {
			return nil, err
		}
		m := member{q, runs}
		if p.members = append(p.members, m); folder != "" {
			if err := appendLine(path, m); err != nil {
				return nil, err
			}
		}
	}
	return p, nil
}

// runs trains a configuration several times.
func (p *pool) runs(ctx context.Context, q space.Point, seed uint64, count int) ([][]outcome, error) {
	all := make([][]outcome, count)
	for r := range all {
		var err error
		if all[r], err = p.program.train(ctx, q, seed<<16+uint64(r)); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// readLines reads a file with a value of JSON in each line. It is empty if there is no file. A last line that was not
// finished is left out, and cut off.
func readLines[T any](path string) (all []T, err error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close() //nolint:errcheck // only read
	reader, end := bufio.NewReader(file), int64(0)
	for {
		line, err := reader.ReadBytes('\n')
		if err != nil { // the end
			return all, file.Truncate(end)
		}
		var v T
		if err := json.Unmarshal(line, &v); err != nil {
			return nil, err
		}
		all, end = append(all, v), end+int64(len(line))
	}
}

// appendLine adds a value to such a file.
func appendLine(path string, v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644) //nolint:gosec // results are for everybody
	if err != nil {
		return err
	}
	_, err = file.Write(append(line, '\n'))
	return errors.Join(err, file.Close())
}
