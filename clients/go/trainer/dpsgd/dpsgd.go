package dpsgd

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/dpareto/dpareto/clients/go/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Name under which the trainer is registered.
const Name = "dp-sgd"

// Names of the metrics.
const (
	MetricError = "error" // fraction of the test examples classified wrongly
	MetricLoss  = "loss"  // mean log loss on the test examples, in nats
)

// Names of the settings.
const (
	SettingSplit     = "split"
	SettingTrainRows = "train_rows"
	SettingSplitSeed = "split_seed"
	SettingGenerated = "generated"
)

// Trainer implements trainer.Trainer. One step of training is one epoch.
type Trainer struct {
	train, test *dataset.Dataset
}

var _ trainer.Trainer = (*Trainer)(nil)

// New returns a trainer on the given examples, whose labels have to be −1 and 1.
func New(train, test *dataset.Dataset) (*Trainer, error) {
	if train.Dim != test.Dim {
		panic("dpsgd: dimension mismatch")
	}
	for _, d := range []*dataset.Dataset{train, test} {
		if d.Rows == 0 {
			return nil, fmt.Errorf("dataset %s is empty", d.Name)
		}
		for i, label := range d.Labels {
			if label != -1 && label != 1 {
				return nil, fmt.Errorf("dataset %s: label of row %d is %v, want -1 or 1", d.Name, i, label)
			}
		}
	}
	return &Trainer{train: train, test: test}, nil
}

// Definition describes the trainer to a registry. The trainers made from one
// definition share the data in the cache.
func Definition(cache *dataset.Cache) trainer.Definition {
	return trainer.Definition{
		Name:    Name,
		Summary: "logistic regression by DP-SGD on Adult (UCI census income, 123 binary features)",
		Settings: []trainer.Setting{
			{Name: SettingSplit, Default: dataset.SplitShuffled, Usage: "division into training and test examples: " +
				"published (30956 and 1605), uci (32561 and 16281) or shuffled (all 48842, pooled)"},
			{Name: SettingTrainRows, Default: strconv.Itoa(dataset.DefaultTrainRows),
				Usage: "training examples of the shuffled split, at least 1; the others are test examples"},
			{Name: SettingSplitSeed, Default: "1", Usage: "seed of the shuffled split and of generated examples"},
			{Name: SettingGenerated, Default: "false", Usage: "true for generated examples in place of Adult's"},
		},
		New: func(ctx context.Context, options trainer.Options) (trainer.Trainer, error) {
			split, err := parseSettings(options.Settings)
			if err != nil {
				return nil, err
			}
			source := dataset.Source{DataDir: options.DataDir, Progress: options.Progress}
			train, test, err := cache.Adult(ctx, split, source)
			if err != nil {
				return nil, err
			}
			return New(train, test)
		},
	}
}

func parseSettings(settings map[string]string) (dataset.AdultSplit, error) {
	split := dataset.AdultSplit{Name: dataset.SplitShuffled, Seed: 1}
	if value, ok := settings[SettingSplit]; ok {
		split.Name = value
	}
	var err error
	if value, ok := settings[SettingTrainRows]; ok {
		if split.TrainRows, err = strconv.Atoi(value); err != nil || split.TrainRows < 1 {
			return split, fmt.Errorf("setting %s is %q, want a whole number of at least 1", SettingTrainRows, value)
		}
	}
	if value, ok := settings[SettingSplitSeed]; ok {
		if split.Seed, err = strconv.ParseUint(value, 10, 64); err != nil {
			return split, fmt.Errorf("setting %s is %q, want a whole number between 0 and 2⁶⁴−1", SettingSplitSeed, value)
		}
	}
	if value, ok := settings[SettingGenerated]; ok {
		if split.Generated, err = strconv.ParseBool(value); err != nil {
			return split, fmt.Errorf("setting %s is %q, want true or false", SettingGenerated, value)
		}
	}
	return split, nil
}

// Name implements trainer.Trainer.
func (*Trainer) Name() string { return Name }

// Data returns the examples that are trained on and tested with.
func (t *Trainer) Data() (train, test *dataset.Dataset) { return t.train, t.test }

// Train implements trainer.Trainer. The replicates train in parallel, each with
// its own random streams, and wait for one another after every epoch. A context
// that is done ends the training within a step.
func (t *Trainer) Train(ctx context.Context, run trainer.Run, report trainer.Report) (trainer.Measurement, error) {
	start := time.Now()
	if err := run.Validate(); err != nil {
		return trainer.Measurement{}, err
	}
	c, err := parseParameters(run.Parameters, t.train.Rows)
	if err != nil {
		return trainer.Measurement{}, err
	}
	replicates := make([]*replicate, run.Replicates)
	for r := range replicates {
		replicates[r] = newReplicate(t.train, c, run.Seed, r)
	}

	var last trainer.Measurement
	for epoch := int64(1); epoch <= c.epochs; epoch++ {
		errs := make([]float64, len(replicates))
		losses := make([]float64, len(replicates))
		finite := make([]bool, len(replicates))
		var wg sync.WaitGroup
		for r, replicate := range replicates {
			wg.Go(func() {
				if replicate.epoch(ctx) {
					errs[r], losses[r] = evaluate(t.test, replicate.weights)
					finite[r] = allFinite(replicate.weights) && allFinite(losses[r:r+1])
				}
			})
		}
		wg.Wait()
		if err := ctx.Err(); err != nil {
			return trainer.Measurement{}, err
		}
		for r, ok := range finite {
			if !ok {
				return trainer.Measurement{}, &trainer.InfeasibleError{
					Reason: fmt.Sprintf("the weights or the loss are not finite after epoch %d of replicate %d", epoch, r),
				}
			}
		}

		last = trainer.Measurement{
			Step:    epoch,
			Metrics: map[string][]float64{MetricError: errs, MetricLoss: losses},
			Elapsed: time.Since(start),
		}
		if report == nil {
			continue
		}
		if err := report(last); errors.Is(err, trainer.ErrStop) {
			break
		} else if err != nil {
			return trainer.Measurement{}, err
		}
	}
	return last, nil
}
