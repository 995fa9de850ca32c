package list_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
	"github.com/dpareto/dpareto/server/pool"
	"github.com/dpareto/dpareto/server/store"
)

// Lists that take long wait for a slot of the pool, behind workers, before they read anything. Short
// ones do not wait.
func TestListsWait(t *testing.T) {
	var views atomic.Int64
	hooks := enginetest.Hooks{View: func(context.Context) { views.Add(1) }}
	s := enginetest.New(t, enginetest.Options{Around: hooks.Around, Designer: enginetest.Always(enginetest.Random())})
	created := s.Runs(t, nil)
	// The slot is taken, and callers do not wait for it.
	err := s.Pool.Run(t.Context(), pool.Suggestion, func(context.Context) error {
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		for name, req := range map[string]*dparetov1.ListTrialsRequest{
			"order":            {OrderBy: "metrics.error"},
			"filter":           {Filter: "state = FAILED"},
			"filter of newest": {Filter: "state = FAILED", OrderBy: "number desc"},
			"changes":          {Filter: "state = FAILED", AfterRevision: 1},
			"large page":       {PageSize: 1000},
		} {
			req.Parent = created.GetName()
			before := views.Load()
			if _, err := s.ListTrials(gone, req); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", name, err)
			}
			if n := views.Load() - before; n > 0 {
				t.Errorf("%s reads the store without a slot", name)
			}
		}
		for name, req := range map[string]*dparetov1.ListStudiesRequest{"order": {OrderBy: "name"}, "filter": {Filter: `display_name = "x"`}} {
			before := views.Load()
			if _, err := s.ListStudies(gone, req); !errors.Is(err, context.Canceled) || views.Load() > before {
				t.Errorf("studies, %s: %v, %d views", name, err, views.Load()-before)
			}
		}
		_, first := s.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: created.GetName()})
		_, newest := s.ListTrials(t.Context(), &dparetov1.ListTrialsRequest{Parent: created.GetName(), PageSize: 1, OrderBy: "number desc"})
		_, studies := s.ListStudies(t.Context(), &dparetov1.ListStudiesRequest{})
		return errors.Join(first, newest, studies)
	})
	if err != nil {
		t.Error(err)
	}
}

// A list of many trials reads them in several short transactions, and is whole.
func TestLongListsPause(t *testing.T) {
	const trials = 1000
	var views atomic.Int64
	hooks := enginetest.Hooks{View: func(context.Context) { views.Add(1) }}
	s := enginetest.New(t, enginetest.Options{Around: hooks.Around, Damages: true, Designer: enginetest.Always(enginetest.Random())})
	created := s.Runs(t, nil)
	s.Complete(t, s.AskRun(t), enginetest.ErrorAt(1, .5))
	require.NoError(t, s.Store.Update(t.Context(), store.In(store.StudyScope("runs")), func(tx *store.Tx) error {
		record, err := tx.Trial("runs", 1)
		for n := int64(2); n <= trials && err == nil; n++ {
			record.GetTrial().Number, record.GetTrial().Revision = n, 100+n
			record.GetTrial().GetFinalMeasurement().GetMetrics()["error"].Value = new(float64(n * 7919 % trials))
			err = tx.PutTrial("runs", record)
		}
		return err
	}))
	for _, order := range []string{"", "metrics.error", "metrics.error desc", "number"} {
		var numbers []int64
		req := &dparetov1.ListTrialsRequest{Parent: created.GetName(), PageSize: 400, OrderBy: order}
		for {
			views.Store(0)
			resp, err := s.ListTrials(t.Context(), req)
			if err != nil {
				t.Fatalf("%q: %v", order, err)
			}
			if n := views.Load(); order != "" && n < 4 {
				t.Errorf("%q is read in %d transactions", order, n)
			}
			for _, trial := range resp.GetTrials() {
				numbers = append(numbers, trial.GetNumber())
			}
			if req.PageToken = resp.GetNextPageToken(); req.GetPageToken() == "" {
				break
			}
		}
		slices.Sort(numbers)
		if len(numbers) != trials || len(slices.Compact(numbers)) != trials {
			t.Errorf("%q lists %d trials", order, len(numbers))
		}
	}
}
