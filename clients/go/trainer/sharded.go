package trainer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

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

// ShardedTrainer is a trainer whose runs train on the shard of the training examples that
// [Run.Shard] names, and touch no other.
type ShardedTrainer interface {
	Trainer
	// Shards returns the number of shards.
	Shards() int
}

// NewSharded makes the trainer registered as name for a number of shards >= 1. Each shard
// gets its own trainer when it is first trained on. It returns the errors of New, and one
// for a trainer without [SettingShards] if there is more than one shard.
func (r *Registry) NewSharded(ctx context.Context, name string, options Options, shards int) (Trainer, error) {
	if shards <= 1 {
		return r.New(ctx, name, options)
	}
	d, err := r.definition(name)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(d.Settings, func(s Setting) bool { return s.Name == SettingShards }) {
		return nil, fmt.Errorf("trainer %s cannot train on shards of its examples", name)
	}
	s := &sharded{trainers: make([]Trainer, shards)}
	s.open = func(ctx context.Context, shard int) (Trainer, error) {
		own := options
		own.Settings = maps.Clone(options.Settings)
		if own.Settings == nil {
			own.Settings = make(Settings)
		}
		own.Settings[SettingShard], own.Settings[SettingShards] = strconv.Itoa(shard), strconv.Itoa(shards)
		return r.New(ctx, name, own)
	}
	first, err := s.shard(ctx, 0)
	if err != nil {
		return nil, err
	}
	if private, ok := first.(PrivateTrainer); ok {
		return privateSharded{s, private}, nil
	}
	return s, nil
}

// sharded is a trainer on shards.
type sharded struct {
	open func(ctx context.Context, shard int) (Trainer, error)

	mu       sync.Mutex // guards trainers
	trainers []Trainer  // nil for those not opened yet
}

// shard returns the trainer of a shard.
func (s *sharded) shard(ctx context.Context, shard int) (Trainer, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if shard < 0 || shard >= len(s.trainers) {
		return nil, fmt.Errorf("shard %d is not one of %d", shard, len(s.trainers))
	}
	if s.trainers[shard] == nil {
		t, err := s.open(ctx, shard)
		if err != nil {
			return nil, err
		}
		s.trainers[shard] = t
	}
	return s.trainers[shard], nil
}

// Name implements Trainer.
func (s *sharded) Name() string { return s.trainers[0].Name() }

// Shards implements ShardedTrainer.
func (s *sharded) Shards() int { return len(s.trainers) }

// Train implements Trainer.
func (s *sharded) Train(ctx context.Context, run Run, report Report) (Measurement, error) {
	t, err := s.shard(ctx, run.Shard)
	if err != nil {
		return Measurement{}, err
	}
	run.Shard = 0
	return t.Train(ctx, run, report)
}

// privateSharded is a sharded trainer that knows its mechanism, which is the same on
// every shard: all have the same number of examples.
type privateSharded struct {
	*sharded
	first PrivateTrainer
}

// Mechanism implements PrivateTrainer.
func (p privateSharded) Mechanism(parameters Parameters) (privacy.Mechanism, error) {
	return p.first.Mechanism(parameters)
}
