package sample

import "math/rand/v2"

// Purpose distinguishes the independent random streams of one suggestion.
type Purpose uint64

// The purposes.
const (
	Design          Purpose = iota + 1 // initial points
	Candidates                         // candidates of an acquisition
	Search                             // where its local search begins
	Fit                                // restarts of the surrogate's fit
	Fronts                             // draws of an uncertain front
	Rays                               // directions along which a front is seen
	Sensitivity                        // draws and designs of an analysis
	Hyperparameters                    // draws of the hyperparameters of constraints
	Reference                          // configurations for an inferred reference
)

// Stream returns the stream of a purpose for trial number of a study.
func Stream(seed uint64, number int64, purpose Purpose) *rand.Rand {
	return rand.New(rand.NewPCG(purpose.Seed(seed), Mix(uint64(number)^Mix(uint64(purpose)))))
}

// Seed derives the seed of a purpose from the study's seed.
func (p Purpose) Seed(seed uint64) uint64 { return Mix(seed + uint64(p)) }

// Mix is the finaliser of SplitMix64 (Steele, Lea, Flood, "Fast splittable
// pseudorandom number generators", OOPSLA 2014): a bijection whose outputs look
// independent for consecutive inputs, such as trial numbers.
func Mix(z uint64) uint64 {
	z += 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
