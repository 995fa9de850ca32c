package store_test

import (
	"context"
	"errors"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/store"
)

// broken is a KV whose commits fail while err is set.
type broken struct {
	store.KV

	err error
}

func (b *broken) Update(ctx context.Context, scopes store.Scopes, fn func(store.ReadWriter) error) error {
	return b.KV.Update(ctx, scopes, func(w store.ReadWriter) error {
		if err := fn(w); err != nil {
			return err
		}
		return b.err
	})
}

// An observer sees every update and whether the store is at fault; what waits for the
// commit happens only after one.
func TestObserve(t *testing.T) {
	_, db := open(t)
	kv := &broken{KV: db}
	s, err := store.New(t.Context(), kv)
	require.NoError(t, err)
	type outcome struct {
		err    error
		failed bool
	}
	var seen []outcome
	s.Observe(func(ctx context.Context) (context.Context, func(error, bool)) {
		return ctx, func(err error, failed bool) { seen = append(seen, outcome{err, failed}) }
	})
	committed := 0
	update := func(ctx context.Context, result error) error {
		return s.Update(ctx, nil, func(tx *store.Tx) error {
			tx.AfterCommit(func() { committed++ })
			return result
		})
	}
	refused, lost := errors.New("refused"), errors.New("lost")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range []error{update(t.Context(), nil), update(t.Context(), refused), update(cancelled, nil)} {
		_ = err // the observer sees it
	}
	kv.err = lost
	if err := update(t.Context(), nil); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
	if err := s.Probe(t.Context()); !errors.Is(err, lost) {
		t.Errorf("probe: %v while nothing can be written", err)
	}
	kv.err = nil
	if err := s.Probe(t.Context()); err != nil {
		t.Errorf("probe: %v", err)
	}
	want := []outcome{{nil, false}, {refused, false}, {context.Canceled, false}, {lost, true}}
	if len(seen) != len(want) {
		t.Fatalf("%d updates were seen, want %d: %v", len(seen), len(want), seen)
	}
	for i := range want {
		if !errors.Is(seen[i].err, want[i].err) || seen[i].failed != want[i].failed {
			t.Errorf("update %d: %v", i, seen[i])
		}
	}
	if committed != 1 {
		t.Errorf("%d commits were followed up, want 1", committed)
	}
}
