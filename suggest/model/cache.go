package model

import (
	"sync"

	"github.com/dpareto/dpareto/surrogate"
)

// Sizes at which the parts of a [Cache] are emptied. Surrogates are large.
const (
	maxLearned = 4096
	maxEarlier = 16
)

// Cache remembers the hyperparameters that fits have learned and the surrogates of
// earlier studies, each under a digest of everything that it depends on. A fit that finds its
// result there returns sooner; no result changes. One Cache serves any number of
// problems and goroutines. It holds at most a few megabytes and 16 surrogates of
// earlier studies. The zero value is empty and ready to use; a nil *Cache remembers nothing.
type Cache struct {
	learned memo[learned]
	earlier memo[*surrogate.GP]
}

// hyperparameters returns the values learned under a digest.
func (c *Cache) hyperparameters(key digest) (learned, bool) {
	if c == nil {
		return learned{}, false
	}
	return c.learned.get(key)
}

func (c *Cache) putHyperparameters(key digest, h learned) {
	if c != nil {
		c.learned.put(key, h, maxLearned)
	}
}

// earlierSurrogate returns the surrogate of an earlier study.
func (c *Cache) earlierSurrogate(key digest) (*surrogate.GP, bool) {
	if c == nil {
		return nil, false
	}
	return c.earlier.get(key)
}

func (c *Cache) putEarlierSurrogate(key digest, gp *surrogate.GP) {
	if c != nil {
		c.earlier.put(key, gp, maxEarlier)
	}
}

// digest is a hash of everything that a value depends on.
type digest [16]byte

// memo is a map that is safe for concurrent use and emptied when it is full.
type memo[T any] struct {
	mu     sync.Mutex
	values map[digest]T
}

func (m *memo[T]) get(key digest) (T, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	v, ok := m.values[key]
	return v, ok
}

func (m *memo[T]) put(key digest, v T, size int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= size {
		m.values = make(map[digest]T)
	}
	m.values[key] = v
}
