package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/server/store"
	"github.com/dpareto/dpareto/server/study"
)

// maxBatch bounds the trials of one designer pass, and so the time that other demands wait.
const maxBatch = 16

// queue batches demands for new trials by study. The next batch gathers while one is computed.
type queue struct {
	mu      sync.Mutex
	waiting map[string][]*demand // by uid of the study; present while a batch is computed
}

// demand is a worker's demand for new trials.
type demand struct {
	ctx     context.Context //nolint:containedctx // the waiting call's
	request *study.Request
	worker  string
	done    chan error // receives exactly one value

	progress // changed only by the pass that serves the demand
}

// suggest queues a demand and waits for the response.
func (e *Engine) suggest(ctx context.Context, id, uid string, d *demand) (*dparetov1.SuggestTrialsResponse, error) {
	d.done = make(chan error, 1)
	if !e.enqueue(id, uid, d) { //nolint:contextcheck // it outlives the call and serves others too
		return nil, store.ErrClosed
	}
	select {
	case err := <-d.done:
		if err != nil && e.background.IsClosed() {
			err = store.ErrClosed
		}
		if err != nil {
			return nil, err
		}
		return d.response, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// enqueue queues a demand and starts serving its study if needed. It returns false if the server is
// closed.
func (e *Engine) enqueue(id, uid string, d *demand) bool {
	e.queue.mu.Lock()
	defer e.queue.mu.Unlock()
	if _, busy := e.queue.waiting[uid]; !busy && !e.background.Go(func() { e.serveDemands(id, uid) }) {
		return false
	}
	if e.queue.waiting == nil {
		e.queue.waiting = make(map[string][]*demand)
	}
	e.queue.waiting[uid] = append(e.queue.waiting[uid], d)
	return true
}

// serveDemands serves the demands of a study until there are none. A pass creates at most maxBatch
// trials, shared fairly. A demand that needs more goes to the back of the queue, so it delays others
// by one pass only.
func (e *Engine) serveDemands(id, uid string) {
	for {
		e.queue.mu.Lock()
		waiting := slices.DeleteFunc(e.queue.waiting[uid], func(d *demand) bool { return d.ctx.Err() != nil })
		if len(waiting) == 0 {
			delete(e.queue.waiting, uid)
			e.queue.mu.Unlock()
			return
		}
		batch := nextBatch(waiting)
		e.queue.waiting[uid] = slices.Clone(waiting[len(batch):])
		e.queue.mu.Unlock()

		err := e.answerBatch(id, uid, batch)

		e.queue.mu.Lock()
		for _, d := range batch {
			if err == nil && d.missing > 0 {
				e.queue.waiting[uid] = append(e.queue.waiting[uid], d)
				continue
			}
			d.done <- err
		}
		e.queue.mu.Unlock()
	}
}

// shares returns how many trials of a pass each demand gets: one at a time in turn until the pass is
// full.
func shares(batch []*demand) (shares []int, total int) {
	shares = make([]int, len(batch))
	for more := true; more && total < maxBatch; {
		more = false
		for i, d := range batch {
			if shares[i] < d.missing && total < maxBatch {
				shares[i]++
				total++
				more = true
			}
		}
	}
	return shares, total
}

// whileAnyWaits returns a context that ends with parent, or when all calls behind the demands have
// ended.
func whileAnyWaits(parent context.Context, batch []*demand) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	var waiting atomic.Int64
	waiting.Store(int64(len(batch)))
	for _, d := range batch {
		stop := context.AfterFunc(d.ctx, func() {
			if waiting.Add(-1) == 0 {
				cancel()
			}
		})
		context.AfterFunc(ctx, func() { stop() })
	}
	return ctx, cancel
}
