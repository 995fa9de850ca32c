package output

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
)

func TestPublicationLines(t *testing.T) {
	guarantee := func(epsilon float64) *dparetov1.PrivacyGuarantee {
		return &dparetov1.PrivacyGuarantee{Epsilon: epsilon, Delta: 1e-5, Adjacency: dparetov1.Adjacency_ADJACENCY_REPLACE_ONE}
	}
	got := PublicationLines(&dparetov1.Publication{
		Test: guarantee(1), Train: guarantee(4), NoiseStandardDeviation: 0.00428,
		Spent: &dparetov1.PrivateModeOdometers{
			Values: 12, MaxValues: 64, Test: guarantee(0.40001), Train: guarantee(2.5), Order: 9, DivergenceBudget: 3, ShardDivergences: []float64{0.5, 0.75},
		},
		Assumptions: []string{"a holds"}, NotCovered: []string{"times"},
	})
	want := [][2]string{
		{"publishing", "all results together: ε = 1, δ = 1e-5, replace-one adjacency, for the test records"},
		{"publishing", "all results together: ε = 4, δ = 1e-5, replace-one adjacency, for the training records"},
		{"noise", "standard deviation 0.004280 in every measured value"},
		{"spent", "test records: 12 of 64 values, ε = 0.4001 so far"},
		{"spent", "training records: Rényi divergence 0.7500 of 3.000 of order 9.000 on the shard of 2 that has spent most, ε = 2.500 so far"},
		{"provided that", "a holds"},
		{"not covered", "times"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("lines (-want +got):\n%s", diff)
	}
	if got := PublicationLines(nil); got != nil {
		t.Errorf("of nothing: %q", got)
	}
}
