package samplers

import (
	"context"
	"fmt"
	"math"
	"math/bits"

	"github.com/dpareto/dpareto/privacy/correlated"
)

// Sums returns rows of the noise in sums of gradients without sampling: for runs of several lengths and matrices the
// root mean square, over all prefixes, of the noise in the sum of the gradients so far, at μ = 1 and clipping norm 1.
func Sums(ctx context.Context) ([][]any, error) {
	var rows [][]any
	for _, run := range []struct{ lots, epochs int }{{32, 4}, {128, 8}, {512, 16}} {
		steps := run.lots * run.epochs
		row := []any{fmt.Sprintf("%d epochs of %d lots", run.epochs, run.lots)}
		for _, bands := range []int{1, 8, run.lots} {
			c, err := correlated.Optimise(ctx, steps, bands, correlated.MeanError)
			if err != nil {
				return nil, err
			}
			row = append(row, deviation(c, c.Sensitivity(steps, run.lots, run.epochs), steps))
		}
		blt := correlated.TwoBuffers()
		row = append(row, deviation(blt.Column(steps), blt.Sensitivity(steps, run.lots, run.epochs), steps))
		nodes := 0
		for step := range steps {
			nodes += step/run.lots*bits.OnesCount(uint(run.lots)) + bits.OnesCount(uint(step%run.lots+1))
		}
		tree := correlated.Tree{}.Sensitivity(steps, run.lots, run.epochs) * math.Sqrt(float64(nodes)/float64(steps))
		rows = append(rows, append(row, tree))
	}
	return rows, nil
}

// deviation returns the root mean square of the noise in prefixes.
func deviation(c correlated.Column, sensitivity float64, steps int) float64 {
	mean, _ := c.Errors(steps)
	return sensitivity * math.Sqrt(mean)
}
