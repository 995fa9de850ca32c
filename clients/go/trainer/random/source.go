package random

import "fmt"

// Source says where the randomness of a training run comes from: all of it, the
// order of the examples and the first weights as well as the noise.
type Source string

// The sources.
const (
	// SourceSeed is the seed of the run, as experiments need: anyone who knows it can
	// remove the noise.
	SourceSeed Source = "seed"
	// SourceOS is the operating system's entropy. The seed has no effect, nothing
	// records what was drawn, and no two runs are equal: a model for release needs it,
	// since the privacy computed for a run holds only while its randomness is secret.
	SourceOS Source = "os"
)

// Validate returns an error unless the source is one of the above, or empty, which
// means SourceSeed.
func (s Source) Validate() error {
	switch s {
	case "", SourceSeed, SourceOS:
		return nil
	default:
		return fmt.Errorf("noise source %q is unknown, want %s or %s", string(s), SourceSeed, SourceOS)
	}
}

// Stream returns New of the same arguments, or System where the source is SourceOS.
func (s Source) Stream(seed uint64, replicate int, purpose uint64, index int) *Stream {
	if s == SourceOS {
		return System()
	}
	return New(seed, replicate, purpose, index)
}
