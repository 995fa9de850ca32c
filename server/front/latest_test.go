package front

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"

	"github.com/dpareto/dpareto/server/background"
	"github.com/dpareto/dpareto/server/failure"
	"github.com/dpareto/dpareto/server/store"
)

// newGroup returns a group of computations in the background.
func newGroup(t *testing.T) *background.Group {
	t.Helper()
	group := background.New(slog.New(slog.DiscardHandler))
	t.Cleanup(group.Close)
	return group
}

// Callers share a computation; the deadline of one ends its own waiting only.
func TestLatestIsShared(t *testing.T) {
	group := newGroup(t)
	var l latest[int]
	began, release := make(chan struct{}), make(chan struct{})
	var computed int
	compute := func(ctx context.Context) (int, error) {
		computed++
		close(began)
		<-release
		return 42, ctx.Err()
	}
	var waiting sync.WaitGroup
	get := func() {
		if v, err := l.get(t.Context(), group, 1, compute); v != 42 || err != nil {
			t.Errorf("got %v, %v", v, err)
		}
	}
	waiting.Go(get)
	<-began
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.get(gaveUp, group, 1, compute); !errors.Is(err, context.Canceled) {
		t.Errorf("a caller that gave up: %v", err)
	}
	for range 3 {
		waiting.Go(get)
	}
	close(release)
	waiting.Wait()
	if computed != 1 {
		t.Errorf("computed %d times", computed)
	}
}

// An error is not kept: the next caller may have more luck.
func TestLatestForgetsErrors(t *testing.T) {
	group := newGroup(t)
	var l latest[int]
	failure := errors.New("failure")
	for _, want := range []error{failure, nil, nil} {
		v, err := l.get(t.Context(), group, 1, func(context.Context) (int, error) { return 42, want })
		if !errors.Is(err, want) || err == nil && v != 42 {
			t.Errorf("got %v, %v, want %v", v, err, want)
		}
	}
}

// A computation is cancelled when its last caller gives up, and begins anew for the next one.
func TestLatestIsCancelled(t *testing.T) {
	group := newGroup(t)
	var l latest[int]
	abandoned := make(chan error, 1)
	untilCancelled := func(ctx context.Context) (int, error) {
		<-ctx.Done()
		abandoned <- ctx.Err()
		return 0, ctx.Err()
	}
	at := func(v int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return v, nil }
	}
	gaveUp, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := l.get(gaveUp, group, 3, untilCancelled); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := <-abandoned; !errors.Is(err, context.Canceled) {
		t.Errorf("abandoned: %v", err)
	}
	if v, err := l.get(t.Context(), group, 3, at(3)); v != 3 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	// A caller that has read an older revision gets its value, which is not kept.
	if v, err := l.get(t.Context(), group, 2, at(2)); v != 2 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if v, err := l.get(t.Context(), group, 3, at(-3)); v != 3 || err != nil {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := l.get(gaveUp, group, 2, untilCancelled); err == nil {
		t.Error("no error for a caller that gave up")
	}
	<-abandoned
}

func TestLatestFails(t *testing.T) {
	group := newGroup(t)
	var l latest[int]
	broken := errors.New("broken")
	if _, err := l.get(t.Context(), group, 1, func(context.Context) (int, error) { return 0, broken }); !errors.Is(err, broken) {
		t.Errorf("error %v", err)
	}
	_, err := l.get(t.Context(), group, 2, func(context.Context) (int, error) { panic("broken") })
	if _, ok := errors.AsType[*failure.PanicError](err); !ok {
		t.Errorf("a panic gave %v", err)
	}
	started := make(chan struct{})
	go func() {
		<-started
		group.Close()
	}()
	_, err = l.get(t.Context(), group, 3, func(ctx context.Context) (int, error) {
		close(started)
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if !errors.Is(err, store.ErrClosed) {
		t.Errorf("while closing: %v", err)
	}
	if _, err := l.get(t.Context(), group, 4, nil); !errors.Is(err, store.ErrClosed) {
		t.Errorf("after closing: %v", err)
	}
}
