package dpsgd

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/privacy/correlated"
)

// horizonCycles is the length of the runs for which columns are optimised, in cycles of as many steps as there are
// bands. It does not follow the length of the run: after t epochs a run is in the state of a run of t epochs. For
// 4 to 256 cycles the variance of the sum of the noise is within 8 % of the least one.
const horizonCycles = 16

// coefficientBits is the number of binary digits of the coefficients.
const coefficientBits = 12

// cycle draws the lots of cyclic Poisson sampling: step i draws from group i modulo the number of groups.
type cycle struct {
	groups      [][]int32 // rows, in increasing order
	probability float64   // with which a step draws a row of its group
}

// newCycle splits the rows into groups of equal sizes, up to one row, at random.
func newCycle(rows, groups int, probability float64, s *random.Stream) *cycle {
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32(i)
	}
	s.Shuffle(order)
	y := &cycle{groups: make([][]int32, groups), probability: probability}
	for g := range y.groups {
		y.groups[g] = order[g*rows/groups : (g+1)*rows/groups]
		slices.Sort(y.groups[g])
	}
	return y
}

// lot draws the rows of a step, which counts from 1, into dst.
func (y *cycle) lot(dst []int32, step uint64, s *random.Stream) []int32 {
	group := y.groups[(step-1)%uint64(len(y.groups))]
	lot := s.Bernoulli(dst, len(group), y.probability)
	for i, place := range lot {
		lot[i] = group[place]
	}
	return lot
}

// correlatedNoise makes the noise of steps, which count from 1 and follow one another. Blocks of parameters have streams
// of their own, and one goroutine each.
type correlatedNoise interface {
	// grid returns the grid of gradients, for the grid on which noise of deviation 2⁴⁰ protects them without correlation.
	grid(independent float64) float64
	// addTo adds the noise of a step to the block of parameters that begins at first.
	addTo(sum []int64, first int, step uint64, s *random.Stream)
}

// bandedNoise makes rows of C⁻¹Z for a banded Toeplitz matrix C, exactly.
//
// The coefficients are whole multiples a_j of 2⁻ˢ with a₀ = 2ˢ, and gradients whole multiples g_t of the grid. For
// z_t = ⌊2⁴⁰·N⌋ the noise is
//
//	w_t = round(2⁻ˢ·(z_t − Σ_{j >= 1} a_j·w_{t−j})).
//
// The rows y_t = Σ_j a_j·g_{t−j} + z_t are a Gaussian mechanism (random.AddNoise) of standard deviation 2⁴⁰ whose
// sensitivity is ‖a‖ times the sensitivity of the g_t. What leaves it, x_t = g_t + w_t, is computed from these rows:
//
//	x_t = round(2⁻ˢ·(y_t − Σ_{j >= 1} a_j·x_{t−j})),
//
// since 2ˢ·g_t is a multiple of 2ˢ. The difference in brackets has a standard deviation below 2⁴⁰·√t: it leaves 63
// bits with a probability far below 2⁻¹²⁵.
type bandedNoise struct {
	coefficients []int64   // a₁, a₂, …
	norm         float64   // at least ‖a‖, a₀ included
	past         [][]int64 // w_{t−j} at t−j modulo their number
	draws        []int64
}

// columnOf returns the column of a number of bands, nil for one.
func columnOf(ctx context.Context, bands int) (correlated.Column, error) {
	if bands == 1 {
		return nil, nil
	}
	return correlated.Optimise(ctx, horizonCycles*bands, bands, correlated.LastError)
}

// newBandedNoise returns the noise of a number of parameters for a column of at least 2 bands.
func newBandedNoise(column correlated.Column, parameters int) *bandedNoise {
	n := &bandedNoise{draws: make([]int64, parameters)}
	square := int64(1 << (2 * coefficientBits))
	for _, x := range column[1:] {
		a := int64(math.Round(x / column[0] * (1 << coefficientBits)))
		n.coefficients = append(n.coefficients, a)
		n.past = append(n.past, make([]int64, parameters))
		square += a * a
	}
	n.norm = math.Nextafter(math.Sqrt(float64(square)), math.Inf(1))
	return n
}

func (n *bandedNoise) grid(independent float64) float64 {
	return math.Nextafter(independent*n.norm, math.Inf(1))
}

func (n *bandedNoise) addTo(sum []int64, first int, step uint64, s *random.Stream) {
	draws := n.draws[first : first+len(sum)]
	clear(draws)
	random.AddNoise(draws, s)
	slots := uint64(len(n.past))
	for j, a := range n.coefficients {
		for i, w := range n.past[(step+slots-uint64(j+1))%slots][first : first+len(sum)] {
			draws[i] -= a * w
		}
	}
	oldest := n.past[step%slots][first : first+len(sum)]
	for i, v := range draws {
		w := (v + 1<<(coefficientBits-1)) >> coefficientBits
		oldest[i] = w
		sum[i] += w
	}
}

// bands returns the number of bands of a run: 1 where the parameters choose DP-SGD.
func bands(p trainer.Parameters, rows, lotSize int) (int, error) {
	if p.Has(ParameterMechanism) {
		name, err := chosen(p, ParameterMechanism, Name, NameMF)
		if err != nil {
			return 0, err
		}
		if name == Name {
			if p.Has(ParameterBands) {
				return 0, &trainer.ParameterError{
					Name: ParameterBands, Reason: fmt.Sprintf("is given for %s %s (give the parameter a condition on %[1]s)", ParameterMechanism, Name),
				}
			}
			return 1, nil
		}
	}
	b, err := p.IntIn(ParameterBands, 1, int64(rows/lotSize))
	return int(b), err
}
