package fastestimation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/estimate"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
)

// problem is what is learnt: the examples of a dataset, scaled, with a loss.
type problem struct {
	train, test linear.Risk
}

// dim returns the number of features.
func (p *problem) dim() int { return p.train.Examples.Dim() }

// evaluate measures a model.
func (p *problem) evaluate(theta []float64) point {
	errorRate, loss := p.test.Examples.Evaluate(p.test.Loss, theta)
	return point{loss: p.train.Value(theta), heldOut: estimate.Measure{Loss: loss, Error: errorRate}}
}

// source is a dataset, with what is known of all records that its encoding can have.
type source struct {
	name  string
	title string
	dim   int
	// bound on the norm of the features: a record is divided by it, or by its norm if
	// that is more.
	bound float64
	// kappa bounds ‖x‖₁ of the records thus scaled.
	kappa float64
	// limit is the largest number of records for training, four fifths of all; 0 where
	// that is more than anybody asks for. A limited source has no part in Figure 2.
	limit int
	// read returns records for training and others for testing, in a random order.
	read func(ctx context.Context, from dataset.Source, seed uint64, train int) (*dataset.Parts, error)
}

var sources = []*source{
	{
		// Each of the 14 attributes is at most one feature, of value 1.
		name: dataset.NameAdult, title: "Adult", dim: dataset.AdultDim, bound: math.Sqrt(14), kappa: math.Sqrt(14),
		read: func(ctx context.Context, from dataset.Source, seed uint64, train int) (*dataset.Parts, error) {
			return dataset.Load(ctx, dataset.NameAdult, dataset.Division{Split: dataset.SplitShuffled, TrainRows: train, Seed: seed}, from)
		},
	},
	{
		// Three of the 41 columns are symbols, each a feature of value 1, so that all
		// records are scaled to the norm 1.
		name: dataset.NameKDDCup99, title: "KDD Cup 99", dim: dataset.KDDCup99Dim, bound: 1, kappa: math.Sqrt(41),
		// The first file, of 494,021 connections.
		read: fromFiles(dataset.NameKDDCup99, func(files []string) (*dataset.Dataset, error) { return dataset.LoadKDDCup99(files[0]) }),
	},
	{
		name: dataset.NameGisette, title: "Gisette", dim: dataset.GisetteDim, bound: 1, kappa: math.Sqrt(dataset.GisetteDim), limit: 4800,
		// The challenge's training set of 6,000 records.
		read: fromFiles(dataset.NameGisette, func(files []string) (*dataset.Dataset, error) { return dataset.LoadGisette(files[0], files[1]) }),
	},
	{
		// Ten measurements, one wilderness area and one soil.
		name: dataset.NameCovertype, title: "Forest", dim: dataset.CovertypeDim, bound: 1, kappa: math.Sqrt(12),
		read: fromFiles(dataset.NameCovertype, func(files []string) (*dataset.Dataset, error) { return dataset.LoadCovertype(files[0]) }),
	},
}

// rows returns the numbers of records to train on, of which the one at index main is
// Table 1's.
func (s *source) rows(e *Experiment) (sizes []int, main int) {
	if s.limit > 0 {
		return []int{min(e.Rows, s.limit)}, 0
	}
	sizes = e.sizes()
	return sizes, slices.Index(sizes, e.Rows)
}

// outline returns a problem of as many records and features, without their values: for what depends
// on nothing else.
func (s *source) outline(loss linear.Loss, rows int) (*problem, error) {
	empty := &dataset.Dataset{Name: s.name, Rows: rows, Dim: s.dim, Classes: 2, RowStart: make([]int, rows+1), Labels: make([]float32, rows)}
	for i := range empty.Labels {
		empty.Labels[i] = 1
	}
	examples, err := linear.NewExamples(empty, s.bound)
	return &problem{train: linear.Risk{Examples: examples, Loss: loss}}, err
}

// fromFiles divides the records of a dataset's first files.
func fromFiles(name string, load func(files []string) (*dataset.Dataset, error)) func(ctx context.Context, from dataset.Source, seed uint64, train int) (*dataset.Parts, error) {
	return func(ctx context.Context, from dataset.Source, seed uint64, train int) (*dataset.Parts, error) {
		files, err := from.Fetch(ctx, name)
		if err != nil {
			return nil, err
		}
		all, err := load(files)
		if err != nil {
			return nil, err
		}
		return dataset.Shuffle(all, seed, train)
	}
}

// records are records of a source in a random order: the first n of those for training
// are a random sample for every n.
type records struct {
	*source
	train, test *dataset.Dataset
}

// open reads records: a number for training and another for testing.
func (s *source) open(ctx context.Context, from dataset.Source, seed uint64, train, test int) (*records, error) {
	parts, err := s.read(ctx, from, seed, train)
	if err != nil {
		return nil, err
	}
	if parts.Test == nil || parts.Test.Rows < test {
		return nil, fmt.Errorf("dataset %s has too few records to train on %d and test with %d", s.name, train, test)
	}
	return &records{source: s, train: parts.Train, test: first(parts.Test, test)}, nil
}

// problem returns the problem of the first records for training.
func (r *records) problem(loss linear.Loss, rows int) (*problem, error) {
	train, err := linear.NewExamples(first(r.train, rows), r.bound)
	if err != nil {
		return nil, err
	}
	test, err := linear.NewExamples(r.test, r.bound)
	if err != nil {
		return nil, err
	}
	return &problem{train: linear.Risk{Examples: train, Loss: loss}, test: linear.Risk{Examples: test, Loss: loss}}, nil
}

// first returns the first rows of a dataset.
func first(d *dataset.Dataset, rows int) *dataset.Dataset {
	numbers := make([]int, rows)
	for i := range numbers {
		numbers[i] = i
	}
	return d.Select(d.Name, numbers)
}
