package perturbation

import (
	"math"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/internal/require"
)

func TestNewExamples(t *testing.T) {
	parts := &dataset.Parts{Train: dataset.Generated(20, 1), Test: dataset.Generated(10, 2)}
	// Rows of Adult have 13 or 14 ones.
	for _, tt := range []struct {
		dataset string
		norm    float64
		want    float64 // the largest norm of an example
	}{
		{dataset.NameAdult, 0, 1},
		{"", 0, math.Sqrt(14.0 / 123)},
		{"", 7, math.Sqrt(14) / 7},
		{"", 1, 1}, // clipped
	} {
		parts.Split.Dataset = tt.dataset
		e, err := NewExamples(parts, tt.norm)
		require.NoError(t, err)
		var largest float64
		for i := range e.Train.Rows() {
			largest = max(largest, e.Train.SquaredNorm(i))
		}
		if math.Abs(math.Sqrt(largest)-tt.want) > 1e-12 {
			t.Errorf("%q, norm %v: examples of norm %v, want %v", tt.dataset, tt.norm, math.Sqrt(largest), tt.want)
		}
	}
	own := *parts.Train // a user's own data state the bound
	own.FeatureNorm = 2
	e, err := NewExamples(&dataset.Parts{Train: &own, Test: parts.Test}, 0)
	require.NoError(t, err)
	for i := range e.Train.Rows() {
		if norm := e.Train.SquaredNorm(i); math.Abs(norm-1) > 1e-12 { // of 13 or 14 ones
			t.Errorf("row %d has norm %v, want 1", i, norm)
		}
	}
	for want, tt := range map[string]struct {
		parts *dataset.Parts
		norm  float64
	}{
		"feature norm is -1":                             {parts, -1},
		"feature norm is NaN":                            {parts, math.NaN()},
		"feature norm is +Inf":                           {parts, math.Inf(1)},
		"dataset mnist-generated has 10 classes, want 2": {&dataset.Parts{Train: dataset.GeneratedDigits(5, 1)}, 0},
		"no test examples":                               {&dataset.Parts{Train: parts.Train}, 0},
	} {
		if _, err := NewExamples(tt.parts, tt.norm); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}
