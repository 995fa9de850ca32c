package simulation

import (
	"math/rand/v2"
	"sync"
	"time"
)

// source is the generator of one actor, or of a disk, which several may write to.
type source struct {
	mu     *sync.Mutex
	random *rand.Rand
}

// newSource returns the generator with a number of a history.
func newSource(seed uint64, number int) source {
	return source{new(sync.Mutex), rand.New(rand.NewPCG(seed, uint64(number)))}
}

// chance returns true with a probability.
func (s source) chance(p float64) bool { return p > 0 && s.number() < p }

// number returns a number in [0, 1).
func (s source) number() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.Float64()
}

// below returns a number in [0, n).
func (s source) below(n int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.random.IntN(n)
}

// upTo returns a time of up to the longest.
func (s source) upTo(longest time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return time.Duration(s.random.Int64N(int64(longest)))
}

// pause waits for up to the longest time.
func (s source) pause(longest time.Duration) { time.Sleep(s.upTo(longest)) }

// pick returns one of some choices.
func pick[T any](s source, choices ...T) T { return choices[s.below(len(choices))] }
