package model

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/internal/require"
)

// apart returns the distance of two sums over clippingNorm/grid, in exact arithmetic but for the
// last division, rounded up.
func apart(x, y []int64, clippingNorm, grid float64) float64 {
	squares := new(big.Int)
	for j := range x {
		d := new(big.Int).Sub(big.NewInt(x[j]), big.NewInt(y[j]))
		squares.Add(squares, d.Mul(d, d))
	}
	distance := new(big.Float).SetPrec(200).SetInt(squares)
	distance.Sqrt(distance).Mul(distance, new(big.Float).SetFloat64(grid)).Quo(distance, new(big.Float).SetFloat64(clippingNorm))
	ratio, accuracy := distance.Float64()
	if accuracy == big.Below {
		ratio = math.Nextafter(ratio, math.Inf(1))
	}
	return ratio
}

// lot returns random rows, with repetition.
func lot(rng *rand.Rand, size, rows int) []int32 {
	lot := make([]int32, size)
	for i := range lot {
		lot[i] = int32(rng.IntN(rows))
	}
	return lot
}

// A row moves the rounded sum by the clipping norm at most, and one row in place of another by
// twice that, in exact arithmetic: whatever the weights, the norm, the grid and the lot.
func TestSensitivity(t *testing.T) {
	each(t, 40, 9, func(t *testing.T, s subtest) {
		rng := rand.New(rand.NewPCG(1, 1))
		m := newSubject(t, s.spec, s.data, nil)
		largest := 0.0
		for i := range 60 {
			if i%10 == 9 {
				m.scale(math.Ldexp(1, rng.IntN(16)-6)) // at last the outputs are far from 0
			}
			clippingNorm := math.Exp(8 * rng.NormFloat64())
			finest, coarsest := math.Log(0x1p-53*clippingNorm), math.Log(0x1p-13*clippingNorm/math.Sqrt(float64(len(m.weights()))))
			grid := math.Exp(finest + rng.Float64()*(coarsest-finest))
			require.NoError(t, CheckGrid(len(m.weights()), clippingNorm, grid))
			rows := lot(rng, 1+rng.IntN(blockRows+chunkRows), s.data.Rows)
			whole := m.rounded(rows, clippingNorm, grid)
			without := m.rounded(rows[:len(rows)-1], clippingNorm, grid)
			if d := apart(whole, without, clippingNorm, grid); d > 1 {
				t.Errorf("the last of %d rows moves the sum by %v of %v", len(rows), d, clippingNorm)
			} else {
				largest = max(largest, d)
			}
			at := rng.IntN(len(rows))
			rows[at] = int32(rng.IntN(s.data.Rows))
			if d := apart(whole, m.rounded(rows, clippingNorm, grid), clippingNorm, grid); d > 2 {
				t.Errorf("another row among %d moves the sum by %v of %v", len(rows), d, clippingNorm)
			}
		}
		if largest < 0.995 {
			t.Errorf("no row moves the sum by more than %v of the clipping norm", largest)
		}
	})
}

// The rounded sum is the clipped sum, to within the grid and the rounding errors of the latter.
func TestRoundedSum(t *testing.T) {
	each(t, 30, 7, func(t *testing.T, s subtest) {
		rng := rand.New(rand.NewPCG(2, 2))
		m := newSubject(t, s.spec, s.data, nil)
		rows := lot(rng, 2*blockRows+chunkRows/2, s.data.Rows)
		const clippingNorm, grid = 0.7, 0x1p-40
		want := m.accumulate(rows, clippingNorm)
		got := make([]float64, len(want))
		for j, k := range m.rounded(rows, clippingNorm, grid) {
			got[j] = float64(k) * grid
		}
		if d := floats.Distance(got, want, math.Inf(1)); d > 0x1p-9*clippingNorm*float64(len(rows)) {
			t.Errorf("the rounded sum differs by %v", d)
		}
	})
}

// Integers are summed exactly: in any order, in parts, and by any number of workers.
func TestRoundedSumIsExact(t *testing.T) {
	each(t, 30, 7, func(t *testing.T, s subtest) {
		rng := rand.New(rand.NewPCG(3, 3))
		m := newSubject(t, s.spec, s.data, nil)
		rows := lot(rng, blockRows+chunkRows, s.data.Rows)
		want := m.rounded(rows, 1, 0x1p-40)
		parts := m.rounded(rows[:blockRows], 1, 0x1p-40)
		for j, k := range m.rounded(rows[blockRows:], 1, 0x1p-40) {
			parts[j] += k
		}
		if !slices.Equal(parts, want) {
			t.Error("the sums of two parts of the lot do not add up")
		}
		if s.spec.Linear() { // whose rows are rounded one by one
			rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
			if !slices.Equal(m.rounded(rows, 1, 0x1p-40), want) {
				t.Error("another order of the rows gives another sum")
			}
			return
		}
		pool := parallel.New(2)
		defer pool.Close()
		if !slices.Equal(newSubject(t, s.spec, s.data, pool).rounded(rows, 1, 0x1p-40), want) {
			t.Error("another number of workers gives another sum")
		}
	})
}

// The sum of a block is that of its chunks, each of which is finished on its own before it is added: exchanging a row
// leaves the sums of the other chunks as they are, and three additions depend on it. The sums of biases and of
// sparse rows are truncated chunk by chunk.
func TestBlockIsTheSumOfItsChunks(t *testing.T) {
	each(t, 40, 9, func(t *testing.T, s subtest) {
		if s.spec.Linear() {
			return
		}
		const clippingNorm, grid = 1, 0x1p-40
		m := newSubject(t, s.spec, s.data, nil)
		rows := lot(rand.New(rand.NewPCG(4, 4)), blockRows, s.data.Rows)
		var whole []int64      // of chunks that are truncated
		var together []float32 // of chunks that are not
		for chunk := range slices.Chunk(rows, chunkRows) {
			sums := m.accumulate(chunk, clippingNorm*(1-0x1p-10))
			if whole == nil {
				whole, together = make([]int64, len(sums)), make([]float32, len(sums))
			}
			for j, v := range sums {
				whole[j] += int64(v / grid)
				together[j] += float32(v)
			}
		}
		n := NewNetwork(s.spec, prepare(t, s.data), nil)
		var want []int64
		for i, l := range n.layers {
			for range l.in * l.out {
				at := len(want)
				want = append(want, int64(float64(together[at])/grid))
				if i == 0 && s.data.Dense == nil {
					want[at] = whole[at]
				}
			}
			want = append(want, whole[len(want):len(want)+l.out]...)
		}
		if got := m.rounded(rows, clippingNorm, grid); !slices.Equal(got, want) {
			t.Errorf("sum %v, want %v", got, want)
		}
	})
}

// A row moves the sum by the clipping norm at most also where outputs and gradients are not
// finite.
func TestRowsOfDivergedModels(t *testing.T) {
	each(t, 30, 7, func(t *testing.T, s subtest) {
		m := newSubject(t, s.spec, s.data, nil)
		for _, by := range []float64{1e30, math.NaN()} {
			m.scale(by)
			for i := range int32(30) {
				sum := m.rounded([]int32{i}, 1, 0x1p-40)
				if d := apart(sum, make([]int64, len(sum)), 1, 0x1p-40); !(d <= 1) {
					t.Errorf("weights times %v: row %d moves the sum by %v", by, i, d)
				}
			}
		}
	})
}

func TestCheckGrid(t *testing.T) {
	for _, tt := range []struct {
		parameters         int
		clippingNorm, grid float64
		ok                 bool
	}{
		{1, 1, 0x1p-13, true},
		{1, 1, 0x1.1p-13, false},
		{4, 1, 0x1p-14, true},
		{4, 1, 0x1p-13, false},
		{1 << 30, 1, 0x1p-54, true},
		{1, 1, 0x1p-57, false},
		{1, 0x1p-61, 0x1p-90, false},
		{1, 0x1p61, 0x1p30, false},
		{1, math.NaN(), 0x1p-30, false},
		{1, 1, math.NaN(), false},
	} {
		if err := CheckGrid(tt.parameters, tt.clippingNorm, tt.grid); (err == nil) != tt.ok {
			t.Errorf("%+v: error %v", tt, err)
		}
	}
}
