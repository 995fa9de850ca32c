package honesty

import (
	"context"
	"math/rand/v2"
	"path/filepath"

	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/lines"
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
		if p.members, err = lines.Read[member](path); err != nil {
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
			if err := lines.Append(path, m); err != nil {
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
