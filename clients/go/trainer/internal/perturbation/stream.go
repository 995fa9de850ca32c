package perturbation

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"math/rand/v2"

	"github.com/dpareto/dpareto/clients/go/trainer"
)

// Streams makes the random generators of a run.
type Streams struct {
	Seed    uint64
	OSNoise bool // noise comes from the operating system, whatever the seed
}

// Order returns the generator of the order of the data of a replicate.
func (s Streams) Order(replicate int, purpose uint64) *rand.Rand {
	return trainer.Stream(s.Seed, replicate, purpose)
}

// Noise returns the generator of the noise of a replicate.
func (s Streams) Noise(replicate int, purpose uint64) *rand.Rand {
	if s.OSNoise {
		return rand.New(osSource{})
	}
	return trainer.Stream(s.Seed, replicate, purpose)
}

// osSource draws from the operating system's entropy.
type osSource struct{}

// Uint64 implements rand.Source.
func (osSource) Uint64() uint64 {
	var b [8]byte
	_, _ = cryptorand.Read(b[:]) // never fails: it ends the process instead
	return binary.LittleEndian.Uint64(b[:])
}
