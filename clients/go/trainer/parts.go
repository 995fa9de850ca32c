package trainer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

// SettingParts is the number of disjoint parts of the training examples on each of which a
// run is trained; its metrics are means over the parts. Default 1. It is for trainers with
// [SettingShards], whose shards the parts are.
const SettingParts = "parts"

// onParts trains every run on all shards of a trainer.
//
// One training record is in one part, so that it moves a mean of k values in [0, 1] by at
// most 1/k, and the k models of a replicate together have the ε of one.
type onParts struct{ ShardedTrainer }

// privateOnParts is onParts for a trainer that knows its mechanism, that of one part.
type privateOnParts struct {
	onParts
	PrivateTrainer
}

// Name implements Trainer.
func (p privateOnParts) Name() string { return p.onParts.Name() }

// Train implements Trainer.
func (p privateOnParts) Train(ctx context.Context, run Run, report Report) (Measurement, error) {
	return p.onParts.Train(ctx, run, report)
}

// addMean adds a measurement of one of k parts to the means, of which it is the index-th.
func addMean(means []Measurement, index int, m Measurement, k int) []Measurement {
	if index == len(means) {
		means = append(means, Measurement{Step: m.Step, Metrics: make(map[string][]float64)})
	}
	sums := means[index].Metrics
	for name, values := range m.Metrics {
		if sums[name] == nil {
			sums[name] = make([]float64, len(values))
		}
		for i, v := range values {
			sums[name][i] += v / float64(k)
		}
	}
	return means
}

// parts returns the number of parts that settings ask for, and the settings for one of them.
func (s Settings) parts() (int, Settings, error) {
	parts, err := s.Int(SettingParts, 1, 1)
	if err != nil || parts == 1 {
		return parts, s, err
	}
	if _, ok := s[SettingShards]; ok {
		return 0, nil, s.Mismatch(SettingParts, "given without "+SettingShards+": the parts are the shards")
	}
	own := maps.Clone(s)
	delete(own, SettingParts)
	return parts, own, nil
}

// newOnParts makes a trainer on parts.
func (r *Registry) newOnParts(ctx context.Context, name string, options Options, parts int) (Trainer, error) {
	t, err := r.NewSharded(ctx, name, options, parts)
	if err != nil {
		return nil, err
	}
	p := onParts{t.(ShardedTrainer)} // as there are at least two
	if private, ok := t.(PrivateTrainer); ok {
		return privateOnParts{p, private}, nil
	}
	return p, nil
}

// Shards hides that the runs are not for one shard.
func (onParts) Shards() int { return 1 }

// Train implements Trainer. It reports when all parts are trained.
func (p onParts) Train(ctx context.Context, run Run, report Report) (Measurement, error) {
	start := time.Now()
	run.Fitted = nil // the models of the parts are not one
	var means []Measurement
	k := p.ShardedTrainer.Shards()
	for part := range k {
		run.Shard = part
		step := 0
		last, err := p.ShardedTrainer.Train(ctx, run, func(m Measurement) error {
			means = addMean(means, step, m, k)
			step++
			return nil
		})
		if err != nil {
			return Measurement{}, fmt.Errorf("part %d: %w", part, err)
		}
		if step == 0 {
			means = addMean(means, 0, last, k)
		}
	}
	for i := range means {
		means[i].Elapsed = time.Since(start)
		if report == nil {
			continue
		}
		switch err := report(means[i]); {
		case errors.Is(err, ErrStop):
			return means[i], nil
		case err != nil:
			return Measurement{}, err
		}
	}
	return means[len(means)-1], nil
}
