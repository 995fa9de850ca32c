package pool_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/dpareto/dpareto/internal/pause"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/metrics"
	"github.com/dpareto/dpareto/server/pool"
)

// as returns the context of a call by a principal.
func as(ctx context.Context, name string) context.Context {
	return auth.NewContext(ctx, auth.Principal{Name: name})
}

// order collects the names of computations in the order in which they get a turn.
type order struct {
	mu    sync.Mutex
	names []string
}

func (o *order) add(name string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.names = append(o.names, name)
}

// turns returns a computation that takes a number of turns of the pool.
func (o *order) turns(name string, n int) func(context.Context) error {
	return func(ctx context.Context) error {
		for i := range n {
			if i > 0 {
				if err := pause.Check(ctx); err != nil {
					return err
				}
			}
			o.add(name)
			time.Sleep(20 * time.Millisecond) // of computing: more than a slice
		}
		return nil
	}
}

// hold takes the only slot of a pool until release is called.
func hold(t *testing.T, p *pool.Pool) (release func()) {
	t.Helper()
	done := make(chan struct{})
	go func() { _ = p.Run(t.Context(), pool.Background, func(context.Context) error { <-done; return nil }) }()
	synctest.Wait()
	return func() {
		close(done)
		synctest.Wait()
	}
}

// start begins a computation and waits until it waits for a slot.
func start(t *testing.T, group *sync.WaitGroup, p *pool.Pool, caller string, kind pool.Kind, fn func(context.Context) error) {
	t.Helper()
	group.Go(func() {
		if err := p.Run(as(t.Context(), caller), kind, fn); err != nil {
			t.Error(err)
		}
	})
	synctest.Wait()
}

// Sixteen calls of one caller delay the call of another by one turn, and every turn of it by one.
func TestPrincipalsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got order
		var group sync.WaitGroup
		p := pool.New(1, metrics.New(""))
		release := hold(t, p)
		for range 16 {
			start(t, &group, p, "many", pool.Analysis, got.turns("many", 2))
		}
		start(t, &group, p, "one", pool.Analysis, got.turns("one", 3))
		release()
		group.Wait()
		want := []string{"many", "one", "many", "one", "many", "one", "many", "many"}
		if !slices.Equal(got.names[:len(want)], want) || len(got.names) != 2*16+3 {
			t.Errorf("the turns are %v of %d, want %v", got.names[:len(want)], len(got.names), want)
		}
	})
}

// A suggestion waits for one turn of an analysis, whoever computes, and lower kinds still get one
// turn in nine.
func TestKindsShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got order
		var group sync.WaitGroup
		p := pool.New(1, metrics.New(""))
		release := hold(t, p)
		start(t, &group, p, "", pool.Background, got.turns("b", 2))
		start(t, &group, p, "viewer", pool.Analysis, got.turns("a", 3))
		start(t, &group, p, "worker", pool.Suggestion, got.turns("s", 20))
		release()
		group.Wait()
		want := "ssssssssabssssssssabssssa"
		var turns string
		for _, name := range got.names {
			turns += name
		}
		if turns != want {
			t.Errorf("the turns are %s, want %s", turns, want)
		}
	})
}

// A suggestion that a worker came to wait for overtakes analyses.
func TestRaise(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got order
		var group sync.WaitGroup
		p := pool.New(1, metrics.New(""))
		release := hold(t, p)
		start(t, &group, p, "viewer", pool.Analysis, got.turns("analysis", 1))
		prepared := p.Task(t.Context(), pool.Background)
		group.Go(func() {
			if err := prepared.Run(t.Context(), got.turns("prepared", 1)); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		prepared.Raise(pool.Suggestion)
		prepared.Raise(pool.Analysis) // never lowers it
		release()
		group.Wait()
		if want := []string{"prepared", "analysis"}; !slices.Equal(got.names, want) {
			t.Errorf("the turns are %v, want %v", got.names, want)
		}
	})
}

// A cancelled computation ends at its next pause, and one that waits ends at once. Both leave their
// slot to others.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := metrics.New("")
		p := pool.New(1, m)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var got order
		for range 3 { // one computes, or waits for its next turn
			group.Go(func() {
				if err := p.Run(ctx, pool.Analysis, got.turns("cancelled", 1000)); !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled computation: %v", err)
				}
			})
		}
		time.Sleep(time.Second)
		synctest.Wait()
		cancel()
		group.Wait()
		if n := len(got.names); n > 60 {
			t.Errorf("%d turns in a second", n)
		}
		for range 2 {
			start(t, &group, p, "next", pool.Analysis, got.turns("next", 1))
		}
		group.Wait()
		if want := []string{"next", "next"}; !slices.Equal(got.names[len(got.names)-2:], want) {
			t.Errorf("the slot was not given back: %v", got.names)
		}
		const waiting = `
			# HELP dpareto_pool_waiting_computations Fits, analyses and accounting that wait for a processor, by kind.
			# TYPE dpareto_pool_waiting_computations gauge
			dpareto_pool_waiting_computations{kind="analysis"} 0
			dpareto_pool_waiting_computations{kind="background"} 0
			dpareto_pool_waiting_computations{kind="suggestion"} 0
			`
		if err := testutil.GatherAndCompare(m.Gatherer(), strings.NewReader(waiting), "dpareto_pool_waiting_computations"); err != nil {
			t.Error(err)
		}
	})
}

// No more computations run at once than there are slots, also after panics.
func TestSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pool.New(2, metrics.New(""))
		for range 3 {
			func() {
				defer func() {
					if recover() == nil {
						t.Error("the panic was lost")
					}
				}()
				_ = p.Run(t.Context(), pool.Analysis, func(context.Context) error { panic("a bug") })
			}()
		}
		var group sync.WaitGroup
		var mu sync.Mutex
		running, most := 0, 0
		for range 20 {
			group.Go(func() {
				_ = p.Run(t.Context(), pool.Analysis, func(context.Context) error {
					mu.Lock()
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(time.Millisecond)
					mu.Lock()
					running--
					mu.Unlock()
					return nil
				})
			})
		}
		group.Wait()
		if most != 2 {
			t.Errorf("%d computations at once, want 2", most)
		}
	})
}
