package selection

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/noise"
)

// Select returns the index of a candidate, chosen by the method: [Exponential],
// [PermuteAndFlip] or [NoisyMax], whose comments and errors apply. An unknown method is
// a privacy.FieldError for "method".
func Select(method privacy.SelectionMethod, src *noise.Source, utilities []float64, sensitivity, epsilon float64) (int, error) {
	switch method {
	case privacy.Exponential:
		return Exponential(src, utilities, sensitivity, epsilon)
	case privacy.PermuteAndFlip:
		return PermuteAndFlip(src, utilities, sensitivity, epsilon)
	case privacy.ReportNoisyMax:
		return NoisyMax(src, utilities, sensitivity, epsilon)
	default:
		return 0, errUnknownMethod(method)
	}
}

// Exponential returns index i with probability ∝ e^{ε·utilities[i]/2Δ}, exactly (McSherry and
// Talwar, "Mechanism design via differential privacy", 2007). The errors are
// privacy.FieldErrors for "utilities" (no candidate), "utilities[i]" (not finite),
// "sensitivity" and "epsilon" (not positive or not finite). The expected time is at most n
// cheap trials.
func Exponential(src *noise.Source, utilities []float64, sensitivity, epsilon float64) (int, error) {
	trial, err := newTrial(src, utilities, sensitivity, epsilon)
	if err != nil {
		return 0, err
	}
	for { // rejection: candidates drawn uniformly, each kept with its weight
		if i := int(src.Uint64N(uint64(len(utilities)))); trial.accepts(utilities[i]) {
			return i, nil
		}
	}
}

// PermuteAndFlip visits the candidates in random order, accepts i with probability
// e^{ε·(utilities[i] − u*)/2Δ}, u* being the largest utility, and returns the first that it
// accepts, all exactly (McKenna and Sheldon, 2020, Algorithm 1). The choice is distributed
// like the largest utility with exponential noise of mean 2Δ/ε added (Ding, Kifer, Saghaian,
// Steinke, Wang, Xiao and Zhang, "The permute-and-flip mechanism is identical to
// report-noisy-max with exponential noise", 2021). It returns the errors of [Exponential].
func PermuteAndFlip(src *noise.Source, utilities []float64, sensitivity, epsilon float64) (int, error) {
	trial, err := newTrial(src, utilities, sensitivity, epsilon)
	if err != nil {
		return 0, err
	}
	order := make([]int, len(utilities))
	for i := range order {
		order[i] = i
	}
	for { // the best candidate is always accepted
		last := len(order) - 1
		k := int(src.Uint64N(uint64(len(order))))
		i := order[k]
		if trial.accepts(utilities[i]) {
			return i, nil
		}
		order[k] = order[last]
		order = order[:last]
	}
}

// trial decides whether a candidate is accepted.
type trial struct {
	src                  *noise.Source
	best                 float64
	sensitivity, epsilon float64
	rate                 *big.Rat // ε/2Δ
}

func newTrial(src *noise.Source, utilities []float64, sensitivity, epsilon float64) (*trial, error) {
	if err := check(utilities, sensitivity, epsilon); err != nil {
		return nil, err
	}
	rate := new(big.Rat).SetFloat64(epsilon)
	rate.Quo(rate, new(big.Rat).SetFloat64(sensitivity))
	rate.Quo(rate, big.NewRat(2, 1))
	return &trial{src, slices.Max(utilities), sensitivity, epsilon, rate}, nil
}

// accepts returns true with probability e^−γ, γ = ε·(best − utility)/2Δ, exactly. The bad
// ones of many candidates have a large γ and are refused by an integer below it, without
// big arithmetic.
func (t *trial) accepts(utility float64) bool {
	if utility == t.best {
		return true
	}
	whole := t.whole(utility)
	if !t.src.BernoulliExpInteger(whole) {
		return false
	}
	gamma := new(big.Rat).SetFloat64(t.best)
	gamma.Sub(gamma, new(big.Rat).SetFloat64(utility))
	gamma.Mul(gamma, t.rate)
	return t.src.BernoulliExp(gamma.Sub(gamma, new(big.Rat).SetFrac(new(big.Int).SetUint64(whole), big.NewInt(1))))
}

// whole returns an integer of at most γ, and of more than γ − 1 − 2⁻⁵⁰γ if neither γ nor any
// intermediate value is extreme.
func (t *trial) whole(utility float64) uint64 {
	const smallest, largest = 1e-150, 1e150
	difference := t.best - utility
	for _, x := range []float64{difference, t.sensitivity, t.epsilon} {
		if x < smallest || x > largest {
			return 0
		}
	}
	// Three roundings of at most 2⁻⁵³ each; it overflows only if γ does.
	gamma := difference * t.epsilon / t.sensitivity / 2 * (1 - 0x1p-50)
	return uint64(min(gamma, 1<<62))
}

// NoisyMax adds independent Laplace noise of scale 2Δ/ε to the utilities and returns the
// index of the largest sum (Dwork and Roth, 2014, §3.3), with discrete noise on the grid
// g <= 2⁻⁴⁰·2Δ/ε: utilities are rounded to the grid, which moves two of them apart by up
// to g more, and the scale is made 2(Δ + g)/ε, rounded up to the grid, in return. Of
// equal sums the first is the largest. The choice is ε-DP as it stands: for given noise
// of the others candidate i wins from some integer on, which neighbouring data move by at
// most 2(Δ + g)/g, and from there the probability of the noise falls by e^−ε at most.
//
// It returns the errors of [Exponential]; besides, ε must lie in [2⁻⁴⁰, 2⁴⁰], and utilities
// and 2Δ/ε in the range of [noise.Source.Laplace].
func NoisyMax(src *noise.Source, utilities []float64, sensitivity, epsilon float64) (int, error) {
	if err := check(utilities, sensitivity, epsilon); err != nil {
		return 0, err
	}
	if err := checkGrid(utilities, sensitivity, epsilon); err != nil {
		return 0, err
	}
	grid := noise.Grid(2 * sensitivity / epsilon)
	// In units of the grid, 2⁴⁰ to 2⁴² here; the factor is for the roundings.
	scale := uint64(math.Ceil(2 * (sensitivity/grid + 1) / epsilon * (1 + 0x1p-50)))
	var (
		winner  int
		largest *big.Int
	)
	for i, u := range utilities {
		// Integers of the grid, which floats of large utilities would round.
		sum, _ := new(big.Float).SetFloat64(math.RoundToEven(u / grid)).Int(nil)
		sum.Add(sum, big.NewInt(src.DiscreteLaplace(scale)))
		if largest == nil || sum.Cmp(largest) > 0 {
			winner, largest = i, sum
		}
	}
	return winner, nil
}

// ExpectedLossBound returns (2Δ/ε)·log n, which bounds by how much the utility of the
// candidate that [Exponential] or [PermuteAndFlip] chooses out of n falls short of the
// largest, in expectation, in the unit of the sensitivity Δ (McKenna and Sheldon, 2020).
// It does not depend on the data.
func ExpectedLossBound(n int, sensitivity, epsilon float64) float64 {
	return 2 * sensitivity / epsilon * math.Log(float64(n))
}

func check(utilities []float64, sensitivity, epsilon float64) error {
	var errs []error
	if len(utilities) == 0 {
		errs = append(errs, privacy.FieldErrorf("utilities", "there is no candidate"))
	}
	for i, u := range utilities {
		if math.IsNaN(u) || math.IsInf(u, 0) {
			errs = append(errs, privacy.FieldErrorf(fmt.Sprintf("utilities[%d]", i), "must be finite, is %g", u))
		}
	}
	for _, p := range []struct {
		field string
		value float64
	}{{"sensitivity", sensitivity}, {"epsilon", epsilon}} {
		if !(p.value > 0) || math.IsInf(p.value, 1) {
			errs = append(errs, privacy.FieldErrorf(p.field, "must be positive and finite, is %g", p.value))
		}
	}
	return errors.Join(errs...)
}

// checkGrid checks what NoisyMax asks for besides.
func checkGrid(utilities []float64, sensitivity, epsilon float64) error {
	const largest = 0x1p400
	if epsilon < 0x1p-40 || epsilon > 0x1p40 {
		return privacy.FieldErrorf("epsilon", "must lie in [2^-40, 2^40] for noise on a grid, is %g", epsilon)
	}
	if scale := 2 * sensitivity / epsilon; scale < 1/largest || scale > largest {
		return privacy.FieldErrorf("sensitivity", "twice its ratio to epsilon must lie in [2^-400, 2^400] for noise on a grid, is %g", scale)
	}
	for i, u := range utilities {
		if math.Abs(u) > largest {
			return privacy.FieldErrorf(fmt.Sprintf("utilities[%d]", i), "must lie in [-2^400, 2^400] for noise on a grid")
		}
	}
	return nil
}

func errUnknownMethod(method privacy.SelectionMethod) error {
	return privacy.FieldErrorf("method", "unknown selection method %d", int(method))
}
