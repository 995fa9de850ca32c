package model_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/designers/quasirandom"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
	"github.com/dpareto/dpareto/suggest/model"
	"github.com/dpareto/dpareto/suggest/space"
	"github.com/dpareto/dpareto/surrogate"
)

// The posterior is nearer to the truth than the measurements, its intervals
// hold the truth about as often as they say, and its front does not claim more
// than there is.
func TestModelDenoises(t *testing.T) {
	for _, runs := range []int{1, 20} {
		p := simulated.Curve()
		const n, studies = 40, 5
		var raw, posterior, covered, claimedRaw, claimed float64
		for seed := range uint64(studies) {
			h := simulated.NoisyCurve(n, runs, 0.02*math.Sqrt(float64(runs)), seed)
			m, err := model.Fit(t.Context(), p, h, model.Options{Seed: seed})
			require.NoError(t, err)
			for _, e := range m.Estimates() {
				_, truth := simulated.CurveValues(e.Point[0])
				raw += math.Abs(e.Values[1] - truth)
				posterior += math.Abs(e.Predictions[1].Median - truth)
				if e.Predictions[1].Lower <= truth && truth <= e.Predictions[1].Upper {
					covered++
				}
			}
			best, bestRaw := math.Inf(1), math.Inf(1)
			for _, e := range m.Estimates() {
				if e.OnFront {
					best = math.Min(best, e.Predictions[1].Median)
				}
				bestRaw = math.Min(bestRaw, e.Values[1])
			}
			claimed += best / studies
			claimedRaw += bestRaw / studies
		}
		if !(posterior < raw/2) {
			t.Errorf("%d runs: mean error %g of the posterior, %g of the measurements", runs, posterior/n/studies, raw/n/studies)
		}
		if share := covered / n / studies; share < 0.75 {
			t.Errorf("%d runs: the 90 %% intervals hold %g of the true values", runs, share)
		}
		_, truth := simulated.CurveValues(5)
		if !(math.Abs(claimed-truth) < math.Abs(claimedRaw-truth)/2) {
			t.Errorf("%d runs: best error %g by the posterior, %g measured, truly %g", runs, claimed, claimedRaw, truth)
		}
	}
}

func TestModelKnown(t *testing.T) {
	p := simulated.Curve()
	h := simulated.NoisyCurve(12, 20, 0.05, 1)
	q := space.Point{1.234}
	exact, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	want := suggest.Prediction{Median: 1.234, Lower: 1.234, Upper: 1.234}
	if got := exact.Predict(q)[0]; got != want {
		t.Errorf("known objective predicted as %+v, want %+v", got, want)
	}
	modelled, err := model.Fit(t.Context(), p, h, model.Options{ModelKnown: true})
	require.NoError(t, err)
	got := modelled.Predict(q)[0]
	if !(got.Lower < got.Median && got.Median < got.Upper) || math.Abs(got.Median-1.234) > 0.1 {
		t.Errorf("modelled objective predicted as %+v, want a little around 1.234", got)
	}
}

func TestEstimatesPoolReplicates(t *testing.T) {
	p := simulated.Curve()
	h := simulated.NoisyCurve(10, 1, 0.01, 2)
	for range 3 { // twins of the fourth configuration
		e := h.Evaluations[3]
		h.Evaluations = append(h.Evaluations, suggest.Evaluation{Point: e.Point, Values: []float64{e.Values[0], e.Values[1] + 0.04}, Runs: 2})
	}
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	estimates := m.Estimates()
	if len(estimates) != 10 {
		t.Fatalf("%d estimates, want 10", len(estimates))
	}
	e := estimates[3]
	if diff := cmp.Diff([]int{3, 10, 11, 12}, e.Evaluations); diff != "" {
		t.Errorf("evaluations (-want +got):\n%s", diff)
	}
	if want := h.Evaluations[3].Values[1] + 0.04*6/7; e.Runs != 7 || math.Abs(e.Values[1]-want) > 1e-12 {
		t.Errorf("mean %g over %d runs, want %g over 7", e.Values[1], e.Runs, want)
	}
	if diff := cmp.Diff(e.Predictions, m.Predict(e.Point)); diff != "" {
		t.Errorf("prediction at the point (-estimate +predicted):\n%s", diff)
	}
}

// What is infinite or was not reported teaches the model what it can and stays
// off the front.
func TestModelNotFinite(t *testing.T) {
	p := simulated.Curve()
	p.Objectives[0].Known = nil
	h := simulated.NoisyCurve(12, 20, 0.02, 3)
	h.Evaluations[11].Values[0] = math.Inf(1)
	h.Evaluations[11].Values[1] = 1e-9 // would be on every front
	h.Evaluations[10].Values[1] = math.NaN()
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	estimates := m.Estimates()
	for i, e := range estimates {
		if i >= 10 && e.OnFront {
			t.Errorf("configuration %d with the values %g is on the front", i, e.Values)
		}
		for j, v := range e.Predictions {
			if math.IsNaN(v.Median) || math.IsInf(v.Median, 0) {
				t.Errorf("configuration %d: objective %d predicted as %+v", i, j, v)
			}
		}
	}
	if got := estimates[11].Predictions[0].Median; got < 3 {
		t.Errorf("an infinite epsilon is predicted as %g, want something large", got)
	}
}

func TestFitModelErrors(t *testing.T) {
	p := simulated.Curve()
	if _, err := model.Fit(t.Context(), p, &suggest.History{}, model.Options{}); !errors.Is(err, model.ErrNoData) {
		t.Errorf("empty history: error %v, want %v", err, model.ErrNoData)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model.Fit(ctx, p, simulated.NoisyCurve(9, 1, 0.1, 1), model.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v, want %v", err, context.Canceled)
	}
	h := simulated.NoisyCurve(2, 1, 0.1, 1)
	h.Evaluations[0].StdErrors = []float64{0, -1}
	h.Evaluations[1].Values = []float64{1}
	h.Evaluations[1].Runs = -1
	h.Infeasible = []space.Point{{math.NaN()}}
	_, err := model.Fit(t.Context(), p, h, model.Options{})
	var fields space.FieldErrors
	if !errors.As(err, &fields) {
		t.Fatalf("error %v", err)
	}
	var got []string
	for _, f := range fields {
		got = append(got, f.Field)
	}
	want := []string{"evaluations[0].std_errors", "evaluations[1].values", "evaluations[1].runs", "infeasible[0]"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("violated fields (-want +got):\n%s", diff)
	}
}

// More observations than determine the hyperparameters: all of them count.
func TestModelLargeHistory(t *testing.T) {
	p := simulated.Curve()
	h := simulated.NoisyCurve(400, 1, 0.02, 4)
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	q := space.Point{2}
	_, truth := simulated.CurveValues(2)
	got := m.Predict(q)[1]
	if math.Abs(got.Median-truth) > 0.01 || got.Upper-got.Lower > 0.04 {
		t.Errorf("prediction %+v, want about %g", got, truth)
	}
}

// The reported front consists of acceptable configurations, though others dominate
// them.
func TestEstimatesRespectConstraints(t *testing.T) {
	p := simulated.Island()
	h := simulated.Run(t, quasirandom.New(), p, 20, 1, simulated.OnIsland)
	h.Evaluations = append(h.Evaluations, simulated.OnIsland(space.Point{0.85, 0.8}), simulated.OnIsland(space.Point{0.86, 0.82}))
	m, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	count := 0
	for _, e := range m.Estimates() {
		if !e.OnFront {
			continue
		}
		count++
		if e.Values[2] > 0.05 {
			t.Errorf("%v is on the front with a distance of %g", e.Point, e.Values[2])
		}
	}
	if count == 0 {
		t.Error("no configuration is on the front")
	}
	for i := range h.Evaluations {
		h.Evaluations[i].Values[2]++
	}
	if m, err = model.Fit(t.Context(), p, h, model.Options{}); err != nil {
		t.Fatal(err)
	}
	for _, e := range m.Estimates() {
		if e.OnFront {
			t.Errorf("%v is on the front of a study without an acceptable configuration", e.Point)
		}
	}
}

// A model of thousands of evaluations depends on the history alone: neither on what
// was learned on the way nor on what was asked before.
func TestModelOfManyEvaluationsIsReproducible(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 3000, 7, 0.2)
	predict := func(cache *model.Cache) []suggest.Prediction {
		m, err := model.Fit(t.Context(), p, h, model.Options{Seed: 1, Cache: cache})
		require.NoError(t, err)
		return m.Predict(h.Evaluations[17].Point)
	}
	cache := new(model.Cache)
	cold := predict(cache)
	if warm := predict(cache); !slices.Equal(cold, warm) {
		t.Errorf("%v cold, %v warm", cold, warm)
	}
	if without := predict(nil); !slices.Equal(cold, without) {
		t.Errorf("%v cold, %v without a cache", cold, without)
	}
}

// The surrogates of a fit make the same model, without what only a fit knows.
func TestNew(t *testing.T) {
	p := simulated.TradeOff()
	h := simulated.TradeOffHistory(p, 15, 1, 0.1)
	fitted, err := model.Fit(t.Context(), p, h, model.Options{})
	require.NoError(t, err)
	gps := make([]*surrogate.GP, len(p.Objectives))
	for j := range gps {
		gps[j] = fitted.Surrogate(j)
	}
	m, err := model.New(p, h, gps)
	require.NoError(t, err)
	if diff := cmp.Diff(fitted.Estimates(), m.Estimates(), cmpopts.EquateNaNs()); diff != "" {
		t.Errorf("estimates (-of the fit +of its surrogates):\n%s", diff)
	}
	if diff := cmp.Diff(fitted.Front(nil).Points(), m.Front(nil).Points()); diff != "" {
		t.Errorf("front (-of the fit +of its surrogates):\n%s", diff)
	}
	if _, err := model.New(&suggest.Problem{}, h, nil); err == nil {
		t.Error("a problem without a space is accepted")
	}
	defer func() {
		if recover() == nil {
			t.Error("no panic for a measured metric without a surrogate")
		}
	}()
	_, _ = model.New(p, h, make([]*surrogate.GP, len(p.Metrics())))
}
