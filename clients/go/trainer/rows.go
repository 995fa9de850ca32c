package trainer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/dpareto/dpareto/clients/go/subset"
	"github.com/dpareto/dpareto/privacy"
)

// Names of the settings of trainers that can train on one of several disjoint shards of
// their training examples.
const (
	// SettingShard is the index of the shard, from 0.
	SettingShard = "training_shard"
	// SettingShards is the number of shards. Default 1.
	SettingShards = "training_shards"
)

// Rows names some of the training examples of a trainer. The zero value is all of them.
type Rows struct {
	// Subset, when not nil, holds the examples. It must be of as many as the trainer has.
	Subset *subset.Subset
	// Shard is the index, from 0, of one of Shards disjoint shards of the examples. Shards
	// of 0 or 1 leave them whole.
	Shard, Shards int
}

// Divisible is a trainer that can also train on some of its training examples.
type Divisible interface {
	Trainer
	// Shards returns the number of shards that Rows must name, 1 for a trainer that is not on shards.
	Shards() int
	// On returns the trainer on some of the examples: it touches no other, and its mechanism
	// is for those. It is an error if the trainer has no such rows.
	On(ctx context.Context, rows Rows) (Trainer, error)
}

// NewDivisible makes the trainer registered as name for a number of shards of its training
// examples, or for subsets of them if shards is at most 1. With several shards it never opens
// all examples: the trainer itself is on the first shard. It returns the errors of New, and one
// for a trainer that cannot be divided in this way.
func (r *Registry) NewDivisible(ctx context.Context, name string, options Options, shards int) (Divisible, error) {
	d, err := r.definition(name)
	switch {
	case err != nil:
		return nil, err
	case shards <= 1 && !d.Subsets:
		return nil, d.noSubsets()
	case shards > 1 && !slices.ContainsFunc(d.Settings, func(s Setting) bool { return s.Name == SettingShards }):
		return nil, fmt.Errorf("trainer %s cannot train on shards of its examples", name)
	}
	all := &divisible{shards: max(1, shards), opened: make(map[int]Trainer)}
	all.open = func(ctx context.Context, rows Rows) (Trainer, error) {
		own := options
		own.Subset = cmp.Or(rows.Subset, options.Subset)
		if all.shards > 1 {
			own.Settings = Settings{}
			maps.Copy(own.Settings, options.Settings)
			own.Settings[SettingShard], own.Settings[SettingShards] = strconv.Itoa(rows.Shard), strconv.Itoa(all.shards)
		}
		return r.New(ctx, name, own)
	}
	if all.Trainer, err = all.On(ctx, Rows{Shards: all.shards}); err != nil {
		return nil, err
	}
	if private, ok := all.Trainer.(PrivateTrainer); ok {
		return struct {
			*divisible
			accounted
		}{all, private}, nil
	}
	return all, nil
}

// noSubsets returns the error of a trainer that takes no subset.
func (d *Definition) noSubsets() error {
	return fmt.Errorf("trainer %s cannot train on a subset of its examples", d.Name)
}

// accounted is the method of a [PrivateTrainer]. A trainer around another embeds it only if
// the inner one has it: nothing else may claim a mechanism.
type accounted interface {
	Mechanism(p Parameters) (privacy.Mechanism, error)
}

// divisible is a trainer that can make itself on some of its examples.
type divisible struct {
	Trainer // on all examples, or the first shard
	shards  int
	open    func(ctx context.Context, rows Rows) (Trainer, error)

	mu     sync.Mutex      // guards what follows
	latest subset.Subset   // that all candidates of a study share, zero for all examples
	opened map[int]Trainer // on the shards of the latest subset
}

// Shards implements Divisible.
func (d *divisible) Shards() int { return d.shards }

// On implements Divisible. It keeps the trainers on the shards of the latest subset.
func (d *divisible) On(ctx context.Context, rows Rows) (Trainer, error) {
	if shards := max(1, rows.Shards); shards != d.shards || rows.Shard < 0 || rows.Shard >= shards {
		return nil, fmt.Errorf("shard %d of %d is not one of the trainer's %d", rows.Shard, shards, d.shards)
	}
	var asked subset.Subset
	if rows.Subset != nil {
		if err := rows.Subset.Validate(); err != nil {
			return nil, err
		}
		asked = *rows.Subset
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.latest.Size != asked.Size || d.latest.Of != asked.Of || !slices.Equal(d.latest.Key, asked.Key) {
		clear(d.opened)
		d.latest = asked
	}
	if t := d.opened[rows.Shard]; t != nil {
		return t, nil
	}
	t, err := d.open(ctx, rows)
	if err != nil {
		return nil, err
	}
	d.opened[rows.Shard] = t
	return t, nil
}
