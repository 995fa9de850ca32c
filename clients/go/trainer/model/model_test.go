package model

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"gonum.org/v1/gonum/diff/fd"
	"gonum.org/v1/gonum/floats"
	"gonum.org/v1/gonum/stat"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/dataset/datasettest"
	"github.com/dpareto/dpareto/clients/go/trainer/internal/parallel"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
)

// sparseOnes returns rows of a few ones.
func sparseOnes(rows, dim, classes int) *dataset.Dataset {
	d := sparseValues(rows, dim, classes)
	d.Values = nil
	return d
}

// sparseValues returns rows of a few normal numbers.
func sparseValues(rows, dim, classes int) *dataset.Dataset {
	rng := rand.New(rand.NewPCG(uint64(rows), uint64(dim)))
	d := &dataset.Dataset{Name: "sparse", Rows: rows, Dim: dim, Classes: classes, RowStart: []int{0}}
	for range rows {
		for k := range dim {
			if rng.IntN(3) == 0 {
				d.Indices = append(d.Indices, int32(k))
				d.Values = append(d.Values, float32(rng.NormFloat64()))
			}
		}
		d.RowStart = append(d.RowStart, len(d.Indices))
		label := rng.IntN(max(classes, 2))
		if classes <= 2 {
			label = 2*label - 1
		}
		d.Labels = append(d.Labels, float32(label))
	}
	return d
}

// densified returns the same rows in dense form.
func densified(d *dataset.Dataset) *dataset.Dataset {
	dense := *d
	dense.Name = "dense"
	dense.RowStart, dense.Indices, dense.Values = nil, nil, nil
	dense.Dense = make([]float32, d.Rows*d.Dim)
	for i := range d.Rows {
		for k, x := range row(d, i) {
			dense.Dense[i*d.Dim+k] = float32(x)
		}
	}
	return &dense
}

// row returns row i as a dense vector.
func row(d *dataset.Dataset, i int) []float64 {
	x := make([]float64, d.Dim)
	if d.Dense != nil {
		for k := range x {
			x[k] = float64(d.Dense[i*d.Dim+k])
		}
		return x
	}
	indices, values := d.Row(i)
	for k, index := range indices {
		x[index] = 1
		if values != nil {
			x[index] = float64(values[k])
		}
	}
	return x
}

func class(d *dataset.Dataset, i int) int {
	if d.Classes <= 2 {
		return int(d.Labels[i]+1) / 2
	}
	return int(d.Labels[i])
}

// outputs computes a network, or a hyperplane, in float64 from the definition.
func outputs(widths []int, weights, x []float64) []float64 {
	for l := 1; l < len(widths); l++ {
		in, out := widths[l-1], widths[l]
		z := make([]float64, out)
		copy(z, weights[in*out:])
		for j, v := range x {
			floats.AddScaled(z, v, weights[j*out:(j+1)*out])
		}
		if l < len(widths)-1 {
			for k := range z {
				z[k] = max(z[k], 0)
			}
		}
		x, weights = z, weights[(in+1)*out:]
	}
	return x
}

// naiveLoss is the loss of row i from the definition.
func naiveLoss(spec Spec, d *dataset.Dataset, weights []float64, i int) float64 {
	if !spec.Linear() {
		z := outputs(widths(spec, d), weights, row(d, i))
		return floats.LogSumExp(z) - z[class(d, i)]
	}
	u := float64(2*class(d, i)-1) * outputs([]int{d.Dim, 1}, weights, row(d, i))[0]
	switch spec.Kind {
	case LogisticRegression:
		return math.Log1p(math.Exp(-u))
	case LinearSVM:
		return max(0, 1-u)
	default:
		h := spec.HuberWidth
		switch {
		case u > 1+h:
			return 0
		case u < 1-h:
			return 1 - u
		default:
			return (1 + h - u) * (1 + h - u) / (4 * h)
		}
	}
}

func widths(spec Spec, d *dataset.Dataset) []int {
	return append(append([]int{d.Dim}, spec.Hidden...), max(d.Classes, 2))
}

// naiveGradient differentiates naiveLoss numerically.
func naiveGradient(spec Spec, d *dataset.Dataset, weights []float64, i int) []float64 {
	return fd.Gradient(nil, func(w []float64) float64 { return naiveLoss(spec, d, w, i) },
		weights, &fd.Settings{Formula: fd.Central})
}

// subject is a model seen through float64.
type subject struct {
	weights    func() []float64
	accumulate func(rows []int32, clippingNorm float64) []float64     // from zero
	rounded    func(rows []int32, clippingNorm, grid float64) []int64 // from zero
	scale      func(by float64)                                       // the weights
	evaluate   func(*Examples) (float64, float64)
}

func newSubject(t *testing.T, spec Spec, d *dataset.Dataset, workers Workers) subject {
	t.Helper()
	examples := prepare(t, d)
	if spec.Linear() {
		return see(NewLinear(spec, examples))
	}
	return see(NewNetwork(spec, examples, workers))
}

func see[T Float](m Model[T]) subject {
	m.Initialize(InitializePublished, random.New(3, 0, 0, 0))
	wide := func(x []T) []float64 {
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(v)
		}
		return y
	}
	return subject{
		weights: func() []float64 { return wide(m.Weights()) },
		accumulate: func(rows []int32, clippingNorm float64) []float64 {
			clear(m.Gradient())
			m.Accumulate(rows, clippingNorm)
			return wide(m.Gradient())
		},
		rounded: func(rows []int32, clippingNorm, grid float64) []int64 {
			clear(m.Gradient())
			clear(m.Sum())
			m.AccumulateRounded(rows, clippingNorm, grid)
			return slices.Clone(m.Sum())
		},
		scale: func(by float64) {
			for i := range m.Weights() {
				m.Weights()[i] *= T(by)
			}
		},
		evaluate: m.Evaluate,
	}
}

func prepare(t testing.TB, d *dataset.Dataset) *Examples {
	t.Helper()
	examples, err := NewExamples(d)
	require.NoError(t, err)
	return examples
}

func rowNumbers(n int) []int32 {
	rows := make([]int32, n)
	for i := range rows {
		rows[i] = int32(i)
	}
	return rows
}

type subtest struct {
	spec Spec
	data *dataset.Dataset
}

// each runs a test on every kind of model and of data.
func each(t *testing.T, rows, dim int, test func(t *testing.T, s subtest)) {
	t.Helper()
	for _, spec := range []Spec{
		{Kind: LogisticRegression}, {Kind: LinearSVM}, {Kind: HuberSVM, HuberWidth: 0.7},
		{Kind: SoftmaxRegression}, {Kind: MLP, Hidden: []int{6}}, {Kind: MLP, Hidden: []int{5, 4}},
	} {
		classes := []int{0, 2}
		if !spec.Linear() {
			classes = []int{0, 3}
		}
		for _, count := range classes {
			for _, d := range []*dataset.Dataset{
				sparseOnes(rows, dim, count), sparseValues(rows, dim, count), densified(sparseValues(rows, dim, count)),
			} {
				name := fmt.Sprintf("%s%v/%s/ones=%t/classes=%d", spec.Kind, spec.Hidden, d.Name, d.Dense == nil && d.Values == nil, count)
				t.Run(name, func(t *testing.T) { test(t, subtest{spec, d}) })
			}
		}
	}
}

// tolerance is for the type in which the model computes.
func (s subtest) tolerance() float64 {
	if s.spec.Linear() {
		return 1e-8
	}
	return 2e-6
}

func TestGradientAgainstFiniteDifferences(t *testing.T) {
	each(t, 20, 7, func(t *testing.T, s subtest) {
		m := newSubject(t, s.spec, s.data, nil)
		got := m.accumulate(rowNumbers(s.data.Rows), math.Inf(1))
		want := make([]float64, len(got))
		for i := range s.data.Rows {
			floats.Add(want, naiveGradient(s.spec, s.data, m.weights(), i))
		}
		if d := floats.Distance(got, want, math.Inf(1)); !(d <= s.tolerance()*(1+floats.Norm(want, 2))) {
			t.Errorf("gradient differs from finite differences by %v", d)
		}
	})
}

// The clipped sum equals the sum of gradients computed one by one, whole, and then
// clipped: over lots with rows twice, of several blocks, and in any order.
func TestClippedSumAgainstNaive(t *testing.T) {
	each(t, 30, 7, func(t *testing.T, s subtest) {
		m := newSubject(t, s.spec, s.data, nil)
		gradients := make([][]float64, s.data.Rows)
		var norms []float64
		for i := range gradients {
			gradients[i] = naiveGradient(s.spec, s.data, m.weights(), i)
			norms = append(norms, floats.Norm(gradients[i], 2))
		}
		rng := rand.New(rand.NewPCG(1, 1))
		lot := make([]int32, 2*blockRows+chunkRows/2)
		for i := range lot {
			lot[i] = int32(rng.IntN(s.data.Rows))
		}
		for _, clippingNorm := range []float64{1e-3, stat.Mean(norms, nil), floats.Max(norms) + 1} {
			want := make([]float64, len(gradients[0]))
			clipped := 0
			for _, i := range lot {
				scale := 1.0
				if norms[i] > clippingNorm {
					scale = clippingNorm / norms[i]
					clipped++
				}
				floats.AddScaled(want, scale, gradients[i])
			}
			if clippingNorm == stat.Mean(norms, nil) && (clipped == 0 || clipped == len(lot)) {
				t.Errorf("%d of %d gradients are clipped at the mean, want some", clipped, len(lot))
			}
			got := m.accumulate(lot, clippingNorm)
			if d := floats.Distance(got, want, math.Inf(1)); !(d <= s.tolerance()*clippingNorm*float64(len(lot))) {
				t.Errorf("L = %v: the sum of clipped gradients differs by %v", clippingNorm, d)
			}
		}
	})
}

// The norms by which gradients are clipped are the norms of the gradients written out.
func TestClippedNorms(t *testing.T) {
	each(t, 40, 9, func(t *testing.T, s subtest) {
		m := newSubject(t, s.spec, s.data, nil)
		for _, i := range rowNumbers(s.data.Rows) {
			norm := floats.Norm(m.accumulate([]int32{i}, math.Inf(1)), 2)
			for _, clippingNorm := range []float64{norm / 3, norm * 0.999, norm * 1.001, 2 * norm} {
				if norm == 0 {
					continue // a hinge loss far from the boundary
				}
				want := min(norm, clippingNorm)
				got := floats.Norm(m.accumulate([]int32{i}, clippingNorm), 2)
				if math.Abs(got-want) > 1e-6*want {
					t.Errorf("row %d of norm %v, clipped at %v, has norm %v", i, norm, clippingNorm, got)
				}
			}
		}
	})
}

func TestEvaluateAgainstNaive(t *testing.T) {
	each(t, 2*blockRows+chunkRows+3, 7, func(t *testing.T, s subtest) {
		m := newSubject(t, s.spec, s.data, nil)
		errorRate, loss := m.evaluate(prepare(t, s.data))
		var wrong, sum float64
		for i := range s.data.Rows {
			sum += naiveLoss(s.spec, s.data, m.weights(), i)
			var predicted int
			if s.spec.Linear() {
				if outputs([]int{s.data.Dim, 1}, m.weights(), row(s.data, i))[0] > 0 {
					predicted = 1
				}
			} else {
				predicted = floats.MaxIdx(outputs(widths(s.spec, s.data), m.weights(), row(s.data, i)))
			}
			if predicted != class(s.data, i) {
				wrong++
			}
		}
		n := float64(s.data.Rows)
		if errorRate != wrong/n {
			t.Errorf("error %v, want %v", errorRate, wrong/n)
		}
		if want := sum / n; math.Abs(loss-want) > s.tolerance()*want {
			t.Errorf("loss %v, want %v", loss, want)
		}
	})
}

// A logistic regression with weights 0 puts everything on the negative side, at
// log 2 a row, and its loss far from the boundary is the distance.
func TestLogisticLossAtTheEnds(t *testing.T) {
	d := dataset.Generated(2500, 1)
	m := NewLinear(Spec{Kind: LogisticRegression}, prepare(t, d))
	errorRate, loss := m.Evaluate(m.examples)
	if want := float64(datasettest.Positives(d.Labels)) / float64(d.Rows); errorRate != want || math.Abs(loss-math.Ln2) > 1e-13 {
		t.Errorf("zero weights: error %v and loss %v, want %v and log 2", errorRate, loss, want)
	}
	for k := range m.weights {
		m.weights[k] = 1e6 * float64(k%5-2)
	}
	if _, far := m.Evaluate(m.examples); math.IsInf(far, 0) || math.IsNaN(far) || far < 1e5 {
		t.Errorf("loss %v with large weights", far)
	}
}

// Results do not depend on the number of workers, to the last bit.
func TestWorkersDoNotMatter(t *testing.T) {
	d := sparseValues(700, 300, 10)
	for _, d := range []*dataset.Dataset{d, densified(d)} {
		spec := Spec{Kind: MLP, Hidden: []int{70, 20}}
		alone := newSubject(t, spec, d, nil)
		want := alone.accumulate(rowNumbers(600), 0.5)
		wantError, wantLoss := alone.evaluate(prepare(t, d))
		for _, workers := range []int{2, 3, 8} {
			pool := parallel.New(workers)
			m := newSubject(t, spec, d, pool)
			got := m.accumulate(rowNumbers(600), 0.5)
			if !floats.Equal(got, want) {
				t.Errorf("%s, %d workers: gradient differs by %v", d.Name, workers, floats.Distance(got, want, math.Inf(1)))
			}
			if e, loss := m.evaluate(prepare(t, d)); e != wantError || loss != wantLoss {
				t.Errorf("%s, %d workers: error %v and loss %v, want %v and %v", d.Name, workers, e, loss, wantError, wantLoss)
			}
			pool.Close()
		}
	}
}

// The same rows in sparse and in dense form give the same gradients.
func TestSparseEqualsDense(t *testing.T) {
	d := sparseValues(300, 200, 4)
	spec := Spec{Kind: MLP, Hidden: []int{30}}
	sparse := newSubject(t, spec, d, nil).accumulate(rowNumbers(300), 1)
	dense := newSubject(t, spec, densified(d), nil).accumulate(rowNumbers(300), 1)
	if d := floats.Distance(sparse, dense, math.Inf(1)); !(d < 1e-5) {
		t.Errorf("gradients differ by %v", d)
	}
}

func TestInitialize(t *testing.T) {
	d := sparseOnes(5, 300, 10)
	m := NewNetwork(Spec{Kind: MLP, Hidden: []int{200}}, prepare(t, d), nil)
	m.Initialize(InitializePublished, random.New(1, 0, 0, 0))
	// √(6/(in + out)), the biases counting as weights of fan-in 1.
	check := func(name string, x []float32, deviation float64) {
		t.Helper()
		y := make([]float64, len(x))
		for i, v := range x {
			y[i] = float64(v)
		}
		mean, got := stat.MeanStdDev(y, nil)
		n := float64(len(x))
		if math.Abs(mean) > 4*deviation/math.Sqrt(n) || math.Abs(got-deviation) > 4*deviation/math.Sqrt(2*n) {
			t.Errorf("%s have mean %v and deviation %v, want 0 and %v", name, mean, got, deviation)
		}
	}
	check("published weights", m.layers[0].weights, math.Sqrt(6.0/500))
	check("published biases", m.layers[0].biases, math.Sqrt(6.0/201))
	check("published outer weights", m.layers[1].weights, math.Sqrt(6.0/210))
	m.Initialize(InitializeHe, random.New(1, 0, 0, 0))
	check("weights of He", m.layers[0].weights, math.Sqrt(2.0/300))
	check("outer weights of He", m.layers[1].weights, math.Sqrt(2.0/200))
	check("biases of He", m.layers[0].biases, 0)
	m.Initialize(InitializeZero, nil)
	check("zero weights", m.weights, 0)

	if err := InitializeZero.Check(Spec{Kind: MLP}); err == nil {
		t.Error("zero for an MLP: no error")
	}
	if err := Initialization("xavier").Check(Spec{Kind: LinearSVM}); err == nil || !strings.Contains(err.Error(), "xavier") {
		t.Errorf("unknown initialisation: error %v", err)
	}
	for _, i := range []Initialization{InitializeZero, InitializePublished, InitializeHe} {
		if err := i.Check(Spec{Kind: LogisticRegression}); err != nil {
			t.Error(err)
		}
	}
}

func TestSpecValidate(t *testing.T) {
	for _, tt := range []struct {
		spec Spec
		want string // "" for none
	}{
		{Spec{Kind: LogisticRegression}, ""},
		{Spec{Kind: MLP, Hidden: []int{128, 64}}, ""},
		{Spec{Kind: "tree"}, `model "tree" is unknown, want one of logistic-regression,`},
		{Spec{}, "is unknown"},
		{Spec{Kind: MLP}, "0 hidden layers, want at least one"},
		{Spec{Kind: SoftmaxRegression, Hidden: []int{3}}, "1 hidden layers, want none"},
		{Spec{Kind: MLP, Hidden: []int{5, 0}}, "width 0"},
		{Spec{Kind: HuberSVM, HuberWidth: 2}, "huber width 2"},
	} {
		err := tt.spec.Validate()
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.spec, err, tt.want)
		}
	}
}

func TestNewExamplesRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		label   float32
		classes int
		want    string
	}{
		{"zero", 0, 0, "label of row 1 is 0, want -1 or 1"},
		{"too high", 3, 3, "label of row 1 is 3, want a whole number from 0 to 2"},
		{"negative", -1, 3, "label of row 1 is -1"},
		{"fractional", 0.5, 3, "label of row 1 is 0.5"},
	} {
		d := sparseOnes(3, 4, tt.classes)
		d.Labels[1] = tt.label
		if _, err := NewExamples(d); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
	for _, x := range []float32{float32(math.Inf(1)), float32(math.NaN()), 2e15} {
		d := sparseValues(3, 4, 0)
		d.Values[len(d.Values)-1] = x
		if _, err := NewExamples(d); err == nil || !strings.Contains(err.Error(), "want a finite number of at most 1.13e+15") {
			t.Errorf("value %v: error %v", x, err)
		}
	}
	if _, err := NewExamples(&dataset.Dataset{Name: "none"}); err == nil || !strings.Contains(err.Error(), "none is empty") {
		t.Errorf("no rows: error %v", err)
	}
}

func TestShapesPanic(t *testing.T) {
	binary, ten := prepare(t, sparseOnes(5, 3, 0)), prepare(t, sparseOnes(5, 4, 10))
	for want, f := range map[string]func(){
		"model: linear model for other labels":    func() { NewLinear(Spec{Kind: LinearSVM}, ten) },
		"model: spec is not a valid linear model": func() { NewLinear(Spec{Kind: SoftmaxRegression}, binary) },
		"model: spec is not a valid network":      func() { NewNetwork(Spec{Kind: MLP}, ten, nil) },
		"model: examples of another shape":        func() { NewNetwork(Spec{Kind: SoftmaxRegression}, ten, nil).Evaluate(binary) },
	} {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panic %v, want %q", got, want)
				}
			}()
			f()
		}()
	}
}

func TestNothingIsAllocated(t *testing.T) {
	each(t, 300, 40, func(t *testing.T, s subtest) {
		examples, rows := prepare(t, s.data), rowNumbers(s.data.Rows)
		var step func()
		if s.spec.Linear() {
			m := NewLinear(s.spec, examples)
			step = func() { m.Accumulate(rows, 1); m.AccumulateRounded(rows, 1, 1e-9); m.Evaluate(examples) }
		} else {
			m := NewNetwork(s.spec, examples, nil)
			step = func() {
				m.Accumulate(rows, 1)
				clear(m.Gradient())
				m.AccumulateRounded(rows, 1, 1e-9)
				m.Evaluate(examples)
			}
		}
		if n := testing.AllocsPerRun(5, step); n != 0 {
			t.Errorf("%v allocations, want 0", n)
		}
	})
}

// A clipping factor in single precision never exceeds the exact one.
func TestRoundDown(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		x := math.Exp(-110 * rng.Float64())
		if got := float64(roundDown(x)); got > x || got < x*(1-0x1p-23) && x > 0x1p-126 {
			t.Fatalf("roundDown(%g) = %g", x, got)
		}
	}
	if roundDown(1) != 1 || roundDown(0) != 0 || roundDown(0x1p-130) != 0 {
		t.Errorf("%g %g %g", roundDown(1), roundDown(0), roundDown(0x1p-130))
	}
}
