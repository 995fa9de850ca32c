package dpsgd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// node is an interval of steps from 0.
type node struct{ begin, end int }

// prefix returns the nodes whose union are the first steps: trees of separation steps, and of the last one a node for
// every binary digit.
func prefix(steps, separation int) (nodes []node) {
	for begin := 0; begin < steps; begin += separation {
		at, rest := begin, min(separation, steps-begin)
		for length := 1 << 20; length > 0; length /= 2 {
			if rest&length != 0 {
				nodes = append(nodes, node{at, at + length})
				at += length
			}
		}
	}
	return nodes
}

// The sums of the noise of the first steps share the noise of shared nodes.
func TestCovarianceOfTreeNoise(t *testing.T) {
	const steps, parameters = 13, 40_000
	for _, separation := range []int{1, 5, 8, steps} {
		shared := func(s, u int) (common float64) {
			for _, a := range prefix(s, separation) {
				if slices.Contains(prefix(u, separation), a) {
					common++
				}
			}
			return common
		}
		want := mat.NewDense(steps, steps, nil)
		for i := range steps {
			for j := range steps {
				want.Set(i, j, shared(i+1, j+1)-shared(i, j+1)-shared(i+1, j)+shared(i, j))
			}
		}
		checkCovariance(t, newTreeNoise(separation, parameters), parameters, 1, want)
	}
}

// The sums of what leaves the mechanism are sums of noisy nodes, to the last bit.
func TestTreeNoiseIsExact(t *testing.T) {
	const steps = 40
	for _, separation := range []int{1, 3, 8, 11, steps} {
		n, noise, same := newTreeNoise(separation, 1), random.New(2, 0, 0, 0), random.New(2, 0, 0, 0)
		rng := rand.New(rand.NewPCG(1, 5))
		drawn := make(map[node]int64)
		var sums [steps + 1]int64 // of gradients
		released := int64(0)
		for step := range steps {
			g := rng.Int64N(1<<44) - 1<<43
			sums[step+1] = sums[step] + g
			x := []int64{g}
			n.addTo(x, 0, uint64(step+1), noise)
			released += x[0]
			want := int64(0)
			for _, a := range prefix(step+1, separation) {
				if _, ok := drawn[a]; !ok {
					z := []int64{0}
					random.AddNoise(z, same)
					drawn[a] = z[0]
				}
				want += sums[a.end] - sums[a.begin] + drawn[a]
			}
			if released != want {
				t.Fatalf("trees of %d, step %d: released %d, of nodes %d", separation, step, released, want)
			}
		}
	}
}

// The noise of a BLT has the covariance C⁻¹C⁻ᵀ.
func TestCovarianceOfBufferedNoise(t *testing.T) {
	const steps, parameters = 12, 40_000
	inverse := mat.NewDense(steps, steps, nil)
	column := buffers.Column(steps)
	for i, x := range column.Inverse(steps) {
		for j := range steps - i {
			inverse.Set(i+j, j, x)
		}
	}
	var want mat.Dense
	want.Mul(inverse, inverse.T())
	norm := column.Sensitivity(steps, steps, 1)
	if total := checkCovariance(t, newBufferedNoise(buffers, parameters, 1), parameters, 1, &want); total*norm*norm > 0.5*steps {
		t.Errorf("variance of the sum %g, of independent noise %d", total*norm*norm, steps)
	}
}

// A record moves the means of the steps by rows of C·Δ and, whatever was released, by rounding errors within their bound.
// Small noise multipliers have large gradients, and the slow buffer much to round.
func TestRoundingOfBufferedNoise(t *testing.T) {
	const steps, separation, precision = 3000, 40, 300
	premise := 0.0 // of the signs of C⁻¹
	for d, scale := range buffers.Scale {
		premise += scale / buffers.Decay[d]
	}
	if premise >= 1 {
		t.Errorf("Σω/λ is %g, and the proof needs less than 1", premise)
	}
	for _, sigma := range []float64{0x1p-9, 1, 100} {
		with, without := newBufferedNoise(buffers, 1, sigma), newBufferedNoise(buffers, 1, sigma)
		s := random.New(3, 0, 0, 0)
		delta := int64(random.NoiseScale / sigma)
		exact := make([]*big.Float, len(buffers.Scale)) // buffers of Δ
		for d := range exact {
			exact[d] = new(big.Float).SetPrec(precision)
		}
		largest := 0.0
		for step := range steps {
			moved := new(big.Float).SetPrec(precision).SetInt64(0)
			for d, b := range exact {
				moved.Add(moved, new(big.Float).Mul(b, big.NewFloat(buffers.Scale[d])))
			}
			g := int64(0)
			if step%separation == 0 {
				g = delta
			}
			moved.Add(moved, new(big.Float).SetInt64(g))
			// Without the record the same is released: g − takenBack + z with it, and its means are m.
			z := []int64{0}
			random.AddNoise(z, s)
			m := g - with.takenBack(0)
			x := m + z[0]
			difference := new(big.Float).SetPrec(precision).SetInt64(m + without.takenBack(0))
			r, _ := new(big.Float).Sub(difference, moved).Float64()
			if largest = max(largest, math.Abs(r)); largest > with.moved {
				t.Fatalf("σ = %g, step %d: moved by %g besides C·Δ, more than %g", sigma, step, r, with.moved)
			}
			with.push(0, x-g)
			without.push(0, x)
			for d, b := range exact {
				b.Add(b.Mul(b, big.NewFloat(buffers.Decay[d])), new(big.Float).SetInt64(g))
			}
		}
		if largest == 0 {
			t.Errorf("σ = %g: nothing was rounded", sigma)
		}
	}
}

// Of every row of a small table: what it moves over the whole run, in standard deviations, is at most the sensitivity
// over σ, and for the rows of the first lot almost as much.
func TestSensitivityInFixedOrder(t *testing.T) {
	const rows, lots, epochs = 11, 4, 3
	d := dataset.Generated(rows, 1)
	for _, matrix := range []Matrix{BLT, Tree} {
		c := testConfiguration(rows, 2)
		c.clippingNorm, c.noiseMultiplier, c.stepsPerEpoch = 0.4, 1.7, lots
		r := newLinear(t, d, Options{Matrix: matrix}, c, 0)
		sensitivity, column := matrix.noiseMatrix().Sensitivity(epochs*lots, lots, epochs), buffers.Column(epochs*lots)
		closest := 0.0
		for row := range int32(rows) {
			takesPart := func(step int) float64 {
				if slices.Contains(r.cycle.lot(nil, uint64(step+1), r.lots), row) {
					return 1
				}
				return 0
			}
			norm := 0.0 // of the rows of C for unit gradients
			if matrix == BLT {
				for step := range epochs * lots {
					sum := 0.0
					for i := range step + 1 {
						sum += column[step-i] * takesPart(i)
					}
					norm += sum * sum
				}
			} else {
				used := make(map[node]bool)
				for step := range epochs * lots {
					for _, a := range prefix(step+1, int(r.correlated.(*treeNoise).separation)) {
						used[a] = true
					}
				}
				for a := range used {
					sum := 0.0
					for step := a.begin; step < a.end; step++ {
						sum += takesPart(step)
					}
					norm += sum * sum
				}
			}
			r.accumulate([]int32{row})
			square := 0.0
			for _, g := range r.model.Sum() {
				square += float64(g) * float64(g)
			}
			clear(r.model.Sum())
			shift := math.Sqrt(norm*square) / random.NoiseScale
			if n, ok := r.correlated.(*bufferedNoise); ok {
				shift += n.moved * math.Sqrt(float64(r.Size())*epochs*lots) / random.NoiseScale
			}
			if shift *= c.noiseMultiplier / sensitivity; shift > 1 {
				t.Errorf("%s: row %d moves the run by %.17g of the sensitivity", matrix, row, shift)
			}
			closest = max(closest, shift)
		}
		if closest < 1-1e-4 { // the grid of a BLT is wider by 2e-5
			t.Errorf("%s: no row moves the run by more than %g of the sensitivity", matrix, closest)
		}
	}
}

// Every epoch has the same lots in the same order, and every row is in one of them.
func TestFixedOrder(t *testing.T) {
	const rows = 23
	for _, lots := range []int{1, 5, rows} {
		c := testConfiguration(rows, rows/lots)
		c.stepsPerEpoch = int64(lots)
		r := newLinear(t, dataset.Generated(rows, 1), Options{Matrix: Tree}, c, 0)
		if r.expected != float64(rows)/float64(lots) {
			t.Errorf("%d lots: sums divided by %g", lots, r.expected)
		}
		var first [][]int32
		for epoch := range 3 {
			var all []int32
			for i := range lots {
				r.step++
				lot := slices.Clone(r.lot(i))
				if epoch == 0 {
					first = append(first, lot)
				} else if !slices.Equal(first[i], lot) {
					t.Errorf("epoch %d, lot %d: %v, not %v", epoch, i, lot, first[i])
				}
				all = append(all, lot...)
			}
			slices.Sort(all)
			if all = slices.Compact(all); len(all) != rows {
				t.Errorf("%d lots: %d rows in epoch %d", lots, len(all), epoch)
			}
		}
	}
}

// The mechanism is one DP-FTRL run of ⌊n/m⌋ steps an epoch, and calibration inverts its ε.
func TestMechanismInFixedOrder(t *testing.T) {
	for _, matrix := range []Matrix{BLT, Tree} {
		made := makeTrainer(t, Options{Matrix: matrix})
		lots := made.Parts().Train.Rows / 16
		family := func(sigma float64) privacy.Mechanism {
			m, err := made.Mechanism(parameters(trainer.Parameters{ParameterNoiseMultiplier: sigma}))
			require.NoError(t, err)
			return m
		}
		want := privacy.DPFTRL{
			Sensitivity: matrix.noiseMatrix().Sensitivity(3*lots, lots, 3), NoiseMultiplier: 7, Neighbours: privacy.AddRemove,
		}
		if diff := cmp.Diff(privacy.Mechanism(want), family(7)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", matrix, diff)
		}
		sigma, _, err := privacy.CalibrateNoise(privacy.Exact{UpperOnly: true}, family, 1, 2, 1e-5)
		require.NoError(t, err)
		mu := want.Sensitivity / sigma
		delta := distuv.UnitNormal.CDF(mu/2-2/mu) - math.Exp(2)*distuv.UnitNormal.CDF(-mu/2-2/mu)
		if !(delta <= 1e-5*(1+1e-9) && delta > 0.999e-5) {
			t.Errorf("%s: σ = %g has δ = %g at ε = 2", matrix, sigma, delta)
		}
		for name, changes := range map[string]trainer.Parameters{
			"bands": {ParameterBands: int64(4)}, "mechanism": {ParameterMechanism: Name}, "epochs": {ParameterEpochs: int64(3000)},
			"endless": {ParameterEpochs: int64(math.MaxInt64)}, "no noise": {ParameterNoiseMultiplier: 0.0},
		} {
			if _, err := made.Mechanism(parameters(changes)); err == nil {
				t.Errorf("%s, %s: no error", matrix, name)
			}
		}
	}
	if _, err := New(makeTrainer(t, Options{}).Parts(), Options{Matrix: "toeplitz"}); err == nil || !strings.Contains(err.Error(), `matrix "toeplitz" is unknown, want banded, blt or tree`) {
		t.Errorf("error %v", err)
	}
	for _, o := range []Options{{Sampling: FixedOrder}, {Matrix: Tree, Sampling: Poisson}, {Matrix: Banded, Sampling: FixedOrder}, {Matrix: BLT, Adjacency: ReplaceOne}} {
		if _, err := o.normal(); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// A shorter run is the beginning of a longer one, and noise beyond the arithmetic is refused.
func TestTrainInFixedOrder(t *testing.T) {
	for _, matrix := range []Matrix{BLT, Tree} {
		made := makeTrainer(t, Options{Matrix: matrix})
		run := trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(3))}
		longer := metrics(t, made, run)
		run.Parameters[ParameterEpochs] = int64(1)
		if diff := cmp.Diff(longer[:1], metrics(t, made, run)); diff != "" {
			t.Errorf("%s, one epoch of three (-longer +shorter):\n%s", matrix, diff)
		}
		run.Parameters[ParameterNoiseMultiplier] = 1e9
		if _, err := made.Train(t.Context(), run, nil); err == nil || !strings.Contains(err.Error(), ParameterNoiseMultiplier) {
			t.Errorf("%s: error %v", matrix, err)
		}
	}
}

// The noise of a network does not depend on the number of workers.
func TestNetworkInFixedOrder(t *testing.T) {
	c := testConfiguration(60, 10)
	c.stepsPerEpoch = 6
	for _, matrix := range []Matrix{BLT, Tree} {
		var weights [][]float32
		for _, workers := range []int{1, 3} {
			pool := parallel.New(workers)
			defer pool.Close()
			r := newNetwork(t, digits(60, 900, 1), Options{Matrix: matrix, Model: model.Spec{Kind: model.SoftmaxRegression}}, c, 0, pool)
			if !r.Epoch(t.Context()) || !r.Finite() {
				t.Fatal("the epoch was not finished")
			}
			weights = append(weights, r.model.Weights())
		}
		if !slices.Equal(weights[0], weights[1]) {
			t.Errorf("%s: weights depend on the number of workers", matrix)
		}
	}
}
