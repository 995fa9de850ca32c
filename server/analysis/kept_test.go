package analysis_test

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/server/enginetest"
)

// computations returns how many analyses have begun.
func computations(t *testing.T, s *enginetest.Service) (n uint64) {
	t.Helper()
	families, err := s.Metrics.Gatherer().Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() != "dpareto_pool_wait_seconds" {
			continue
		}
		for _, m := range family.GetMetric() {
			if m.GetLabel()[0].GetValue() == "analysis" {
				n += m.GetHistogram().GetSampleCount()
			}
		}
	}
	return n
}

// An analysis is computed once for each revision and request, also beside a few other requests.
func TestAnalysesAreKept(t *testing.T) {
	s := trained(t, 10, nil)
	a, fronts := analysesOf(s)
	const name = "studies/runs"
	ctx := t.Context()
	calls := map[string]func(context.Context) (proto.Message, error){
		"importance": func(ctx context.Context) (proto.Message, error) {
			return a.AnalyzeImportance(ctx, &dparetov1.AnalyzeImportanceRequest{Name: name})
		},
		"slices": func(ctx context.Context) (proto.Message, error) {
			return a.AnalyzeSlices(ctx, &dparetov1.AnalyzeSlicesRequest{Name: name})
		},
		"more slices": func(ctx context.Context) (proto.Message, error) {
			return a.AnalyzeSlices(ctx, &dparetov1.AnalyzeSlicesRequest{Name: name, Points: 7})
		},
		"validation": func(ctx context.Context) (proto.Message, error) {
			return a.CrossValidate(ctx, &dparetov1.CrossValidateRequest{Name: name})
		},
		"gain": func(ctx context.Context) (proto.Message, error) {
			return a.ForecastGain(ctx, &dparetov1.ForecastGainRequest{Name: name, Runs: 3})
		},
		"query": func(ctx context.Context) (proto.Message, error) {
			return fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: name, Bounds: map[string]float64{"error": .5}})
		},
		"measured query": func(ctx context.Context) (proto.Message, error) {
			return fronts.QueryFront(ctx, &dparetov1.QueryFrontRequest{Name: name, Bounds: map[string]float64{"error": .5}, MeasuredOnly: true})
		},
	}
	first := make(map[string]proto.Message)
	for call, ask := range calls {
		resp, err := ask(ctx)
		if err != nil {
			t.Fatalf("%s: %v", call, err)
		}
		first[call] = proto.Clone(resp)
	}
	before := computations(t, s)
	for call, ask := range calls {
		again, err := ask(ctx)
		if err != nil || !proto.Equal(first[call], again) {
			t.Errorf("%s: %v, then %v, %v", call, first[call], again, err)
		}
	}
	if n := computations(t, s); n > before {
		t.Errorf("%d computations for calls that were answered before", n-before)
	}
	s.AskRun(t) // a new revision
	before = computations(t, s)
	if _, err := calls["gain"](ctx); err != nil || computations(t, s) == before {
		t.Errorf("a later revision is not computed: %v", err)
	}
}
