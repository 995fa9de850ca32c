package model

import (
	"context"
	"slices"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/surrogate"
)

// LeaveOut predicts every block of observations of metric j from the observations outside of the block. Blocks are
// lists of indices in [Model.Observed]. The distribution is that of [Model.Posterior], with the noise of the block:
// residuals are averages over the explanations, covariances are averages over the draws about them, and standard
// deviations are multiplied by [Check.Inflation]. The metric must have a surrogate. LeaveOut returns the errors of
// [surrogate.LeaveOut].
func (m *Model) LeaveOut(ctx context.Context, j int, blocks [][]int) ([]surrogate.LeftOut, error) {
	explanations, err := leaveOut(ctx, m.others(m.explanations, j), blocks)
	if err != nil {
		return nil, err
	}
	draws := explanations // a long history has no others
	if all := m.others(m.plausible, j); !slices.Equal(all, m.others(m.explanations, j)) {
		if draws, err = leaveOut(ctx, all, blocks); err != nil {
			return nil, err
		}
	}
	inflation := 1.0
	if m.checked.Inflation != nil {
		inflation = m.checked.Inflation[j]
	}
	out := make([]surrogate.LeftOut, len(blocks))
	for b, block := range blocks {
		n := len(block)
		if n == 0 {
			continue
		}
		residuals, covariance, offset := make([]float64, n), mat.NewSymDense(n, nil), make([]float64, n)
		for _, left := range explanations {
			floats.AddScaled(residuals, 1/float64(len(explanations)), left[b].Residuals)
		}
		for _, left := range draws {
			floats.SubTo(offset, left[b].Residuals, residuals)
			covariance.AddSym(covariance, left[b].Covariance)
			covariance.SymRankOne(covariance, 1, mat.NewVecDense(n, offset))
		}
		covariance.ScaleSym(inflation*inflation/float64(len(draws)), covariance)
		out[b] = surrogate.LeftOut{Residuals: residuals, Covariance: covariance}
	}
	return out, nil
}

// leaveOut returns what each of several surrogates predicts of the blocks.
func leaveOut(ctx context.Context, gps []*surrogate.GP, blocks [][]int) ([][]surrogate.LeftOut, error) {
	all := make([][]surrogate.LeftOut, len(gps))
	for i, gp := range gps {
		var err error
		if all[i], err = surrogate.LeaveOut(ctx, gp, blocks); err != nil {
			return nil, err
		}
	}
	return all, nil
}
