package dpsgd

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/gonum/mat"

	"github.com/dpareto/dpareto/clients/go/trainer"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

// newNoise returns correlated noise of a number of parameters.
func newNoise(t *testing.T, bands, parameters int) *bandedNoise {
	t.Helper()
	column, err := columnOf(t.Context(), bands)
	require.NoError(t, err)
	return newBandedNoise(column, parameters)
}

// inverse returns C⁻¹ of the rounded coefficients, for c₀ = 1.
func (n *bandedNoise) inverse(t *testing.T, steps int) *mat.Dense {
	t.Helper()
	c := mat.NewDense(steps, steps, nil)
	for i := range steps {
		c.Set(i, i, 1)
		for j, a := range n.coefficients {
			if i > j {
				c.Set(i, i-j-1, float64(a)/(1<<coefficientBits))
			}
		}
	}
	var inverse mat.Dense
	require.NoError(t, inverse.Inverse(c))
	return &inverse
}

// The noise of the steps has the covariance C⁻¹C⁻ᵀ. Its sum over the steps is much smaller than with independent noise.
func TestCovarianceOfCorrelatedNoise(t *testing.T) {
	const bands, steps, parameters = 4, 11, 40_000
	n := newNoise(t, bands, parameters)
	inverse := n.inverse(t, steps)
	var want mat.Dense
	want.Mul(inverse, inverse.T())
	total := checkCovariance(t, n, parameters, 1<<coefficientBits, &want)
	if square := n.norm / (1 << coefficientBits); total*square*square > 0.5*steps {
		t.Errorf("variance of the sum %g, of independent noise %d", total*square*square, steps)
	}
}

// checkCovariance compares the covariance of the steps' noise, for each parameter and in blocks of them, with one whose
// unit is a deviation of 2⁴⁰ over scale. It returns the sum of the entries.
func checkCovariance(t *testing.T, n correlatedNoise, parameters int, scale float64, want *mat.Dense) (total float64) {
	t.Helper()
	const block = 1000
	steps, _ := want.Dims()
	s := random.New(1, 0, 0, 0)
	rows := make([][]float64, steps)
	for i := range rows {
		sum := make([]int64, parameters)
		for first := 0; first < parameters; first += block {
			n.addTo(sum[first:first+block], first, uint64(i+1), s)
		}
		for _, w := range sum {
			rows[i] = append(rows[i], float64(w)*scale/random.NoiseScale)
		}
	}
	for i := range steps {
		for j := range steps {
			got := mat.Dot(mat.NewVecDense(parameters, rows[i]), mat.NewVecDense(parameters, rows[j])) / float64(parameters)
			deviation := math.Sqrt((want.At(i, i)*want.At(j, j) + want.At(i, j)*want.At(i, j)) / float64(parameters))
			if math.Abs(got-want.At(i, j)) > 4.5*deviation {
				t.Errorf("covariance of steps %d and %d is %g, want %g ± %g", i, j, got, want.At(i, j), deviation)
			}
			total += want.At(i, j)
		}
	}
	return total
}

// What leaves the mechanism is computed from the rows of C·G + Z, to the last bit.
func TestCorrelatedNoiseIsExact(t *testing.T) {
	const bands, steps, parameters = 5, 40, 30
	n := newNoise(t, bands, parameters)
	rng := rand.New(rand.NewPCG(1, 5))
	a := append([]int64{1 << coefficientBits}, n.coefficients...)
	noise, same := random.New(2, 0, 0, 0), random.New(2, 0, 0, 0)
	var gradients, released [][]int64
	for t0 := range steps {
		g := make([]int64, parameters)
		for i := range g {
			g[i] = rng.Int64N(1<<44) - 1<<43
		}
		gradients = append(gradients, g)
		x := slices.Clone(g)
		n.addTo(x, 0, uint64(t0+1), noise)

		z := make([]int64, parameters)
		random.AddNoise(z, same)
		want := make([]int64, parameters)
		for i := range want {
			y := big.NewInt(z[i]) // the row of C·G + Z
			for j := range min(len(a), t0+1) {
				y.Add(y, new(big.Int).Mul(big.NewInt(a[j]), big.NewInt(gradients[t0-j][i])))
			}
			for j := 1; j < min(len(a), t0+1); j++ {
				y.Sub(y, new(big.Int).Mul(big.NewInt(a[j]), big.NewInt(released[t0-j][i])))
			}
			y.Add(y, big.NewInt(1<<(coefficientBits-1)))
			want[i] = y.Rsh(y, coefficientBits).Int64()
		}
		if diff := cmp.Diff(want, x); diff != "" {
			t.Fatalf("step %d (-computed from released rows +released):\n%s", t0, diff)
		}
		released = append(released, x)
	}
}

// Of every row of a small table: the rows of C·G that it moves in one round are no others than those of its group's
// step and the bands − 1 after it, which no other round of it moves, and by at most 1/σ standard deviations.
func TestSensitivityOfCorrelatedNoise(t *testing.T) {
	const rows, steps = 11, 14
	d := dataset.Generated(rows, 1)
	for _, bands := range []int{2, 3, 5} {
		c := testConfiguration(rows, 2)
		c.clippingNorm, c.noiseMultiplier, c.bands = 0.4, 1.7, bands
		r := newLinear(t, d, Options{Matrix: Banded}, c, 0)
		a := append([]int64{1 << coefficientBits}, r.correlated.(*bandedNoise).coefficients...)
		if len(a) > bands {
			t.Fatalf("%d coefficients for %d groups", len(a), bands)
		}
		closest := 0.0
		for row := range int32(rows) {
			moved := make(map[int]bool)
			for step := range steps {
				if !slices.Contains(r.cycle.groups[step%bands], row) {
					continue
				}
				r.accumulate([]int32{row})
				square := 0.0
				for j := range min(len(a), steps-step) {
					if moved[step+j] {
						t.Errorf("row %d moves step %d in two rounds", row, step+j)
					}
					moved[step+j] = true
					for _, g := range r.model.Sum() {
						square += float64(a[j]) * float64(g) * float64(a[j]) * float64(g)
					}
				}
				clear(r.model.Sum())
				shift := math.Sqrt(square) / random.NoiseScale * c.noiseMultiplier
				closest = max(closest, shift)
				if shift > 1 {
					t.Errorf("%d bands: row %d moves a round by %.17g of the sensitivity", bands, row, shift)
				}
			}
		}
		if closest < 1-1e-6 {
			t.Errorf("%d bands: no row moves a round by more than %g of the sensitivity", bands, closest)
		}
	}
}

// A step draws from its group alone, with the stated probability; groups divide the rows into equal parts.
func TestCyclicLots(t *testing.T) {
	const rows, size, bands, cycles = 23, 4, 5, 8000
	c := testConfiguration(rows, size)
	c.bands = bands
	r := newLinear(t, dataset.Generated(rows, 1), Options{Matrix: Banded}, c, 0)
	var all []int32
	for _, group := range r.cycle.groups {
		if len(group) != rows/bands && len(group) != rows/bands+1 || !slices.IsSorted(group) {
			t.Errorf("group %v", group)
		}
		all = append(all, group...)
	}
	slices.Sort(all)
	if compacted := slices.Compact(slices.Clone(all)); len(all) != rows || len(compacted) != rows || all[0] != 0 || all[rows-1] != rows-1 {
		t.Errorf("groups hold %v", all)
	}
	if other := newLinear(t, dataset.Generated(rows, 1), Options{Matrix: Banded}, c, 1); slices.EqualFunc(other.cycle.groups, r.cycle.groups, slices.Equal) {
		t.Error("two replicates have the same groups")
	}
	counts := make([]float64, rows)
	for range cycles {
		for _, group := range r.cycle.groups {
			r.step++
			for _, row := range r.lot(0) {
				if !slices.Contains(group, row) {
					t.Fatalf("step %d draws row %d, not of its group %v", r.step, row, group)
				}
				counts[row]++
			}
		}
	}
	const q = float64(size*bands) / rows
	for row, count := range counts {
		if math.Abs(count-cycles*q) > 4.5*math.Sqrt(cycles*q*(1-q)) {
			t.Errorf("row %d is in %v lots of %d, want %v", row, count, cycles, cycles*q)
		}
	}
}

// With one band, or where the mechanism is DP-SGD, a run is DP-SGD on Poisson lots.
func TestOneBandIsDPSGD(t *testing.T) {
	parts := &dataset.Parts{Train: dataset.Generated(500, 1), Test: dataset.Generated(300, 2)}
	made := func(o Options) *Trainer {
		made, err := New(parts, o)
		require.NoError(t, err)
		return made
	}
	run := trainer.Run{Parameters: parameters(nil), Replicates: 2, Seed: new(uint64(3))}
	want := metrics(t, made(Options{Sampling: Poisson}), run)
	mf := made(Options{Matrix: Banded})
	for _, changes := range []trainer.Parameters{{ParameterBands: int64(1)}, {ParameterMechanism: Name}} {
		run.Parameters = parameters(changes)
		if diff := cmp.Diff(want, metrics(t, mf, run)); diff != "" {
			t.Errorf("%v (-DP-SGD +DP-MF):\n%s", changes, diff)
		}
	}
	run.Parameters = parameters(trainer.Parameters{ParameterBands: int64(4), ParameterMechanism: NameMF})
	if cmp.Equal(want, metrics(t, mf, run)) {
		t.Error("four bands change nothing")
	}
	// A shorter run is the beginning of a longer one.
	longer := metrics(t, mf, run)
	run.Parameters[ParameterEpochs] = int64(1)
	if diff := cmp.Diff(longer[:1], metrics(t, mf, run)); diff != "" {
		t.Errorf("one epoch of three (-longer +shorter):\n%s", diff)
	}
}

// The mechanism is what the accountant accounts: rounds with b times the probability of a step.
func TestCorrelatedMechanism(t *testing.T) {
	made, err := New(&dataset.Parts{Train: dataset.Generated(500, 1), Test: dataset.Generated(300, 2)}, Options{Matrix: Banded})
	require.NoError(t, err)
	got, err := made.Mechanism(parameters(trainer.Parameters{ParameterBands: int64(4)})) // 3 epochs of 31 steps
	want := privacy.Composition{{Mechanism: privacy.BandMF{
		Bands: 4, SamplingProbability: 0.128, NoiseMultiplier: 1, Neighbours: privacy.AddRemove, PublicSize: true,
	}, Count: 24}}
	if diff := cmp.Diff(privacy.Mechanism(want), got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, changes := range map[string]trainer.Parameters{
		"no bands": nil, "none": {ParameterBands: int64(0)}, "more than lots": {ParameterBands: int64(32)},
		"bands of DP-SGD": {ParameterMechanism: Name, ParameterBands: int64(2)}, "mechanism": {ParameterMechanism: "dp-ftrl", ParameterBands: int64(2)},
	} {
		if _, err := made.Mechanism(parameters(changes)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// A network trains with correlated noise in several blocks.
func TestCorrelatedNetwork(t *testing.T) {
	c := testConfiguration(60, 10)
	c.bands, c.stepsPerEpoch = 3, 6
	o := Options{Matrix: Banded, Model: model.Spec{Kind: model.SoftmaxRegression}}
	var weights [][]float32
	for _, workers := range []int{1, 3} {
		pool := parallel.New(workers)
		defer pool.Close()
		r := newNetwork(t, digits(60, 900, 1), o, c, 0, pool) // 9,010 parameters: three blocks
		if !r.Epoch(t.Context()) || !r.Finite() {
			t.Fatal("the epoch was not finished")
		}
		weights = append(weights, r.model.Weights())
	}
	if !slices.Equal(weights[0], weights[1]) {
		t.Error("weights depend on the number of workers")
	}
}
