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

// onParts trains every run on all shards of a trainer. It is not divisible itself.
//
// One training record is in one part, so that it moves a mean of k values in [0, 1] by at
// most 1/k, and the k models of a replicate together have the ε of one.
type onParts struct{ parts Divisible }

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

// newOnParts makes a trainer on parts, whose mechanism is the mechanism of one part.
func (r *Registry) newOnParts(ctx context.Context, name string, options Options, parts int) (Trainer, error) {
	divided, err := r.NewDivisible(ctx, name, options, parts)
	if err != nil {
		return nil, err
	}
	p := onParts{divided}
	if private, ok := divided.(PrivateTrainer); ok {
		return struct {
			onParts
			accounted
		}{p, private}, nil
	}
	return p, nil
}

// Name implements Trainer.
func (p onParts) Name() string { return p.parts.Name() }

// Train implements Trainer. It reports when all parts are trained.
func (p onParts) Train(ctx context.Context, run Run, report Report) (Measurement, error) {
	start := time.Now()
	run.Fitted = nil // the models of the parts are not one
	var means []Measurement
	k := p.parts.Shards()
	for part := range k {
		step := 0
		last, err := p.trainPart(ctx, part, run, func(m Measurement) error {
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

// trainPart trains a run on one part.
func (p onParts) trainPart(ctx context.Context, part int, run Run, report Report) (Measurement, error) {
	t, err := p.parts.On(ctx, Rows{Shard: part, Shards: p.parts.Shards()})
	if err != nil {
		return Measurement{}, err
	}
	return t.Train(ctx, run, report)
}
