package suggest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/space"
)

// featured is a problem in which features take the place of two of four parameters.
func featured() *suggest.Problem {
	return &suggest.Problem{
		Space: &space.Space{Parameters: []space.Parameter{
			{Name: "a", Kind: space.Double, Min: 0, Max: 2},
			{Name: "kind", Kind: space.Categorical, Choices: []string{"x", "y"}},
			{Name: "b", Kind: space.Integer, Min: 1, Max: 5},
			{Name: "c", Kind: space.Double, Min: 0, Max: 10},
		}},
		Objectives: []suggest.Objective{{Name: "error", Goal: suggest.Minimize, Reference: 1}},
		Features: &suggest.Features{
			Count:      3,
			Evaluate:   func(dst []float64, q space.Point) { dst[0], dst[1], dst[2] = q[0]*q[2], q[0], q[3] },
			Parameters: []int{0, 2, 3}, Replaced: []int{0, 2}, Spread: []int{0},
		},
	}
}

// Replaced parameters are no inputs, the others are where they are without features, and the features are last.
func TestInputs(t *testing.T) {
	p := featured()
	require.NoError(t, p.Validate())
	q := space.Point{0.5, 1, 3, 4}
	if got, want := p.Inputs(nil, q), []float64{0, 1, 0.4, 1.5, 0.5, 4}; !slices.Equal(got, want) {
		t.Errorf("inputs %v, want %v", got, want)
	}
	if got := p.InputDim(); got != 6 {
		t.Errorf("%d inputs", got)
	}
	if got, want := p.InputColumns(), []int{-1, 0, -1, 2}; !slices.Equal(got, want) {
		t.Errorf("columns %v, want %v", got, want)
	}
	p.Features = nil
	if got, want := p.Inputs(nil, q), p.Space.Encode(nil, q); !slices.Equal(got, want) {
		t.Errorf("without features: %v, want %v", got, want)
	}
	if got, want := p.InputColumns(), []int{0, 1, 3, 4}; !slices.Equal(got, want) || p.InputDim() != p.Space.Dim() {
		t.Errorf("without features: columns %v, want %v", got, want)
	}
}

func TestFeaturesAreValidated(t *testing.T) {
	for want, change := range map[string]func(*suggest.Features){
		"features: must have":             func(f *suggest.Features) { f.Count = 0 },
		"features: must have at":          func(f *suggest.Features) { f.Evaluate = nil },
		"features.parameters: must":       func(f *suggest.Features) { f.Parameters = []int{4} },
		"features.parameters: must be in": func(f *suggest.Features) { f.Parameters = []int{0, 1} },
		"features.replaced":               func(f *suggest.Features) { f.Parameters = []int{0} },
		"features.spread":                 func(f *suggest.Features) { f.Spread = []int{3} },
	} {
		p := featured()
		change(p.Features)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", want, err)
		}
	}
}
