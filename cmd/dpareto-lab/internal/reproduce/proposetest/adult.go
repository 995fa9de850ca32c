package proposetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/objectiveperturbation"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/cmd/dpareto-lab/internal/reproduce/machine"
	"github.com/dpareto/dpareto/cmd/internal/output"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/proposetest"
)

// Of the comparison on Adult.
const (
	adultLower, adultGranularity = 0.5, 0.02
	adultTolerance               = 1e-4 // of the gradient of a training
	finalEpsilon                 = 1    // of the private training of what was selected
)

// adultBudgets are the settings of the comparison on Adult.
var adultBudgets = []struct{ roundEpsilon, budget float64 }{{0.1, 1}, {0.1, 10}, {1, 1}, {1, 10}}

// trainings returns the number of machines that are trained on Adult, the private ones last.
func (e *Experiment) trainings() int { return (e.Parts + 1) * e.Side * e.Side }

// adult returns the utilities of machines on Adult: means, over the parts of the training
// set, of accuracies on the n test records, which take the place of a validation set. finals are the accuracies of
// machines that are trained privately on the whole training set.
func (e *Experiment) adult(ctx context.Context, step func() error) (utilities, finals []float64, n int, err error) {
	parts, err := dataset.Load(ctx, dataset.NameAdult, dataset.Division{
		Split: dataset.SplitUCI, Seed: e.Seed, Generated: e.Generated,
	}, dataset.Source{DataDir: e.DataDir})
	if err != nil {
		return nil, nil, 0, err
	}
	validation, err := machine.Examples(parts.Test)
	if err != nil {
		return nil, nil, 0, err
	}
	grid := machine.Grid(e.Side)
	accuracies := make([][]float64, e.Parts)
	finished := make(chan struct{})
	group, inner := errgroup.WithContext(ctx)
	group.SetLimit(runtime.GOMAXPROCS(0) + 1)
	group.Go(func() error { // counts what the others do
		for range e.Parts * e.Side * e.Side {
			select {
			case <-finished:
			case <-inner.Done():
				return inner.Err()
			}
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	for p := range e.Parts {
		group.Go(func() error {
			var rows []int
			for i := p; i < parts.Train.Rows; i += e.Parts {
				rows = append(rows, i)
			}
			examples, err := machine.Examples(parts.Train.Select("part", rows))
			if err != nil {
				return err
			}
			accuracies[p] = make([]float64, len(grid))
			for s, c := range grid {
				theta, err := c.Train(inner, examples, adultTolerance)
				if err != nil {
					return err
				}
				accuracies[p][s] = accuracy(validation, theta)
				select {
				case finished <- struct{}{}:
				case <-inner.Done():
					return inner.Err()
				}
			}
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, nil, 0, err
	}
	utilities, err = proposetest.Utilities(ctx, len(grid), e.Parts, func(_ context.Context, candidate, part int) (float64, error) {
		return accuracies[part][candidate], nil
	})
	if err != nil {
		return nil, nil, 0, err
	}
	finals, err = e.private(ctx, parts.Train, validation, step)
	return utilities, finals, validation.Rows(), err
}

// accuracy returns the share of the examples that weights classify rightly.
func accuracy(examples *linear.Examples, theta []float64) float64 {
	right := 0
	for i := range examples.Rows() {
		if examples.Margin(i, theta) > 0 {
			right++
		}
	}
	return float64(right) / float64(examples.Rows())
}

// private returns the accuracies of all machines, trained by objective perturbation with finalEpsilon and one draw of
// the noise: the last step of the paper's algorithm, for whichever is selected.
func (e *Experiment) private(ctx context.Context, train *dataset.Dataset, validation *linear.Examples, step func() error) ([]float64, error) {
	examples, err := machine.Examples(train)
	if err != nil {
		return nil, err
	}
	noise := make([]float64, examples.Dim())
	objectiveperturbation.UnitNoise(noise, random.New(e.Seed, 0, 0, 0))
	var finals []float64
	for _, c := range machine.Grid(e.Side) {
		loss := linear.Huber{Width: c.Width}
		minimum, err := objectiveperturbation.Objective(linear.Risk{Examples: examples, Loss: loss}, privacy.ObjectivePerturbation{
			DatasetSize: int64(examples.Rows()), Regularization: c.Penalty, Curvature: loss.Curvature(), Epsilon: finalEpsilon,
		}, noise).Minimize(ctx, nil, 0) // the guarantee is of the exact minimum
		if err != nil {
			return nil, err
		}
		finals = append(finals, accuracy(validation, minimum.Theta))
		if err := step(); err != nil {
			return nil, err
		}
	}
	return finals, nil
}

// adultSection compares searches on Adult with one private maximum.
func (e *Experiment) adultSection(ctx context.Context, step func() error) (output.Section, error) {
	utilities, finals, n, err := e.adult(ctx, step)
	if err != nil {
		return output.Section{}, err
	}
	t := &output.Table{Columns: []string{"round_epsilon", "cap", "epsilon", "delta", "validation_epsilon", "propose_test", "report_noisy_max", "permute_and_flip", "best", "random",
		"epsilon_with_training", "trained_propose_test", "trained_noisy_max", "trained_best"}}
	for i, b := range adultBudgets {
		tuning := proposetest.Tuning{
			Parts: e.Parts, Epsilon: b.roundEpsilon, Delta: delta, Lower: adultLower, Granularity: adultGranularity, Neighbours: privacy.ReplaceOne,
		}
		if tuning, err = tuning.Plan(b.budget); err != nil {
			return output.Section{}, err
		}
		validation, err := tuning.ValidationGuarantee(int64(n))
		if err != nil {
			return output.Section{}, err
		}
		_, source := e.stream(uint64(3000 + i))
		c, err := e.repeat(tuning, source, func() []float64 { return utilities }, finals)
		if err != nil {
			return output.Section{}, err
		}
		t.Rows = append(t.Rows, []any{
			b.roundEpsilon, tuning.MostRounds(), output.Bound(c.guarantee.Epsilon), output.Bound(c.guarantee.Delta), output.Bound(validation.Epsilon),
			c.proposeTest, c.noisyMax, c.permute, slices.Max(utilities), stat.Mean(utilities, nil),
			output.Bound(c.guarantee.Epsilon + finalEpsilon), c.finals[0], c.finals[1], slices.Max(finals),
		})
	}
	title := "Adult: mean accuracy of what is selected among machines that were trained on parts of the training set"
	if e.Generated {
		title += ", " + output.GeneratedLabel
	}
	return output.Section{
		Name: "adult", Title: title, Table: t,
		Notes: []string{"Utilities are means over the parts of accuracies on the test records of the UCI division; random is the mean of all. The maxima have the ε of the search and δ = 0. epsilon is for a training record, validation_epsilon for one of the records that judge.",
			fmt.Sprintf("trained: the accuracy of the selected machine after training on the whole training set, by objective perturbation with ε = %d (pure, replace-one) and one draw of its noise; means over the searches. epsilon_with_training is the sum of both for a training record; δ stays.", finalEpsilon)},
	}, nil
}
