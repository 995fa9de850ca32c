package suggest_test

import (
	"testing"

	"github.com/dpareto/dpareto/suggest"
)

func TestAttached(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values []float64
		width  float64
		want   int
	}{
		{"none", nil, 1, 0},
		{"one", []float64{1e30}, 1, 1},
		{"equal", []float64{1, 1, 1}, 0, 3},
		{"one far off", []float64{0.1, 0.4, 0.6, 1000}, 0.5, 3},
		{"within the width", []float64{0.1, 0.4, 0.6, 1000}, 400, 4},
		{"growing", []float64{0, 1, 2, 4, 8, 16, 32, 64}, 0.1, 8},
		{"all after the first", []float64{0, 1, 100, 101, 102, 1e9}, 1, 2},
	} {
		if got := suggest.Attached(tt.values, tt.width, 8); got != tt.want {
			t.Errorf("%s: %d, want %d", tt.name, got, tt.want)
		}
	}
}

// A run that diverged in one objective and is the best in another moves no inferred reference.
func TestInferredReferenceBesideOutliers(t *testing.T) {
	values := [][]float64{{1, 4}, {2, 3}, {3, 2}, {4, 1}}
	for _, transform := range []suggest.Transform{suggest.Identity, suggest.Log} {
		for _, absurd := range []float64{1000, 1e6, 1e30} {
			if transform == suggest.Log && absurd < 1e30 {
				continue // six orders of magnitude are no outlier among logarithms
			}
			p := inferring(func(p *suggest.Problem) { p.Objectives[0].Transform = transform })
			want := p.Inferred(results(values...)).ReferenceCosts()
			for _, v := range []float64{absurd, -absurd} {
				if v < 0 && transform == suggest.Log {
					continue
				}
				got := p.Inferred(results(append(values, []float64{v, 0.5})...)).ReferenceCosts()
				if got[0] != want[0] || got[1] != want[1] {
					t.Errorf("%v: reference %v with a value of %g, want %v", transform, got, v, want)
				}
			}
		}
	}
}
