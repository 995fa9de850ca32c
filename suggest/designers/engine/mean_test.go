package engine

import (
	"slices"
	"testing"

	"github.com/dpareto/dpareto/suggest"
	"github.com/dpareto/dpareto/suggest/internal/simulated"
)

// With what public runs say, one run is designed, and then the model takes over; unless the study says how many
// runs are designed, or learns from an earlier one.
func TestPublicRunsTakeThePlaceOfADesign(t *testing.T) {
	p := simulated.NoiseTraining(64)
	features := *pathFeatures
	features.Mean = &suggest.FeatureMean{Points: [][]float64{{0, 0}}, Values: []float64{0.1}, LengthScales: []float64{1, 1}, Variance: 1}
	p.Features = &features
	designed := func(d designer, h *suggest.History) []bool {
		var list []bool
		for n := range 7 {
			list = append(list, d.designed(p, h, n))
		}
		return list
	}
	var d designer
	if got, want := designed(d, &suggest.History{}), []bool{true, false, false, false, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("with public runs: %v", got)
	}
	d.options.InitialPoints = 2
	if got, want := designed(d, &suggest.History{}), []bool{true, true, false, false, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("with two initial points: %v", got)
	}
	d.options.InitialPoints = 0
	features.Mean = nil
	if got, want := designed(d, &suggest.History{Prior: make([]suggest.Evaluation, 1)}), []bool{false, false, true, false, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("with an earlier study: %v, want %v", got, want)
	}
	if got, want := designed(d, &suggest.History{}), []bool{true, true, true, true, false, false, false}; !slices.Equal(got, want) {
		t.Errorf("without: %v, want %v", got, want)
	}
}
