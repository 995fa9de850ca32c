// Package subset derives a secret random subset of training records from a key.
package subset

import (
	"crypto/sha3"
	"encoding/binary"
	"fmt"
)

// KeySize is the number of bytes of a key.
const KeySize = 32

// Subset is a random subset of training records: Size of Of records, uniformly without replacement.
// All trials of a study that name the same key have the same subset. Which records are in it stays
// secret, as the guarantee of the study requires: the key must never be shown or logged.
type Subset struct {
	Key  []byte // KeySize bytes that cannot be guessed
	Size int    // in [1, Of]
	Of   int    // at least 1
}

// Validate returns an error if a field is out of range. The error never holds the key.
func (s Subset) Validate() error {
	switch {
	case len(s.Key) != KeySize:
		return fmt.Errorf("subset: key has %d bytes, want %d", len(s.Key), KeySize)
	case s.Of < 1:
		return fmt.Errorf("subset: of %d records, want at least 1", s.Of)
	case s.Size < 1 || s.Size > s.Of:
		return fmt.Errorf("subset: size is %d, want 1 to %d, the number of records", s.Size, s.Of)
	default:
		return nil
	}
}

// Indices returns the positions of the subset's records among all, from 0, in the order in which
// they were drawn: a uniform sequence of different positions. It is not sorted: where a record that
// is drawn gives its place to one that is not, the sequence stays uniform, and no other record
// moves. So the guarantee also holds for a training that depends on the order of its records.
// Indices panics if the subset is not valid.
//
// It is a Fisher-Yates shuffle whose words are SHAKE256 of the key, 8 bytes each in little-endian
// order. A number below k is the next word modulo k, without words below 2⁶⁴ mod k. Clients in other
// languages draw the same.
func (s Subset) Indices() []int {
	if err := s.Validate(); err != nil {
		panic(err)
	}
	stream := sha3.NewSHAKE256()
	_, _ = stream.Write(s.Key) // a hash never fails
	below := func(k uint64) uint64 {
		var word [8]byte
		for {
			_, _ = stream.Read(word[:])
			if x := binary.LittleEndian.Uint64(word[:]); x >= -k%k {
				return x % k
			}
		}
	}
	order := make([]int, s.Of)
	for i := range order {
		order[i] = i
	}
	for i := range s.Size {
		j := i + int(below(uint64(s.Of-i)))
		order[i], order[j] = order[j], order[i]
	}
	return order[:s.Size:s.Size]
}
