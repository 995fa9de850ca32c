package suggest

import (
	"slices"

	"github.com/dpareto/dpareto/suggest/space"
)

// Features are inputs of surrogates that are computed from parameters and take their place: ones in
// which metrics are simpler functions. The search, its bounds and distances between configurations
// are still in the parameters.
type Features struct {
	// Count is the number of features, at least 1.
	Count int

	// Evaluate stores the features at a configuration in dst, of length Count. Numerical
	// parameters may have any values between their bounds, also integers. Features are
	// finite, smooth, and scaled so that metrics are expected to change much over a
	// difference of 1/2. Evaluate must be deterministic and safe for concurrent use.
	Evaluate func(dst []float64, q space.Point)

	// Parameters are the indices of the parameters that the features depend on, in increasing
	// order. They are numerical and have no condition.
	Parameters []int

	// Replaced are the Parameters that the features determine. They are therefore no inputs
	// themselves.
	Replaced []int

	// Spread are the indices of the features that matter most. The first runs of a study are
	// spread over them.
	Spread []int

	// Mean is the prior knowledge of objectives that are errors; see [FeatureMean]. nil if nothing is.
	Mean *FeatureMean
}

// FeatureMean is the prior knowledge, from other data, of the logit of an error as a function of features, but for its
// level: the posterior mean of a Gaussian process (Matérn-5/2, mean 0) with some values. Models take it for the prior
// mean of every measured objective with a logit transform, for fractions of errors where it is minimised and of correct
// answers where it is maximised, as far as measurements agree.
type FeatureMean struct {
	Points       [][]float64 // features
	Values       []float64   // of the logit, one for each point
	LengthScales []float64   // one for each feature
	Variance     float64     // of the function
}

// isExpected reports whether o is an objective of which a FeatureMean says something.
func (o *Objective) isExpected() bool { return o.Known == nil && o.Transform == Logit }

// Expected reports whether something is known beforehand of every measured objective; see [FeatureMean].
func (p *Problem) Expected() bool {
	return p.Features != nil && p.Features.Mean != nil &&
		!slices.ContainsFunc(p.Objectives, func(o Objective) bool { return o.Known == nil && !o.isExpected() })
}

// MeanOf returns the prior knowledge of objective j, or nil.
func (p *Problem) MeanOf(j int) *FeatureMean {
	if p.Features == nil || j >= len(p.Objectives) || !p.Objectives[j].isExpected() {
		return nil
	}
	return p.Features.Mean
}

// replaces reports whether parameter j is no input of surrogates.
func (f *Features) replaces(j int) bool { return f != nil && slices.Contains(f.Replaced, j) }

// InputDim returns the number of inputs of surrogates.
func (p *Problem) InputDim() int {
	if p.Features == nil {
		return p.Space.Dim()
	}
	return p.Space.Dim() - len(p.Features.Replaced) + p.Features.Count
}

// InputColumns returns, for every parameter, the index of its first input of surrogates, or −1 for a
// parameter that features replace. Features are the last inputs.
func (p *Problem) InputColumns() []int {
	columns := make([]int, len(p.Space.Parameters))
	next := 0
	for j := range columns {
		if p.Features.replaces(j) {
			columns[j] = -1
			continue
		}
		columns[j] = next
		next += p.inputs(j)
	}
	return columns
}

// inputs returns the number of inputs of a parameter that is not replaced.
func (p *Problem) inputs(j int) int {
	if q := &p.Space.Parameters[j]; q.Kind == space.Categorical {
		return len(q.Choices)
	}
	return 1
}

// Inputs appends the inputs of surrogates at q to dst[:0] and returns the result, of length
// InputDim: the encoded parameters (see [space.Space.Encode]) but for replaced ones, and then the
// features. It panics if q has the wrong length.
func (p *Problem) Inputs(dst []float64, q space.Point) []float64 {
	dst = p.Space.Encode(dst, q)
	f := p.Features
	if f == nil {
		return dst
	}
	from, to := 0, 0
	for j := range p.Space.Parameters {
		width := p.inputs(j)
		if !f.replaces(j) {
			to += copy(dst[to:], dst[from:from+width])
		}
		from += width
	}
	dst = slices.Grow(dst[:to], f.Count)[:to+f.Count]
	f.Evaluate(dst[to:], q)
	return dst
}

// validateFeatures checks the features.
func (p *Problem) validateFeatures(errs *space.FieldErrors) {
	f := p.Features
	if f == nil || p.Space == nil {
		return
	}
	if f.Count < 1 || f.Evaluate == nil {
		errs.Add("features", "must have at least one input and a function")
	}
	for _, j := range f.Parameters {
		if j < 0 || j >= len(p.Space.Parameters) || p.Space.Parameters[j].Kind == space.Categorical || p.Space.Parameters[j].Condition != nil {
			errs.Add("features.parameters", "must be indices of numerical parameters without a condition")
			return
		}
	}
	for _, j := range f.Replaced {
		if !slices.Contains(f.Parameters, j) {
			errs.Add("features.replaced", "must be among features.parameters")
		}
	}
	if m := f.Mean; m != nil && (len(m.Points) != len(m.Values) || len(m.LengthScales) != f.Count || !(m.Variance > 0)) {
		errs.Add("features.mean", "must have a value for each point, a length scale for each feature and a positive variance")
	}
	for _, k := range f.Spread {
		if k < 0 || k >= f.Count {
			errs.Add("features.spread", "must be indices of features")
		}
	}
}
