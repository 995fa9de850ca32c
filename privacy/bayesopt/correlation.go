package bayesopt

import (
	"errors"
	"math"

	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/privacy"
)

// CorrelationGrid returns the values 1 − 10^{−j/4} for j = 1 to n, at which k_1 is tried: it
// is near 1, and 1 − k_1 is what counts.
func CorrelationGrid(n int) []float64 {
	grid := make([]float64, n)
	for j := range grid {
		grid[j] = -math.Expm1(-math.Ln10 * float64(j+1) / 4)
	}
	return grid
}

// PaperCorrelationGrid returns 0.05, 0.10, …, 0.95, the grid of §6 of the paper. It ends
// where its estimates lie: they are 0.95 whenever k_1 is at least that.
func PaperCorrelationGrid() []float64 {
	grid := make([]float64, 19)
	for j := range grid {
		grid[j] = float64(j+1) / 20
	}
	return grid
}

// Standardise centres and scales the utilities of two neighbouring sets together, in place,
// to mean 0 and variance 1 over all of them, as the prior has it. It returns their mean and
// standard deviation; utilities that are all equal are only centred.
func Standardise(first, second *mat.Dense) (mean, deviation float64) {
	all := make([]float64, 0, 2*len(first.RawMatrix().Data))
	collect := func(_, _ int, v float64) float64 { all = append(all, v); return v }
	first.Apply(collect, first)
	second.Apply(collect, second)
	mean, deviation = stat.MeanStdDev(all, nil)
	scale := deviation
	if scale == 0 {
		scale = 1
	}
	standard := func(_, _ int, v float64) float64 { return (v - mean) / scale }
	first.Apply(standard, first)
	second.Apply(standard, second)
	return mean, deviation
}

// CorrelationEstimate is an estimate of k_1. It is a diagnostic: it depends on the private
// data, it is an average over random neighbours where the algorithms need the least value,
// and it varies with the noise that is assumed, since a difference of two accuracies on m
// records is a multiple of 1/m and hence rough.
type CorrelationEstimate struct {
	// Correlation is the value of the grid with the largest likelihood.
	Correlation float64
	// LogLikelihoods holds the log-likelihood of every value of the grid.
	LogLikelihoods []float64
	// AtEdge reports that the estimate is the first or the last value of the grid, so that a
	// better one may lie outside.
	AtEdge bool
}

// EstimateCorrelation estimates k_1 from the utilities of the same N configurations on P
// pairs of neighbouring validation sets, first and second of size P×N, in standard
// deviations of the prior with mean 0 (§6 of Kusner et al., 2015, equation 14). A pair has
// the distribution N(0, [[1, k_1], [k_1, 1]] ⊗ K_2 + σ²I), so that sum and difference,
//
//	(F + F′)/√2 ~ N(0, (1 + k_1)·K_2 + σ²I),  (F − F′)/√2 ~ N(0, (1 − k_1)·K_2 + σ²I),
//
// are independent, and in the eigenvectors of K_2 so are their coordinates. Pairs are taken
// as independent. grid holds values in [0, 1).
//
// The errors are privacy.FieldErrors for "noise" and "grid", and one where the eigenvectors
// cannot be computed. It panics if the sizes do not fit.
func EstimateCorrelation(first, second mat.Matrix, kernel mat.Symmetric, noise float64, grid []float64) (CorrelationEstimate, error) {
	err := privacy.CheckPositive("noise", noise)
	if len(grid) == 0 {
		err = errors.Join(err, privacy.FieldErrorf("grid", "has no values"))
	}
	for _, k := range grid {
		if !(k >= 0 && k < 1) {
			err = errors.Join(err, privacy.FieldErrorf("grid", "values must lie in [0, 1), one is %g", k))
		}
	}
	if err != nil {
		return CorrelationEstimate{}, err
	}
	pairs, n := first.Dims()
	if p, m := second.Dims(); p != pairs || m != n || kernel.SymmetricDim() != n {
		panic("bayesopt: dimension mismatch")
	}
	var eigen mat.EigenSym
	if !eigen.Factorize(kernel, true) {
		return CorrelationEstimate{}, errors.New("bayesopt: the eigenvectors of the kernel matrix cannot be computed")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	sums, differences := squares(first, second, 1, &vectors), squares(first, second, -1, &vectors)

	e := CorrelationEstimate{LogLikelihoods: make([]float64, len(grid))}
	values := eigen.Values(nil)
	best := 0
	for i, k := range grid {
		total := 0.0
		for j, value := range values {
			value = math.Max(0, value)
			common, apart := (1+k)*value+noise*noise, (1-k)*value+noise*noise
			total -= sums[j]/common + differences[j]/apart + float64(pairs)*(math.Log(2*math.Pi*common)+math.Log(2*math.Pi*apart))
		}
		e.LogLikelihoods[i] = 0.5 * total
		if e.LogLikelihoods[i] > e.LogLikelihoods[best] {
			best = i
		}
	}
	e.Correlation, e.AtEdge = grid[best], best == 0 || best == len(grid)-1
	return e, nil
}

// squares returns the sums over all pairs of the squared coordinates of (F ± F′)/√2.
func squares(first, second mat.Matrix, sign float64, vectors *mat.Dense) []float64 {
	var combined, rotated mat.Dense
	combined.Scale(sign, second)
	combined.Add(first, &combined)
	rotated.Mul(&combined, vectors)
	pairs, n := rotated.Dims()
	sums := make([]float64, n)
	for j := range n {
		for i := range pairs {
			v := rotated.At(i, j)
			sums[j] += 0.5 * v * v
		}
	}
	return sums
}
