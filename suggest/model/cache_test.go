package model_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/surrogate"
)

// A fit learns nothing that its cache knows, also of an earlier study, and no other
// cache knows it.
func TestCache(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 20, 1, 0.1)
	h.Prior = simulated.TradeOffHistory(p, 20, 2, 0.1).Evaluations
	climbs := func(cache *model.Cache) int64 {
		var n atomic.Int64
		workers := surrogate.Workers{Run: func(fn func()) { n.Add(1); fn() }}
		require.NoError(t, require.ErrOf(model.Fit(t.Context(), p, h, model.Options{Cache: cache, Workers: workers})))
		return n.Load()
	}
	cache := new(model.Cache)
	if climbs(cache) == 0 {
		t.Error("the first fit learns nothing")
	}
	if n := climbs(cache); n != 0 {
		t.Errorf("the second fit climbs %d times", n)
	}
	if climbs(new(model.Cache)) == 0 || climbs(nil) == 0 {
		t.Error("something is remembered outside of a cache")
	}
}

// Fits of several studies at the same time share a cache.
func TestCacheIsSafeForConcurrentUse(t *testing.T) {
	p := simulated.TradeOff()
	cache := new(model.Cache)
	var fits sync.WaitGroup
	for i := range 4 {
		fits.Go(func() {
			h := simulated.TradeOffHistory(p, 10, uint64(i%2), 0.1)
			m, err := model.Fit(t.Context(), p, h, model.Options{Cache: cache})
			if err != nil {
				t.Error(err)
				return
			}
			alone, err := model.Fit(t.Context(), p, &suggest.History{Evaluations: h.Evaluations}, model.Options{})
			if err != nil {
				t.Error(err)
				return
			}
			at := h.Evaluations[3].Point
			if got, want := m.Predict(at)[1], alone.Predict(at)[1]; got != want {
				t.Errorf("study %d: %v with a shared cache, %v without", i, got, want)
			}
		})
	}
	fits.Wait()
}
