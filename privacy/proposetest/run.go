package proposetest

import (
	"context"
	"fmt"

	"github.com/dpareto/dpareto/privacy"
)

// Noise draws the Laplace noise of a search. For a release use a source of package noise; the
// guarantee allows for its rounding.
type Noise interface {
	// Laplace returns value, rounded to a multiple of at most 2⁻⁴⁰ of the scale, plus
	// Laplace noise of that scale.
	Laplace(value, scale float64) float64
}

// Utilities returns the utility of every candidate: the mean over the parts of what evaluate
// returns for a candidate and a part, both counted from 0. That is the accuracy, or another
// value in [0, 1], of the candidate trained on the part; 0 for a training that failed, since
// an error would end the search and so reveal something about the data. It returns the errors
// of ctx and evaluate, and one for a value outside [0, 1].
func Utilities(ctx context.Context, candidates, parts int, evaluate func(ctx context.Context, candidate, part int) (float64, error)) ([]float64, error) {
	utilities := make([]float64, candidates)
	for s := range utilities {
		for i := range parts {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			u, err := evaluate(ctx, s, i)
			if err != nil {
				return nil, fmt.Errorf("proposetest: candidate %d on part %d: %w", s, i, err)
			}
			if !(u >= 0 && u <= 1) {
				return nil, fmt.Errorf("proposetest: candidate %d on part %d: utility %g is outside [0, 1]", s, i, u)
			}
			utilities[s] += u
		}
		utilities[s] /= float64(parts)
	}
	return utilities, nil
}

// Result is the outcome of a search. The guarantee covers all of it, so that it may be
// released.
type Result struct {
	// Selected is the index of the candidate.
	Selected int
	// Rounds are all rounds in order.
	Rounds []Round
	// Capped reports that the cap ended the search.
	Capped bool
	// Guarantee holds for the search and [Protects]; [NotCovered] lists its limits.
	Guarantee privacy.Guarantee
}

// Round is one proposal.
type Round struct {
	// Level and Step are a and step of the proposal u_0 + (a + step)·g.
	Level, Step int64
	// Passed is the index of the candidate that passed, or -1.
	Passed int
}

// width returns a bound on how far one training record moves a utility after rounding: to
// the grid of the noise, 2⁻⁴⁰ of its scale 4·width/ε_0 at most, and of a mean of k numbers.
func (t Tuning) width() float64 {
	k := float64(t.Parts)
	return (1/k + k*0x1p-52) / (1 - 0x1p-37/t.Epsilon)
}

// Run searches among candidates with the given utilities in [0, 1], each a mean over t.Parts
// parts, in the order in which they stand. That order must not depend on the data. It returns
// the errors of Validate, and privacy.FieldErrors for "utilities" and "default".
func (t Tuning) Run(noise Noise, utilities []float64) (*Result, error) {
	guarantee, err := t.Guarantee()
	if err != nil {
		return nil, err
	}
	if t.Default >= len(utilities) {
		return nil, privacy.FieldErrorf("default", "is %d, of %d candidates", t.Default, len(utilities))
	}
	for s, u := range utilities {
		if !(u >= 0 && u <= 1) {
			return nil, privacy.FieldErrorf("utilities", "must lie in [0, 1], number %d is %g", s, u)
		}
	}
	result := t.search(noise, utilities)
	result.Guarantee = guarantee
	return result, nil
}

// search runs the rounds.
func (t Tuning) search(noise Noise, utilities []float64) *Result {
	result := &Result{Selected: t.Default}
	scale := t.width() / t.Epsilon
	levels, most := t.Levels(), t.MostRounds()
	for level, step := int64(0), int64(1); step > 0 && level < levels; {
		if int64(len(result.Rounds)) == most {
			result.Capped = true
			break
		}
		round := Round{Level: level, Step: step, Passed: -1}
		threshold := noise.Laplace(t.Lower+float64(level+step)*t.Granularity, 2*scale)
		for s, u := range utilities {
			if noise.Laplace(u, 4*scale) >= threshold {
				round.Passed = s
				break
			}
		}
		result.Rounds = append(result.Rounds, round)
		if round.Passed < 0 {
			step /= 2
			continue
		}
		result.Selected = round.Passed
		level += step
		step *= 2
	}
	return result
}
