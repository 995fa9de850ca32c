package simulation

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dpareto/dpareto/privacy/noise"
	"github.com/dpareto/dpareto/server"
	"github.com/dpareto/dpareto/server/auth"
	"github.com/dpareto/dpareto/server/store"
)

// world is one history: a server with everything around it.
type world struct {
	seed  uint64
	disk  disk
	clock *clock
	model *model
	began time.Time

	process atomic.Pointer[process] // nil while the server is down
	starts  int
	rough   atomic.Bool    // faults happen
	calls   sync.WaitGroup // on their way
	reboots sync.WaitGroup
	actors  []*connection
	silent  bool // no traces
}

// process is one life of the server.
type process struct {
	kv       *kv
	records  *store.Store
	server   *server.Server
	services services
}

// numbers of generators that belong to no actor.
const (
	ofEvents = -1 - iota
	ofProcesses
)

// simulate runs a history and returns the faults that it finds, and its trace unless silent.
func simulate(t *testing.T, seed uint64, silent bool) (faults []string, trace string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{seed: seed, clock: newClock(), began: time.Now(), silent: silent}
		w.model = newModel()
		w.boot(t.Context())
		w.live(t.Context())
		w.stop()
		faults, trace = w.model.faults, tell(w.actors)
	})
	return faults, trace
}

// boot starts a process on the disk.
func (w *world) boot(ctx context.Context) {
	w.starts++
	random := newSource(w.seed, ofProcesses*1000-w.starts)
	p := &process{kv: &kv{disk: &w.disk, random: random, rough: new(atomic.Bool), writer: make(chan struct{}, 1)}, services: make(services)}
	p.kv.die = func() { w.kill(p) }
	var err error
	if p.records, err = store.New(ctx, p.kv); err != nil {
		panic(err) // the disk is calm during the start
	}
	o := server.Options{
		Store: p.records, Clock: processClock{w.clock, time.Now()}, Entropy: noise.Seeded(w.seed + uint64(w.starts)),
		Version: "simulated", Logger: slog.New(slog.DiscardHandler),
	}
	p.server = server.New(o)
	p.server.Register(p.services)
	p.kv.rough = &w.rough
	w.process.Store(p)
}

// kill ends a process at once. Another one follows after a while.
func (w *world) kill(p *process) {
	if p.kv.dead.Swap(true) || !w.process.CompareAndSwap(p, nil) {
		return
	}
	w.reboots.Go(func() {
		random := newSource(w.seed, ofProcesses*1000-500-w.starts)
		p.server.Close()
		random.pause(5 * time.Second)
		if w.rough.Load() && random.chance(0.3) {
			w.stepClock(random) // while the server is down
		}
		w.boot(context.Background())
	})
}

// stepClock steps the wall clock: by an error of minutes, or of hours. Never do the steps add up to
// more than a quarter of a day, within which answers are remembered.
func (w *world) stepClock(random source) {
	d := random.upTo(2 * pick(random, time.Minute, 3*time.Hour))
	target := d - d/2*2 + pick(random, d, -d)/2
	w.clock.step(target - w.clock.Now().Sub(epoch.Add(time.Since(w.began))))
}

// connect returns a new connection of a principal.
func (w *world) connect(name string, role auth.Role) *connection {
	c := &connection{
		source: newSource(w.seed, len(w.actors)), world: w,
		principal: auth.Principal{Name: name, Credential: name, Role: role},
		trace:     trace{began: w.began, off: w.silent},
	}
	w.actors = append(w.actors, c)
	return c
}

// live lets the clients of a history act, first roughly and then calmly, and compares.
func (w *world) live(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	operator := newOperator(w.connect("operator", auth.Admin))
	operator.prepare(ctx)
	var acting, watching sync.WaitGroup
	for _, watched := range []string{open, open, fixed} {
		o := newWatcher(w.connect("watcher", auth.Viewer), watched)
		watching.Go(func() { o.watch(ctx) })
	}
	w.calm(false)
	// Each of two people runs two workers, and both call one of them w2.
	for _, at := range []struct{ principal, worker string }{{"alice", "w1"}, {"alice", "w2"}, {"bob", "w2"}, {"bob", "w3"}} {
		worker := newWorker(w.connect(at.principal, auth.Worker), at.worker)
		acting.Go(func() { worker.work(ctx) })
	}
	acting.Go(func() { operator.operate(ctx) })
	events := newSource(w.seed, ofEvents)
	acting.Go(func() {
		for range 6 {
			events.pause(20 * time.Second)
			if events.chance(0.5) {
				w.stepClock(events)
			} else if p := w.process.Load(); p != nil && events.chance(0.3) {
				w.kill(p)
			}
		}
	})
	acting.Wait()
	w.calm(true)
	time.Sleep(4 * patience) // what is on its way arrives
	operator.end(ctx)
	time.Sleep(4 * patience) // watchers catch up
	cancel()
	watching.Wait()
	w.calls.Wait()
}

// calm ends all faults, or lets them begin.
func (w *world) calm(calm bool) {
	w.rough.Store(!calm)
	w.reboots.Wait()
}

// stop ends the last process and checks the store.
func (w *world) stop() {
	w.reboots.Wait()
	p := w.process.Load()
	p.server.Close()
	for _, fault := range p.records.Check(context.Background()) {
		w.model.faultf("store", "%v", fault)
	}
}
