package dpsgd

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/experiment"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/model"
	"github.com/dpareto/dpareto/internal/require"
)

func testConfiguration(rows, lotSize int) configuration {
	return configuration{
		rows: rows, epochs: 1, stepsPerEpoch: 1, lotSize: lotSize,
		learningRate: 1, clippingNorm: 1, noiseMultiplier: 1, bands: 1,
	}
}

// digits returns made-up dense rows of ten classes, each around its own centre.
func digits(rows, dim int, seed uint64) *dataset.Dataset {
	d := &dataset.Dataset{
		Name: "digits", Generated: true, Rows: rows, Dim: dim, Classes: 10,
		Dense: make([]float32, rows*dim), Labels: make([]float32, rows),
	}
	centres, rng := rand.New(rand.NewPCG(1, 1)), rand.New(rand.NewPCG(seed, 2))
	centre := make([]float32, 10*dim)
	for i := range centre {
		centre[i] = float32(centres.NormFloat64())
	}
	for i := range rows {
		class := rng.IntN(10)
		d.Labels[i] = float32(class)
		for k := range dim {
			d.Dense[i*dim+k] = (centre[class*dim+k] + float32(2*rng.NormFloat64())) / 10
		}
	}
	return d
}

func prepare(t testing.TB, d *dataset.Dataset) *model.Examples {
	t.Helper()
	examples, err := model.NewExamples(d)
	require.NoError(t, err)
	return examples
}

// newLinear returns replicate number index of a logistic regression.
func newLinear(t testing.TB, d *dataset.Dataset, o Options, c configuration, index int) *replicate[float64] {
	t.Helper()
	o, err := o.normal()
	require.NoError(t, err)
	c.column, err = columnOf(t.Context(), c.bands)
	require.NoError(t, err)
	r, err := newReplicate(model.NewLinear(o.Model, prepare(t, d)), o, c, new(uint64(5)), index, parallel.New(1))
	require.NoError(t, err)
	return r
}

// newNetwork returns replicate number index of a network.
func newNetwork(t testing.TB, d *dataset.Dataset, o Options, c configuration, index int, workers model.Workers) *replicate[float32] {
	t.Helper()
	o, err := o.normal()
	require.NoError(t, err)
	c.column, err = columnOf(t.Context(), c.bands)
	require.NoError(t, err)
	r, err := newReplicate(model.NewNetwork(o.Model, prepare(t, d), workers), o, c, new(uint64(5)), index, workers)
	require.NoError(t, err)
	return r
}

// naiveGradient is the gradient of the log loss of row i, (p − t)·(x, 1) with the
// target t in {0, 1}.
func naiveGradient(d *dataset.Dataset, weights []float64, i int) []float64 {
	g := make([]float64, d.Dim+1)
	g[d.Dim] = 1
	indices, _ := d.Row(i)
	for _, index := range indices {
		g[index] = 1
	}
	p := 1 / (1 + math.Exp(-floats.Dot(weights, g)))
	floats.Scale(p-(float64(d.Labels[i])+1)/2, g)
	return g
}

// Lots of all rows, without noise, are gradient descent, and Adam as in the paper,
// on the mean of the clipped gradients.
func TestUpdateAgainstNaive(t *testing.T) {
	d := dataset.Generated(60, 1)
	c := testConfiguration(d.Rows, d.Rows)
	c.learningRate, c.clippingNorm, c.noiseMultiplier, c.stepsPerEpoch = 0.3, 0.8, 0, 5
	mean := func(w []float64) []float64 {
		g := make([]float64, len(w))
		for i := range d.Rows {
			gradient := naiveGradient(d, w, i)
			floats.AddScaled(g, min(1, c.clippingNorm/floats.Norm(gradient, 2))/float64(d.Rows), gradient)
		}
		return g
	}
	want := map[Optimizer][]float64{SGD: make([]float64, d.Dim+1), Adam: make([]float64, d.Dim+1)}
	mu, nu := make([]float64, d.Dim+1), make([]float64, d.Dim+1)
	for i := 1; i <= 5; i++ {
		floats.AddScaled(want[SGD], -c.learningRate, mean(want[SGD]))
		for j, g := range mean(want[Adam]) {
			mu[j] = 0.9*mu[j] + 0.1*g
			nu[j] = 0.999*nu[j] + 0.001*g*g
			unbiased := mu[j] / (1 - math.Pow(0.9, float64(i)))
			square := nu[j] / (1 - math.Pow(0.999, float64(i)))
			want[Adam][j] -= c.learningRate * unbiased / (math.Sqrt(square) + 1e-8)
		}
	}
	for optimizer, weights := range want {
		r := newLinear(t, d, Options{Optimizer: optimizer}, c, 0)
		if !r.Epoch(t.Context()) {
			t.Fatal("the epoch was not finished")
		}
		if got := r.model.Weights(); !floats.EqualApprox(got, weights, 1e-12) {
			t.Errorf("%s: weights differ by %v", optimizer, floats.Distance(got, weights, math.Inf(1)))
		}
	}
}

// The first step with noise, less the same step without, is −η times normal numbers
// of deviation (2L/m)σ, or (L/m)σ with Poisson sampling and random allocation under add-remove.
func TestNoiseDistribution(t *testing.T) {
	noisy := testConfiguration(100, 20)
	noisy.learningRate, noisy.clippingNorm, noisy.noiseMultiplier = 0.5, 1.5, 3
	silent := noisy
	silent.noiseMultiplier = 0
	weights := map[string]func(o Options, c configuration, index int) []float64{
		"linear": func(o Options, c configuration, index int) []float64 {
			r := newLinear(t, dataset.Generated(100, 1), o, c, index)
			r.Epoch(t.Context())
			return r.model.Weights()
		},
		"network": func(o Options, c configuration, index int) []float64 {
			o.Model.Kind = model.SoftmaxRegression
			r := newNetwork(t, digits(100, 500, 1), o, c, index, parallel.New(1)) // 5,010 parameters: two blocks
			r.Epoch(t.Context())
			var w []float64
			for _, v := range r.model.Weights() {
				w = append(w, float64(v))
			}
			return w
		},
	}
	for name, chosen := range map[string]Options{
		"2L/m": {}, "L/m": {Sampling: Poisson}, "L/m, allocated": {Sampling: RandomAllocation},
		"2L/m, allocated": {Sampling: RandomAllocation, Adjacency: ReplaceOne},
	} {
		deviation := 0.5 * (1.5 / 20) * 3
		if strings.HasPrefix(name, "2") {
			deviation *= 2
		}
		if chosen.Sampling == RandomAllocation { // one step of all 100 rows
			deviation *= 20.0 / 100
		}
		for kind, train := range weights {
			t.Run(kind+" "+name, func(t *testing.T) {
				runs := map[string]int{"linear": 1000, "network": 40}[kind]
				var draws []float64
				var first, last []float64 // coordinates, over the runs
				for run := range runs {
					o := chosen
					without := train(o, silent, run)
					for j, w := range train(o, noisy, run) {
						draws = append(draws, (without[j]-w)/deviation)
					}
					first = append(first, draws[len(draws)-len(without)])
					last = append(last, draws[len(draws)-1])
				}
				checkNormal(t, draws)
				if c := stat.Correlation(first, last, nil); math.Abs(c) > 4/math.Sqrt(float64(runs)) {
					t.Errorf("the first and the last coordinate have correlation %v", c)
				}
			})
		}
	}
}

// checkNormal checks moments within four standard errors. That the numbers are
// normal is a matter of package random.
func checkNormal(t *testing.T, draws []float64) {
	t.Helper()
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
	} {
		if math.Abs(tt.got-tt.want) > 4*tt.standardError {
			t.Errorf("%s %v, want %v ± %v", tt.name, tt.got, tt.want, tt.standardError)
		}
	}
	if slices.Max(draws) == slices.Min(draws) {
		t.Error("all draws are equal")
	}
}

// Every step has its own noise, every replicate has, and every block of parameters.
func TestNoiseIsNotRepeated(t *testing.T) {
	d := dataset.Generated(50, 1)
	c := testConfiguration(50, 5)
	seen := make(map[int64]bool)
	const replicates, steps = 4, 25
	for index := range replicates {
		r := newLinear(t, d, Options{}, c, index)
		for range steps {
			r.step++
			sum := r.noisy(0)
			for _, g := range sum {
				seen[g] = true
			}
			clear(sum)
		}
	}
	if want := replicates * steps * (d.Dim + 1); len(seen) != want {
		t.Errorf("%d different numbers, want %d", len(seen), want)
	}

	wide := newNetwork(t, digits(50, 900, 1), Options{Model: model.Spec{Kind: model.SoftmaxRegression}}, c, 0, parallel.New(1))
	first, second := wide.noisy(0), wide.noisy(1)
	for i := range second {
		if first[i] == second[i] {
			t.Errorf("number %d is equal in two blocks", i)
		}
	}
}

// Lots of fixed size are drawn afresh in every step: two share as many rows as
// independent ones do, the overlap being hypergeometric. Those of Poisson sampling
// have binomial sizes.
func TestLots(t *testing.T) {
	const rows, size, lots = 12, 5, 20_000
	d := dataset.Generated(rows, 1)
	r := newLinear(t, d, Options{}, testConfiguration(rows, size), 0)
	var overlap float64
	var last []int32
	for range lots {
		lot := r.lot(0)
		if len(lot) != size {
			t.Fatalf("lot %v, want %d rows", lot, size)
		}
		for _, row := range lot {
			if slices.Contains(last, row) {
				overlap++
			}
		}
		last = slices.Clone(lot)
	}
	mean := float64(size*size) / rows
	variance := mean * (rows - size) / rows * (rows - size) / (rows - 1)
	if got := overlap / lots; math.Abs(got-mean) > 4*math.Sqrt(variance/lots) {
		t.Errorf("consecutive lots share %v rows on average, want %v ± %v", got, mean, math.Sqrt(variance/lots))
	}

	r = newLinear(t, d, Options{Sampling: Poisson}, testConfiguration(rows, size), 0)
	counts := make([]float64, rows)
	var sizes []float64
	for range lots {
		lot := r.lot(0)
		sizes = append(sizes, float64(len(lot)))
		for _, row := range lot {
			counts[row]++
		}
	}
	const q = float64(size) / rows
	gotMean, gotVariance := stat.MeanVariance(sizes, nil)
	if math.Abs(gotMean-size) > 4*math.Sqrt(rows*q*(1-q)/lots) || math.Abs(gotVariance/(rows*q*(1-q))-1) > 4*math.Sqrt(2.0/lots) {
		t.Errorf("sizes have mean %v and variance %v, want %v and %v", gotMean, gotVariance, size, rows*q*(1-q))
	}
	for row, count := range counts {
		if math.Abs(count-lots*q) > 4.5*math.Sqrt(lots*q*(1-q)) {
			t.Errorf("row %d is in %v lots of %d, want %v", row, count, lots, lots*q)
		}
	}
}

// A Poisson sum is divided by the expected size of the lot, whatever its size.
func TestPoissonUpdate(t *testing.T) {
	d := dataset.Generated(40, 1)
	c := testConfiguration(40, 10)
	c.noiseMultiplier = 0
	r := newLinear(t, d, Options{Sampling: Poisson}, c, 0)
	same := newLinear(t, d, Options{Sampling: Poisson}, c, 0)
	want := make([]float64, d.Dim+1)
	for _, row := range same.lot(0) {
		g := naiveGradient(d, make([]float64, d.Dim+1), int(row))
		floats.AddScaled(want, -min(1, 1/floats.Norm(g, 2))/10, g)
	}
	r.Epoch(t.Context())
	if !floats.EqualApprox(r.model.Weights(), want, 1e-13) {
		t.Errorf("weights differ by %v", floats.Distance(r.model.Weights(), want, math.Inf(1)))
	}
}

// Every epoch of random allocation uses each row exactly once, in a lot that is uniform and independent of the lots of
// other rows and of other epochs. Lots are in increasing order.
func TestRandomAllocation(t *testing.T) {
	const rows, steps, epochs = 12, 4, 20_000
	c := testConfiguration(rows, rows/steps)
	c.stepsPerEpoch = steps
	r := newLinear(t, dataset.Generated(rows, 1), Options{Sampling: RandomAllocation}, c, 0)
	var counts [rows][steps]float64
	var pairs, repeats, empty float64
	var last [rows]int
	for epoch := range epochs {
		var at [rows]int
		seen := 0
		for step := range steps {
			lot := r.lot(step)
			if !slices.IsSorted(lot) {
				t.Fatalf("lot %v is not in order", lot)
			}
			if len(lot) == 0 {
				empty++
			}
			for _, row := range lot {
				at[row] = step
				counts[row][step]++
			}
			seen += len(lot)
		}
		if all := slices.Sorted(slices.Values(r.order)); seen != rows || len(slices.Compact(all)) != rows {
			t.Fatalf("epoch %d: %d rows in lots, of %v", epoch, seen, r.order)
		}
		if at[0] == at[1] {
			pairs++
		}
		if epoch > 0 && at[2] == last[2] {
			repeats++
		}
		last = at
	}
	// Frequencies within 4.5 standard errors.
	check := func(what string, got, p, n float64) {
		if math.Abs(got-n*p) > 4.5*math.Sqrt(n*p*(1-p)) {
			t.Errorf("%s: %v of %v, want %v", what, got, n, n*p)
		}
	}
	for row, of := range counts {
		for step, count := range of {
			check(fmt.Sprintf("row %d in lot %d", row, step), count, 1.0/steps, epochs)
		}
	}
	check("two rows in one lot", pairs, 1.0/steps, epochs)
	check("the same lot as in the epoch before", repeats, 1.0/steps, epochs-1)
	check("empty lots", empty, math.Pow(1-1.0/steps, rows), epochs*steps)
}

// The sum of an allocated lot, also of an empty one, is divided by n/t.
func TestRandomAllocationUpdate(t *testing.T) {
	d := dataset.Generated(40, 1)
	c := testConfiguration(40, 15)
	c.noiseMultiplier, c.stepsPerEpoch = 0, 3
	r := newLinear(t, d, Options{Sampling: RandomAllocation}, c, 0)
	same := newLinear(t, d, Options{Sampling: RandomAllocation}, c, 0)
	want := make([]float64, d.Dim+1)
	for step := range 3 {
		sum := make([]float64, d.Dim+1)
		for _, row := range same.lot(step) {
			g := naiveGradient(d, want, int(row))
			floats.AddScaled(sum, min(1, 1/floats.Norm(g, 2)), g)
		}
		floats.AddScaled(want, -3.0/40, sum)
	}
	r.Epoch(t.Context())
	if !floats.EqualApprox(r.model.Weights(), want, 1e-13) {
		t.Errorf("weights differ by %v", floats.Distance(r.model.Weights(), want, math.Inf(1)))
	}

	c = testConfiguration(2, 1)
	c.stepsPerEpoch = 40 // most lots are empty, and get noise
	r = newLinear(t, dataset.Generated(2, 1), Options{Sampling: RandomAllocation}, c, 0)
	if !r.Epoch(t.Context()) || !r.Finite() || r.model.Weights()[0] == 0 {
		t.Errorf("weights %v after empty lots", r.model.Weights()[:3])
	}
}

func TestEpochDoesNotAllocate(t *testing.T) {
	pool := parallel.New(2)
	defer pool.Close()
	for _, o := range []Options{
		{}, {Optimizer: Adam}, {Sampling: Poisson}, {Sampling: RandomAllocation}, {Matrix: Banded}, {Matrix: BLT}, {Matrix: Tree},
	} {
		c := testConfiguration(200, 10)
		if o.Matrix == Banded {
			c.bands = 3
		}
		c.stepsPerEpoch = 5
		linear := newLinear(t, dataset.Generated(200, 1), o, c, 0)
		o.Model = model.Spec{Kind: model.MLP, Hidden: []int{32}}
		network := newNetwork(t, digits(200, 50, 1), o, c, 0, pool)
		for name, r := range map[string]experiment.Learner[*model.Examples]{"linear": linear, "network": network} {
			if n := testing.AllocsPerRun(10, func() { r.Epoch(t.Context()) }); n != 0 {
				t.Errorf("%s, %+v: %v allocations an epoch, want 0", name, o, n)
			}
		}
	}
}

func BenchmarkEpoch(b *testing.B) {
	pool := dataset.Generated(40000, 1)
	for _, kind := range []model.Kind{model.LogisticRegression, model.LinearSVM} {
		for _, optimizer := range []Optimizer{SGD, Adam} {
			for _, lotSize := range []int{8, 32, 128, 512} {
				b.Run(fmt.Sprintf("%s/%s/lot=%d", kind, optimizer, lotSize), func(b *testing.B) {
					c := testConfiguration(pool.Rows, lotSize)
					c.stepsPerEpoch, c.learningRate = int64(pool.Rows/lotSize), 0.05
					r := newLinear(b, pool, Options{Optimizer: optimizer, Model: model.Spec{Kind: kind}}, c, 0)
					benchmark(b, r, pool.Rows)
				})
			}
		}
	}
}

// BenchmarkNetwork trains the networks of Avent et al. (2020), with privacy and
// without, on one core.
func BenchmarkNetwork(b *testing.B) {
	data := digits(4096, 784, 1)
	for _, hidden := range [][]int{{128, 64}, {1000}} {
		for _, lotSize := range []int{64, 256, 1024} {
			for _, private := range []bool{false, true} {
				b.Run(fmt.Sprintf("mlp=%v/lot=%d/private=%t", hidden, lotSize, private), func(b *testing.B) {
					c := testConfiguration(data.Rows, lotSize)
					c.stepsPerEpoch, c.learningRate = int64(data.Rows/lotSize), 0.05
					if !private {
						c.clippingNorm, c.noiseMultiplier = math.Inf(1), 0
					}
					o := Options{Model: model.Spec{Kind: model.MLP, Hidden: hidden}}
					benchmark(b, newNetwork(b, data, o, c, 0, parallel.New(1)), data.Rows)
				})
			}
		}
	}
}

// BenchmarkPoissonNetwork trains the networks of BenchmarkNetwork on Poisson lots, which are summed in
// groups by row number.
func BenchmarkPoissonNetwork(b *testing.B) {
	data := digits(4096, 784, 1)
	for _, hidden := range [][]int{{128, 64}, {1000}} {
		b.Run(fmt.Sprintf("mlp=%v/lot=256", hidden), func(b *testing.B) {
			c := testConfiguration(data.Rows, 256)
			c.stepsPerEpoch, c.learningRate = int64(data.Rows/256), 0.05
			o := Options{Model: model.Spec{Kind: model.MLP, Hidden: hidden}, Sampling: Poisson}
			benchmark(b, newNetwork(b, data, o, c, 0, parallel.New(1)), data.Rows)
		})
	}
}

func benchmark(b *testing.B, r experiment.Learner[*model.Examples], rows int) {
	b.Helper()
	b.ReportAllocs()
	for b.Loop() {
		r.Epoch(b.Context())
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/example")
}

// The theorem of Poisson sampling compares a lot with the same lot and one row more. That row moves
// the sum by what it moves the sum of its group, however many rows come after it and have other
// places then: rounding errors of other groups stay what they are.
func TestRowsOfPoissonLotsMoveTheirGroupOnly(t *testing.T) {
	const rows, lotSize = 2000, 1000
	d := digits(rows, 6, 3)
	c := testConfiguration(rows, lotSize)
	c.clippingNorm = 0.01
	o := Options{Model: model.Spec{Kind: model.MLP, Hidden: []int{5}}, Sampling: Poisson}
	r := newNetwork(t, d, o, c, 0, parallel.New(1))
	sum := func(lot []int32) []int64 {
		clear(r.model.Sum())
		r.accumulate(lot)
		return slices.Clone(r.model.Sum())
	}
	rng := rand.New(rand.NewPCG(5, 5))
	for range 50 {
		row := rng.Int32N(rows)
		span := max(1, r.span)
		var without, with, group, more []int32
		dense := rng.Float64() < 0.3 // more rows than fit into a chunk, or into a group
		for i := range int32(rows) {
			isDrawn := rng.IntN(2) == 0 || dense && i/span == row/span
			if i == row || isDrawn {
				with = append(with, i)
			}
			if i != row && isDrawn {
				without = append(without, i)
			}
			if i/span != row/span {
				continue
			}
			if i == row || isDrawn {
				more = append(more, i)
			}
			if i != row && isDrawn {
				group = append(group, i)
			}
		}
		a, b, x, y := sum(with), sum(without), sum(more), sum(group)
		norm := 0.0
		for k := range a {
			if a[k]-b[k] != x[k]-y[k] {
				t.Fatalf("row %d moves coordinate %d of the lot by %d, of its group by %d", row, k, a[k]-b[k], x[k]-y[k])
			}
			norm = math.Hypot(norm, float64(a[k]-b[k])*r.grid)
		}
		if norm > c.clippingNorm {
			t.Errorf("row %d moves the sum by %v, more than %v", row, norm, c.clippingNorm)
		}
	}
	if got := newLinear(t, dataset.Generated(50, 1), Options{Sampling: Poisson}, testConfiguration(50, 5), 0).span; got != 0 {
		t.Errorf("a hyperplane, whose sums are exact, has groups of %d", got)
	}
}
