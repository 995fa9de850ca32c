package surrogate

import "fmt"

// Observations are n noisy values of a function of d inputs.
type Observations struct {
	// X holds n points of d coordinates. Coordinates should be scaled to
	// [0, 1]; values outside are accepted. Points may repeat.
	X [][]float64

	// Y holds the n outputs.
	Y []float64

	// NoiseVariance holds n known noise variances >= 0 in units of Y²,
	// for instance s²/R for the mean of R replicates with sample variance s².
	// They add to the learned noise. Nil means that all are 0.
	NoiseVariance []float64

	// Runs holds the n numbers R_i > 0 of independent runs that the outputs are
	// means of: the learned noise variance of output i is τ²(x_i)/R_i. Nil means
	// that all are 1.
	Runs []float64

	// Groups holds n group numbers >= 0. Outputs of the same group > 0 are
	// measured along one run (checkpoints of one training) and share its learned
	// noise; an output of group 0 shares it with no other. Nil means that all are 0.
	Groups []int

	// Positions holds the n positions of the outputs within their groups, for
	// instance the logarithm of the epoch. The correlation of the noise falls with
	// the distance, see Hyperparameters.NoiseDecay. Nil means that all are 0.
	Positions []float64
}

// check panics if the lengths disagree and returns an error that names the
// first value that is not finite or out of range. The dimension of every point
// must be d.
func (o Observations) check(d int) error {
	n := len(o.X)
	if len(o.Y) != n || (o.NoiseVariance != nil && len(o.NoiseVariance) != n) ||
		(o.Runs != nil && len(o.Runs) != n) || (o.Groups != nil && len(o.Groups) != n) ||
		(o.Positions != nil && len(o.Positions) != n) {
		panic(panicLength)
	}
	for _, x := range o.X {
		if len(x) != d {
			panic(panicDimension)
		}
	}
	for i, x := range o.X {
		for j, v := range x {
			if !finite(v) {
				return fmt.Errorf("surrogate: X[%d][%d] is %v, want a finite number", i, j, v)
			}
		}
	}
	if err := checkFinite("Y", o.Y); err != nil {
		return err
	}
	for i, v := range o.NoiseVariance {
		if !finite(v) || v < 0 {
			return fmt.Errorf("surrogate: NoiseVariance[%d] is %v, want a finite variance >= 0", i, v)
		}
	}
	for i, v := range o.Runs {
		if !finite(v) || v <= 0 {
			return fmt.Errorf("surrogate: Runs[%d] is %v, want a finite number > 0", i, v)
		}
	}
	for i, v := range o.Groups {
		if v < 0 {
			return fmt.Errorf("surrogate: Groups[%d] is %d, want a number >= 0", i, v)
		}
	}
	return checkFinite("Positions", o.Positions)
}
