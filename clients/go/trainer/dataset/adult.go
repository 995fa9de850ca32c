package dataset

// AdultDim is the number of binary features of Adult in LIBSVM's encoding.
const AdultDim = 123

// AdultFemale and AdultMale are the indices of the features of Adult that tell a person's sex,
// as the census recorded it: every example has exactly one of them.
const (
	AdultFemale = 71
	AdultMale   = 72
)

// DefaultTrainRows is the default number of training examples of SplitShuffled of Adult,
// from the text of Avent et al. (2020).
const DefaultTrainRows = 40000
