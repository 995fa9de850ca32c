package servertest

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// memory is a store.KV that keeps nothing, for tests that make thousands of updates.
type memory struct {
	mu     sync.RWMutex
	keys   []string // in ascending order
	values map[string][]byte
}

var _ store.KV = (*memory)(nil)

// NewMemory returns a store in memory.
func NewMemory(t testing.TB) *store.Store {
	t.Helper()
	records, err := store.New(t.Context(), &memory{values: make(map[string][]byte)})
	require.NoError(t, err)
	return records
}

// Get implements store.Reader.
func (m *memory) Get(key string) ([]byte, error) { return m.values[key], nil }

// Scan implements store.Reader.
func (m *memory) Scan(prefix, from string, fn func(string, []byte) (bool, error)) error {
	first, _ := slices.BinarySearch(m.keys, max(prefix, from))
	for _, key := range m.keys[first:] {
		if !strings.HasPrefix(key, prefix) {
			return nil
		}
		if key[0] == 0 && prefix == "" {
			continue
		}
		if more, err := fn(key, m.values[key]); !more || err != nil {
			return err
		}
	}
	return nil
}

// View implements store.KV.
func (m *memory) View(_ context.Context, fn func(store.Reader) error) error {
	m.mu.RLock()
	defer m.mu.RUnlock()
	return fn(m)
}

// Update implements store.KV.
func (m *memory) Update(_ context.Context, _ store.Scopes, fn func(store.ReadWriter) error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	overlay := store.NewOverlay(m)
	if err := fn(overlay); err != nil {
		return err
	}
	return overlay.Apply(m.set)
}

func (m *memory) set(key string, value []byte) error {
	at, found := slices.BinarySearch(m.keys, key)
	switch {
	case value == nil && found:
		m.keys = slices.Delete(m.keys, at, at+1)
	case value != nil && !found:
		m.keys = slices.Insert(m.keys, at, key)
	}
	if value == nil {
		delete(m.values, key)
	} else {
		m.values[key] = value
	}
	return nil
}

// Close implements store.KV.
func (m *memory) Close() error { return nil }
