package dataset

import "context"

// AdultDim is the number of binary features of Adult in LIBSVM's encoding.
const AdultDim = 123

// AdultFemale and AdultMale are the indices of the features of Adult that tell a person's sex,
// as the census recorded it: every example has exactly one of them.
const (
	AdultFemale = 71
	AdultMale   = 72
)

// AdultRows is the number of examples of a9a and a9a.t together.
const AdultRows = 48842

// DefaultTrainRows is the default number of training examples of SplitShuffled of Adult,
// from the text of Avent et al. (2020).
const DefaultTrainRows = 40000

// AdultSplit names a division of Adult into two parts.
type AdultSplit struct {
	// Name is SplitPublished, SplitUCI or SplitShuffled.
	Name string
	// TrainRows is the number of training examples of SplitShuffled, between 1 and
	// AdultRows−1. Zero means DefaultTrainRows. Other splits require zero.
	TrainRows int
	// Seed of SplitShuffled and of generated examples; otherwise without effect.
	Seed uint64
	// Generated asks for generated examples in the numbers of the split, in place
	// of Adult's.
	Generated bool
}

func (s AdultSplit) division() Division {
	return Division{Split: s.Name, TrainRows: s.TrainRows, Seed: s.Seed, Generated: s.Generated}
}

// Adult returns the training and test examples of a split of UCI Adult (Becker
// and Kohavi 1996, CC BY 4.0) in the encoding of LIBSVM: 123 binary features,
// labels −1 and 1. It is Load of NameAdult without a validation part.
func Adult(ctx context.Context, split AdultSplit, source Source) (train, test *Dataset, err error) {
	parts, err := Load(ctx, NameAdult, split.division(), source)
	if err != nil {
		return nil, nil, err
	}
	return parts.Train, parts.Test, nil
}
