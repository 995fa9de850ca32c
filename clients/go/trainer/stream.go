package trainer

import (
	"encoding/binary"
	"math/rand/v2"
)

// Stream returns the random generator of replicate number replicate of a run
// with the given seed. The purpose sets apart streams for different uses, such
// as the order of the data and the noise.
//
// The generator is ChaCha8 keyed by (seed, replicate, purpose): streams of
// different keys are independent for all practical purposes, however close the
// keys are, which holds for few generators. Its output is pinned by the
// documentation of math/rand/v2 and will not change.
func Stream(seed uint64, replicate int, purpose uint64) *rand.Rand {
	var key [32]byte
	copy(key[:], "dpareto:")
	binary.LittleEndian.PutUint64(key[8:], seed)
	binary.LittleEndian.PutUint64(key[16:], uint64(replicate))
	binary.LittleEndian.PutUint64(key[24:], purpose)
	return rand.New(rand.NewChaCha8(key))
}
