package correlated

import (
	"context"
	"math"

	"github.com/dpareto/dpareto/privacy"
)

// Plan is a run of DP-SGD with noise that is still to be chosen. The number of records is public.
type Plan struct {
	Records int64 // n, >= 1
	Lot     int64 // m, the expected number of records in a step, from 1 to n
	Steps   int64 // >= 1
	// Epsilon > 0 and Delta in (0, 1) of the run.
	Epsilon, Delta float64
	Neighbours     privacy.Adjacency
	Objective      Objective
}

// Choice is a banded matrix with its noise.
type Choice struct {
	Column          Column // of norm 1
	NoiseMultiplier float64
	Guarantee       privacy.Guarantee
	// Error is the standard deviation of the noise in the sum of all gradients, or its root mean square over all
	// prefixes (Plan.Objective), over the clipping norm.
	Error float64
}

// Choose returns the choice of least Error among numbers of bands, at least one of them at most Steps and Records/Lot.
// Others are left out. More bands cancel more noise and weaken the amplification by sampling. The errors are those of
// [privacy.CalibrateNoise], and that of ctx.
func (p Plan) Choose(ctx context.Context, bands ...int) (Choice, error) {
	best := Choice{Error: math.Inf(1)}
	for _, b := range bands {
		if int64(b) > min(p.Steps, p.Records/p.Lot) {
			continue
		}
		c, err := p.with(ctx, b)
		if err != nil {
			return Choice{}, err
		}
		if c.Error < best.Error {
			best = c
		}
	}
	if best.Column == nil {
		return Choice{}, privacy.FieldErrorf("bands", "must be at most %d for one of %v", min(p.Steps, p.Records/p.Lot), bands)
	}
	return best, nil
}

// with returns the choice of a number of bands.
func (p Plan) with(ctx context.Context, bands int) (c Choice, err error) {
	if c.Column, err = Optimise(ctx, int(p.Steps), bands, p.Objective); err != nil {
		return c, err
	}
	family := func(noise float64) privacy.Mechanism {
		return privacy.BandMF{
			Bands:               int64(bands),
			SamplingProbability: float64(p.Lot*int64(bands)) / float64(p.Records),
			NoiseMultiplier:     noise,
			Neighbours:          p.Neighbours,
			PublicSize:          true,
		}
	}
	rounds := (p.Steps-1)/int64(bands) + 1
	if c.NoiseMultiplier, c.Guarantee, err = privacy.CalibrateNoise(privacy.Exact{}, family, rounds, p.Epsilon, p.Delta); err != nil {
		return c, err
	}
	mean, last := c.Column.Errors(int(p.Steps))
	if p.Objective == LastError {
		mean = last
	}
	c.Error = c.NoiseMultiplier * math.Sqrt(mean)
	return c, nil
}
