package dataset

import (
	"context"
	"fmt"
	"math/rand/v2"
)

// AdultURL is the canonical address of the files of Adult in LIBSVM's format.
const AdultURL = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/"

// AdultDim is the number of binary features of Adult in LIBSVM's encoding.
const AdultDim = 123

// AdultRows is the number of examples of a9a and a9a.t together.
const AdultRows = 48842

// Files of Adult. The rows of a1a and a1a.t together are those of a9a.
var (
	fileA1a     = remoteFile{"a1a", 114818, "eb54c45f1bdb51286f803dd092eb8202b44637a858fc6c4e533a2d64a0d94b4e", 1605}
	fileA1aTest = remoteFile{"a1a.t", 2215057, "0212d0c4a3996fe6fb6a0ab54033d9f4fa4b60369b6e3bb141821d9ffc40c04d", 30956}
	fileA9a     = remoteFile{"a9a", 2329875, "f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906", 32561}
	fileA9aTest = remoteFile{"a9a.t", 1164628, "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", 16281}
)

// Splits of Adult into training and test examples.
const (
	// SplitPublished trains on a1a.t (30,956 examples) and tests on a1a (1,605), as
	// the code published with Avent et al., "Automatic Discovery of Privacy-Utility
	// Pareto Fronts" (PoPETs 2020) does; the paper's text says 40k and 1.6k.
	SplitPublished = "published"
	// SplitUCI trains on a9a (32,561 examples) and tests on a9a.t (16,281), which
	// is UCI's own division.
	SplitUCI = "uci"
	// SplitShuffled pools a9a and a9a.t, shuffles them by a seed, trains on the
	// first rows and tests on all the others.
	SplitShuffled = "shuffled"
)

// DefaultTrainRows is the number of training examples of SplitShuffled when it is
// not given: that of the text of Avent et al. (2020).
const DefaultTrainRows = 40000

// AdultSplit names a division of Adult.
type AdultSplit struct {
	// Name is SplitPublished, SplitUCI or SplitShuffled.
	Name string
	// TrainRows is the number of training examples of SplitShuffled, between 1 and
	// AdultRows−1. Zero means DefaultTrainRows. Other splits require zero.
	TrainRows int
	// Seed of SplitShuffled and of generated examples. It has no effect on others.
	Seed uint64
	// Generated asks for generated examples in the numbers of the split, in place
	// of Adult's.
	Generated bool
}

// normal checks the split, fills in its default and clears what has no effect, so
// that equal splits compare equal.
func (s AdultSplit) normal() (AdultSplit, error) {
	switch s.Name {
	case SplitShuffled:
		if s.TrainRows == 0 {
			s.TrainRows = DefaultTrainRows
		}
		if s.TrainRows < 1 || s.TrainRows >= AdultRows {
			return s, fmt.Errorf("train rows %d of split %s are not between 1 and %d", s.TrainRows, s.Name, AdultRows-1)
		}
		return s, nil
	case SplitPublished, SplitUCI:
		if s.TrainRows != 0 {
			return s, fmt.Errorf("train rows %d given for split %s, whose rows are fixed", s.TrainRows, s.Name)
		}
		if !s.Generated {
			s.Seed = 0
		}
		return s, nil
	default:
		return s, fmt.Errorf("split %q is unknown, want one of %s, %s, %s",
			s.Name, SplitPublished, SplitUCI, SplitShuffled)
	}
}

// Adult returns the training and test examples of a split of UCI Adult (Becker
// and Kohavi 1996, CC BY 4.0) in the encoding of LIBSVM: 123 binary features,
// labels −1 and 1. Its files are taken from the source.
//
// A file that is in no folder and cannot be downloaded gives a *DownloadError, a
// malformed one a *SyntaxError. Generated examples need no files.
func Adult(ctx context.Context, split AdultSplit, source Source) (train, test *Dataset, err error) {
	split, err = split.normal()
	if err != nil {
		return nil, nil, err
	}
	first, second := fileA9a, fileA9aTest
	if split.Name == SplitPublished {
		first, second = fileA1aTest, fileA1a
	}
	if split.Generated {
		pool := Generated(first.rows+second.rows, split.Seed)
		trainRows := first.rows
		if split.Name == SplitShuffled {
			trainRows = split.TrainRows
		}
		train, test = divide(pool, trainRows, consecutive(pool.Rows))
		return train, test, nil
	}

	paths, err := source.locate(ctx, first, second)
	if err != nil {
		return nil, nil, err
	}
	if train, err = loadAdult(paths[0], first); err != nil {
		return nil, nil, err
	}
	if test, err = loadAdult(paths[1], second); err != nil {
		return nil, nil, err
	}
	if split.Name == SplitShuffled {
		pool := Concat("adult", train, test)
		order := consecutive(pool.Rows)
		rng := rand.New(rand.NewPCG(split.Seed, 0))
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		train, test = divide(pool, split.TrainRows, order)
	}
	train.Name = "adult-" + split.Name + "-train"
	test.Name = "adult-" + split.Name + "-test"
	return train, test, nil
}

// divide returns the rows of d in the given order as the first trainRows and the
// others.
func divide(d *Dataset, trainRows int, order []int) (train, test *Dataset) {
	return d.Select(d.Name+"-train", order[:trainRows]), d.Select(d.Name+"-test", order[trainRows:])
}

func consecutive(n int) []int {
	order := make([]int, n)
	for i := range order {
		order[i] = i
	}
	return order
}

// loadAdult loads a file and checks the number of its rows, on which the
// accounting of privacy depends.
func loadAdult(path string, f remoteFile) (*Dataset, error) {
	d, err := LoadLIBSVM(path, AdultDim)
	if err != nil {
		return nil, err
	}
	if d.Rows != f.rows {
		return nil, fmt.Errorf("%s: %d examples, want the %d of Adult's %s", path, d.Rows, f.rows, f.name)
	}
	return d, nil
}
