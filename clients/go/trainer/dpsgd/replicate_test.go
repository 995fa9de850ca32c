package dpsgd

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/dpareto/dpareto/clients/go/dataset"
)

// examples returns two datasets: one of ones only, one of any values.
func examples(rows int) map[string]*dataset.Dataset {
	ones := dataset.Generated(rows, 1)
	values := *ones
	values.Values = make([]float32, len(ones.Indices))
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range values.Values {
		values.Values[i] = float32(rng.NormFloat64())
	}
	return map[string]*dataset.Dataset{"ones": ones, "values": &values}
}

// dense returns row i as a dense vector with a 1 for the bias at the end.
func dense(d *dataset.Dataset, i int) []float64 {
	x := make([]float64, d.Dim+1)
	x[d.Dim] = 1
	indices, values := d.Row(i)
	for k, index := range indices {
		x[index] = 1
		if values != nil {
			x[index] = float64(values[k])
		}
	}
	return x
}

// naiveLoss is log(1 + e^(−yz)) of row i.
func naiveLoss(d *dataset.Dataset, weights []float64, i int) float64 {
	return math.Log1p(math.Exp(-float64(d.Labels[i]) * floats.Dot(weights, dense(d, i))))
}

// naiveGradient is the gradient of the loss of row i, (p − t)·(x, 1) with the
// target t in {0, 1}.
func naiveGradient(d *dataset.Dataset, weights []float64, i int) []float64 {
	g := dense(d, i)
	p := 1 / (1 + math.Exp(-floats.Dot(weights, g)))
	floats.Scale(p-(float64(d.Labels[i])+1)/2, g)
	return g
}

func randomWeights(dim int, seed uint64) []float64 {
	rng := rand.New(rand.NewPCG(seed, 9))
	weights := make([]float64, dim+1)
	for i := range weights {
		weights[i] = rng.NormFloat64()
	}
	return weights
}

func testConfiguration(lotSize int) configuration {
	return configuration{
		epochs: 1, stepsPerEpoch: 1, lotSize: lotSize,
		learningRate: 1, clippingNorm: 1, noiseMultiplier: 1,
	}
}

func TestGradientAgainstFiniteDifferences(t *testing.T) {
	for name, d := range examples(20) {
		c := testConfiguration(d.Rows)
		c.clippingNorm = 1e9
		r := newReplicate(d, c, 1, 0)
		r.weights = randomWeights(d.Dim, 1)
		r.accumulate(r.order)

		want := fd.Gradient(nil, func(w []float64) float64 {
			var sum float64
			for i := range d.Rows {
				sum += naiveLoss(d, w, i)
			}
			return sum
		}, r.weights, &fd.Settings{Formula: fd.Central})
		if !floats.EqualApprox(r.gradient, want, 1e-7) {
			t.Errorf("%s: gradient differs from finite differences by %v", name, floats.Distance(r.gradient, want, math.Inf(1)))
		}
	}
}

func TestClippedSumAgainstNaive(t *testing.T) {
	for name, d := range examples(150) {
		for _, clippingNorm := range []float64{0.01, 0.5, 1, 2, 100} {
			c := testConfiguration(100)
			c.clippingNorm = clippingNorm
			r := newReplicate(d, c, 3, 0)
			r.weights = randomWeights(d.Dim, 2)
			r.drawLot()
			lot := r.order[:c.lotSize]
			r.accumulate(lot)

			want := make([]float64, d.Dim+1)
			clipped := 0
			for _, row := range lot {
				g := naiveGradient(d, r.weights, int(row))
				if norm := floats.Norm(g, 2); norm > clippingNorm {
					floats.Scale(clippingNorm/norm, g)
					clipped++
				}
				floats.Add(want, g)
			}
			if !floats.EqualApprox(r.gradient, want, 1e-12) {
				t.Errorf("%s, L = %v: sum of clipped gradients differs by %v", name, clippingNorm,
					floats.Distance(r.gradient, want, math.Inf(1)))
			}
			if clippingNorm == 1 && (clipped == 0 || clipped == len(lot)) {
				t.Errorf("%s: %d of %d gradients are clipped at 1, want some", name, clipped, len(lot))
			}
		}
	}
}

// No example moves the sum by more than L, whatever the weights.
func TestClippedGradientNorm(t *testing.T) {
	for name, d := range examples(100) {
		c := testConfiguration(1)
		c.clippingNorm = 0.7
		r := newReplicate(d, c, 1, 0)
		for _, scale := range []float64{0, 1, 1e3, 1e150} {
			r.weights = randomWeights(d.Dim, 3)
			floats.Scale(scale, r.weights)
			for row := range d.Rows {
				clear(r.gradient)
				r.accumulate([]int32{int32(row)})
				if norm := floats.Norm(r.gradient, 2); norm > 0.7*(1+1e-12) {
					t.Fatalf("%s, weights of scale %v: row %d has norm %v, want at most 0.7", name, scale, row, norm)
				}
			}
		}
	}
}

// Full batches without noise are plain gradient descent.
func TestUpdateWithoutNoise(t *testing.T) {
	for name, d := range examples(60) {
		c := testConfiguration(d.Rows)
		c.learningRate, c.clippingNorm, c.noiseMultiplier, c.stepsPerEpoch = 0.3, 1e9, 0, 5
		r := newReplicate(d, c, 1, 0)
		if !r.epoch(t.Context()) {
			t.Fatal("the epoch was not finished")
		}
		want := make([]float64, d.Dim+1)
		for range c.stepsPerEpoch {
			g := make([]float64, d.Dim+1)
			for i := range d.Rows {
				floats.Add(g, naiveGradient(d, want, i))
			}
			floats.AddScaled(want, -c.learningRate/float64(d.Rows), g)
		}
		if !floats.EqualApprox(r.weights, want, 1e-12) {
			t.Errorf("%s: weights differ by %v", name, floats.Distance(r.weights, want, math.Inf(1)))
		}
	}
}

// The first step with noise, less the same step without, is −η (2L/m) σ times
// standard normal numbers.
func TestNoiseDistribution(t *testing.T) {
	d := dataset.Generated(100, 1)
	noisy := configuration{
		epochs: 1, stepsPerEpoch: 1, lotSize: 20,
		learningRate: 0.5, clippingNorm: 1.5, noiseMultiplier: 3,
	}
	silent := noisy
	silent.noiseMultiplier = 0
	deviation := 0.5 * (2 * 1.5 / 20) * 3
	const runs = 1000
	var draws []float64
	var byCoordinate [2][]float64 // of the first and the bias, over the runs
	for run := range runs {
		with, without := newReplicate(d, noisy, 5, run), newReplicate(d, silent, 5, run)
		with.epoch(t.Context())
		without.epoch(t.Context())
		for j := range with.weights {
			draws = append(draws, (without.weights[j]-with.weights[j])/deviation)
		}
		n := len(draws)
		byCoordinate[0] = append(byCoordinate[0], draws[n-len(with.weights)])
		byCoordinate[1] = append(byCoordinate[1], draws[n-1])
	}

	// Four standard errors of each moment of n standard normal numbers.
	n := float64(len(draws))
	mean, variance := stat.MeanVariance(draws, nil)
	for _, tt := range []struct {
		name                     string
		got, want, standardError float64
	}{
		{"mean", mean, 0, math.Sqrt(1 / n)},
		{"variance", variance, 1, math.Sqrt(2 / n)},
		{"skewness", stat.Skew(draws, nil), 0, math.Sqrt(6 / n)},
		{"excess kurtosis", stat.ExKurtosis(draws, nil), 0, math.Sqrt(24 / n)},
		{"lag-one correlation", stat.Correlation(draws[1:], draws[:len(draws)-1], nil), 0, math.Sqrt(1 / n)},
		{"correlation of coordinates", stat.Correlation(byCoordinate[0], byCoordinate[1], nil), 0, math.Sqrt(1.0 / runs)},
	} {
		if math.Abs(tt.got-tt.want) > 4*tt.standardError {
			t.Errorf("%s %v, want %v ± %v", tt.name, tt.got, tt.want, tt.standardError)
		}
	}

	// Chi-square over 50 bins of equal probability, and the tails by themselves.
	const bins = 50
	var counts [bins]float64
	beyond := 0.0
	for _, x := range draws {
		u := distuv.UnitNormal.CDF(x)
		counts[min(int(u*bins), bins-1)]++
		if math.Abs(x) > 3.5 {
			beyond++
		}
	}
	expected := make([]float64, bins)
	for i := range expected {
		expected[i] = n / bins
	}
	statistic := stat.ChiSquare(counts[:], expected)
	if p := 1 - (distuv.ChiSquared{K: bins - 1}).CDF(statistic); p < 1e-4 {
		t.Errorf("chi-square %v with %d degrees of freedom, p = %v", statistic, bins-1, p)
	}
	if want := 2 * distuv.UnitNormal.Survival(3.5) * n; math.Abs(beyond-want) > 4*math.Sqrt(want) {
		t.Errorf("%v of %v draws are beyond 3.5, want %v", beyond, n, want)
	}
}

// Lots are uniform over the subsets of their size, and independent.
func TestLots(t *testing.T) {
	const rows, size, lots = 12, 5, 60000
	r := newReplicate(dataset.Generated(rows, 1), testConfiguration(size), 1, 0)
	subsets := make(map[uint16]float64)
	var overlap float64
	var last uint16
	for range lots {
		r.drawLot()
		var subset uint16
		for _, row := range r.order[:size] {
			subset |= 1 << row
		}
		if bits := onesCount(subset); bits != size {
			t.Fatalf("lot %v has %d different rows, want %d", r.order[:size], bits, size)
		}
		subsets[subset]++
		overlap += float64(onesCount(subset & last))
		last = subset
	}
	permutation := slices.Clone(r.order)
	slices.Sort(permutation)
	for i, row := range permutation {
		if int(row) != i {
			t.Fatalf("the order is no permutation: %v", r.order)
		}
	}

	const possible = 792 // 12 over 5
	counts, expected := make([]float64, possible), make([]float64, possible)
	i := 0
	for _, count := range subsets {
		counts[i] = count
		i++
	}
	for i := range expected {
		expected[i] = lots / float64(possible)
	}
	statistic := stat.ChiSquare(counts, expected)
	if p := 1 - (distuv.ChiSquared{K: possible - 1}).CDF(statistic); p < 1e-4 {
		t.Errorf("%d subsets, chi-square %v with %d degrees of freedom, p = %v", len(subsets), statistic, possible-1, p)
	}

	// The overlap of two independent lots is hypergeometric.
	mean := float64(size*size) / rows
	variance := mean * (rows - size) / rows * (rows - size) / (rows - 1)
	if got := overlap / lots; math.Abs(got-mean) > 4*math.Sqrt(variance/lots) {
		t.Errorf("consecutive lots share %v rows on average, want %v ± %v", got, mean, math.Sqrt(variance/lots))
	}
}

func onesCount(subset uint16) int {
	n := 0
	for ; subset != 0; subset &= subset - 1 {
		n++
	}
	return n
}

func TestEvaluateAgainstNaive(t *testing.T) {
	for name, d := range examples(2500) {
		weights := randomWeights(d.Dim, 4)
		errorRate, loss := evaluate(d, weights)
		var wrong, sum float64
		for i := range d.Rows {
			sum += naiveLoss(d, weights, i)
			if (floats.Dot(weights, dense(d, i)) > 0) != (d.Labels[i] > 0) {
				wrong++
			}
		}
		if want := wrong / float64(d.Rows); errorRate != want {
			t.Errorf("%s: error %v, want %v", name, errorRate, want)
		}
		if want := sum / float64(d.Rows); math.Abs(loss-want) > 1e-12*want {
			t.Errorf("%s: loss %v, want %v", name, loss, want)
		}

		// All weights zero: everything is on the negative side, at log 2 a row.
		errorRate, loss = evaluate(d, make([]float64, d.Dim+1))
		if want := float64(d.Positives()) / float64(d.Rows); errorRate != want || math.Abs(loss-math.Ln2) > 1e-13 {
			t.Errorf("%s: zero weights: error %v and loss %v, want %v and log 2", name, errorRate, loss, want)
		}

		// Far from the boundary the loss is the distance.
		floats.Scale(1e6, weights)
		if _, far := evaluate(d, weights); math.IsInf(far, 0) || math.IsNaN(far) || far < 1e5 {
			t.Errorf("%s: loss %v with large weights", name, far)
		}
	}
}

func TestEpochDoesNotAllocate(t *testing.T) {
	c := testConfiguration(10)
	c.stepsPerEpoch = 20
	r := newReplicate(dataset.Generated(200, 1), c, 1, 0)
	if n := testing.AllocsPerRun(10, func() { r.epoch(t.Context()) }); n != 0 {
		t.Errorf("%v allocations an epoch, want 0", n)
	}
}
