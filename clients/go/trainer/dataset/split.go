package dataset

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Split says how examples were divided: enough to divide them again, and to be kept with
// the results of a training.
type Split struct {
	// Dataset is the name of the examples that were divided.
	Dataset string `json:"dataset"`
	// Name of the division, such as SplitShuffled.
	Name string `json:"name"`
	// Seed of the random order, or of generated examples; 0 where nothing is drawn.
	Seed uint64 `json:"seed"`
	// HoldOutSeed is the seed by which validation examples were taken from the training
	// part; 0 if there are none.
	HoldOutSeed uint64 `json:"hold_out_seed"`
	// Train, Validation and Test are the numbers of examples in the parts.
	Train      int `json:"train"`
	Validation int `json:"validation"`
	Test       int `json:"test"`
	// Generated means that the examples are made up.
	Generated bool `json:"generated,omitempty"`
}

// String returns the split on one line, as in
// "adult shuffled: 35000 train, 5000 validation, 8842 test, seed 1, hold-out seed 2".
func (s Split) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %d train, %d validation, %d test, seed %d",
		s.Dataset, s.Name, s.Train, s.Validation, s.Test, s.Seed)
	if s.Validation > 0 {
		fmt.Fprintf(&b, ", hold-out seed %d", s.HoldOutSeed)
	}
	if s.Generated {
		b.WriteString(", generated")
	}
	return b.String()
}

// Parts are the disjoint parts of a dataset: no row is in two of them. Rows count by
// position: data that repeats rows may have equal ones in different parts.
type Parts struct {
	// Train are the examples to learn from.
	Train *Dataset
	// Validation are the examples to choose among models with; nil if there are none.
	Validation *Dataset
	// Test are the examples that only judge the result; nil if there are none.
	Test *Dataset
	// Split says how they came about.
	Split Split
}

// The streams of random numbers that a seed stands for.
const (
	streamShuffle = iota
	streamGenerated
	streamHoldOut
	streamShard
)

// Shuffle divides a dataset at random: in an order drawn from the seed, the first rows
// are for training, the others for testing. The number is public. The parts are named
// after the dataset. The number must be between 1 and the number of rows.
func Shuffle(d *Dataset, seed uint64, train int) (*Parts, error) {
	if train < 1 || train > d.Rows {
		return nil, fmt.Errorf("dataset %s: cannot take %d of %d rows for training", d.Name, train, d.Rows)
	}
	order := permutation(d.Rows, seed, streamShuffle)
	var test *Dataset
	if train < d.Rows {
		test = d.Select(d.Name+"-test", order[train:])
	}
	split := Split{Dataset: d.Name, Name: SplitShuffled, Seed: seed}
	return newParts(split, d.Select(d.Name+"-train", order[:train]), nil, test), nil
}

// HoldOut returns the parts with a number of training rows, drawn from the seed, moved to
// a new validation part, which replaces any other. The remaining rows keep their order.
// The number must be at least 0 and below the number of training rows; 0 leaves no
// validation part.
func (p *Parts) HoldOut(seed uint64, validation int) (*Parts, error) {
	if validation < 0 || validation >= p.Train.Rows {
		return nil, fmt.Errorf("dataset %s: cannot hold out %d of %d rows", p.Train.Name, validation, p.Train.Rows)
	}
	split := p.Split
	split.HoldOutSeed = 0
	if validation == 0 {
		return newParts(split, p.Train, nil, p.Test), nil
	}
	split.HoldOutSeed = seed
	order := permutation(p.Train.Rows, seed, streamHoldOut)
	out, kept := order[:validation], order[validation:]
	slices.Sort(out)
	slices.Sort(kept)
	name := strings.TrimSuffix(p.Train.Name, "-train")
	return newParts(split, p.Train.Select(p.Train.Name, kept), p.Train.Select(name+"-validation", out), p.Test), nil
}

// newParts returns the parts and enters their sizes in the split.
func newParts(split Split, train, validation, test *Dataset) *Parts {
	split.Train = train.Rows
	split.Generated = train.Generated
	split.Validation, split.Test = 0, 0
	if validation != nil {
		split.Validation = validation.Rows
	}
	if test != nil {
		split.Test = test.Rows
	}
	return &Parts{Train: train, Validation: validation, Test: test, Split: split}
}

// permutation returns the numbers below n in an order drawn from the seed.
func permutation(n int, seed, stream uint64) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	rng := rand.New(rand.NewPCG(seed, stream))
	rng.Shuffle(n, func(i, j int) { order[i], order[j] = order[j], order[i] })
	return order
}

// Shard returns the parts with one of several disjoint shards of the training rows in the
// place of all: every shard has the same number of rows, the whole part of their
// quotient, and the rows that are over belong to none. Which rows belong to which shard
// is a fixed public permutation of their positions, so that one row has no influence on
// the place of another where it is replaced, or removed so that its place stays empty. An
// index or count outside of 0 <= index < count is a programmer's mistake; more shards
// than rows are an error.
func (p *Parts) Shard(index, count int) (*Parts, error) {
	if index < 0 || index >= count {
		panic("dataset: shard out of range")
	}
	if count > p.Train.Rows {
		return nil, fmt.Errorf("dataset %s: cannot cut %d rows into %d shards", p.Train.Name, p.Train.Rows, count)
	}
	rows := p.Train.Rows / count
	mine := permutation(p.Train.Rows, 0, streamShard)[index*rows : (index+1)*rows]
	slices.Sort(mine)
	return p.Subset(mine), nil
}

// Subset returns the parts with some of the training rows, in the given order, in the place of all.
// A row outside of the training rows panics.
func (p *Parts) Subset(rows []int) *Parts {
	return newParts(p.Split, p.Train.Select(p.Train.Name, rows), p.Validation, p.Test)
}
