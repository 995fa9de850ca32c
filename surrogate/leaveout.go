package surrogate

import (
	"context"
	"fmt"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/internal/pause"
)

// LeftOut says how well the other observations predict a block of b observations.
type LeftOut struct {
	// Residuals are the b values y_i − E[y_i | others], in units of Y.
	Residuals []float64

	// Covariance is the b×b covariance of these residuals, in units of Y²: of the function
	// given the other observations, and of the noise of the block.
	Covariance *mat.SymDense
}

// LeaveOut predicts every block of observations, given by their indices, from the
// observations outside of the block, with the hyperparameters of g. Observations whose
// noise is correlated, such as the checkpoints of a run, belong into the same block: a
// neighbour would give the answer away. With the inverse Q of the covariance of all n
// observations, which is never formed,
//
//	residuals = Q_II⁻¹ (Q(y − m))_I,   covariance = Q_II⁻¹.
//
// See Ginsbourger and Schärer, "Fast calculation of Gaussian process multiple-fold
// cross-validation residuals and their covariances", 2021, arXiv:2101.03108. Blocks that
// partition the observations cost O(n³) together.
//
// LeaveOut panics if an index is out of range or occurs twice in a block. It returns an error
// wrapping [ErrNotPositiveDefinite] if a covariance cannot be inverted, and the error of ctx if
// that ends first.
func LeaveOut(ctx context.Context, g *GP, blocks [][]int) ([]LeftOut, error) {
	out := make([]LeftOut, len(blocks))
	for k, block := range blocks {
		if err := pause.Check(ctx); err != nil {
			return nil, fmt.Errorf("surrogate: leave out: %w", err)
		}
		if len(block) == 0 {
			continue
		}
		var chol mat.Cholesky
		if !chol.Factorize(g.factor.precision(block)) {
			return nil, fmt.Errorf("surrogate: block %d: %w", k, ErrNotPositiveDefinite)
		}
		weights := make([]float64, len(block))
		for a, i := range block {
			weights[a] = g.weights[i]
		}
		out[k].Residuals = make([]float64, len(block))
		if err := chol.SolveVecTo(mat.NewVecDense(len(block), out[k].Residuals), mat.NewVecDense(len(block), weights)); err != nil {
			return nil, fmt.Errorf("surrogate: block %d: %w: %w", k, ErrNotPositiveDefinite, err)
		}
		out[k].Covariance = new(mat.SymDense)
		if err := chol.InverseTo(out[k].Covariance); err != nil {
			return nil, fmt.Errorf("surrogate: block %d: %w: %w", k, ErrNotPositiveDefinite, err)
		}
	}
	return out, nil
}

// precision returns the block I of (LLᵀ)⁻¹, the product of the columns I of L⁻¹. Such a column is
// zero above its own row, which only the rows of L below it can change.
func (t triangle) precision(block []int) *mat.SymDense {
	columns := make([][]float64, len(block))
	seen := make(map[int]bool, len(block))
	for a, i := range block {
		if seen[i] {
			panic("surrogate: an observation is twice in a block")
		}
		seen[i] = true
		below := make(triangle, len(t)-i)
		for r := range below {
			below[r] = t[i+r][i:]
		}
		columns[a] = make([]float64, len(t)-i)
		columns[a][0] = 1
		below.solve(blas.NoTrans, columns[a])
	}
	q := mat.NewSymDense(len(block), nil)
	for a := range block {
		for b := range a + 1 {
			n := min(len(columns[a]), len(columns[b]))
			q.SetSym(a, b, floats.Dot(columns[a][len(columns[a])-n:], columns[b][len(columns[b])-n:]))
		}
	}
	return q
}
