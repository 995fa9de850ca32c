package dataset

import (
	"math"
	"math/rand/v2"
)

// adultGroups are the sizes of the one-hot groups of Adult's 123 features, one
// group an attribute of the census: age, workclass, fnlwgt, education, years of
// education, marital status, occupation, relationship, race, sex, capital gain,
// capital loss, hours a week, native country.
var adultGroups = [14]int{5, 8, 5, 16, 5, 7, 14, 6, 5, 2, 2, 2, 5, 41}

// groupScales are the standard deviations of the hidden model's weights in the groups: as
// in Adult, a few attributes matter most, so that a few epochs of private training
// already learn something.
var groupScales = [14]float64{0.7, 0.2, 0, 0.4, 0.7, 2.2, 0.4, 2.2, 0.2, 0.4, 0.7, 0.4, 0.4, 0.2}

// The attributes that are unknown for some people: their group is all zero.
var incompleteGroups = [...]int{1, 6, 13}

const (
	// unknownRate is the fraction of examples with one group missing, as in Adult.
	unknownRate = 0.07
	// hiddenBias is the hidden model's bias: 24 % of the labels are positive.
	hiddenBias = -1.249
	// hiddenSeed draws the hidden model, the same for every dataset.
	hiddenSeed = 1999
)

// Generated returns rows made-up examples of the shape of Adult in LIBSVM's encoding: 123
// binary features in the same 14 one-hot groups, 13 or 14 ones an example, about 24 % of
// the labels positive. Labels are drawn from a hidden logistic model, whose own error is
// about 15 %; it is the same for every seed, so that a model trained on one seed can be
// tested on another. The dataset's name is "adult-generated" and it is marked as
// generated.
//
// Equal arguments give equal datasets. It panics when rows is negative.
func Generated(rows int, seed uint64) *Dataset {
	if rows < 0 {
		panic("dataset: negative number of rows")
	}
	hidden := newHiddenModel()
	rng := rand.New(rand.NewPCG(seed, streamGenerated))
	b := newBuilder(rows, rows*len(adultGroups), false)
	indices := make([]int32, 0, len(adultGroups))
	for range rows {
		missing := -1
		if rng.Float64() < unknownRate {
			missing = incompleteGroups[rng.IntN(len(incompleteGroups))]
		}
		indices = indices[:0]
		score := hiddenBias
		first := 0
		for g, size := range adultGroups {
			if g != missing {
				index := first + hidden.draw(first, size, rng.Float64())
				indices = append(indices, int32(index))
				score += hidden.weights[index]
			}
			first += size
		}
		label := float32(-1)
		if rng.Float64() < 1/(1+math.Exp(-score)) {
			label = 1
		}
		b.add(label, indices, nil)
	}
	d := b.dataset("adult-generated", AdultDim)
	d.Generated = true
	return d
}

// hiddenModel is the model that the examples are drawn from.
type hiddenModel struct {
	weights    [AdultDim]float64 // of the logistic model
	cumulative [AdultDim]float64 // probability of the features up to here in the group
}

func newHiddenModel() *hiddenModel {
	var m hiddenModel
	rng := rand.New(rand.NewPCG(hiddenSeed, 0))
	first := 0
	for g, size := range adultGroups {
		// Groups of five are quintiles of a number. In the others the k-th feature has
		// a frequency in proportion to 1/k.
		var total float64
		for k := range size {
			frequency := 1.0
			if size != 5 {
				frequency = 1 / float64(k+1)
			}
			total += frequency
			m.cumulative[first+k] = total
			m.weights[first+k] = groupScales[g] * rng.NormFloat64()
		}
		for k := range size {
			m.cumulative[first+k] /= total
		}
		first += size
	}
	return &m
}

// draw returns the feature in the group that begins at first to which the
// uniform number u in [0, 1) falls, counted from 0 within the group.
func (m *hiddenModel) draw(first, size int, u float64) int {
	k := 0
	for k < size-1 && u >= m.cumulative[first+k] {
		k++
	}
	return k
}
