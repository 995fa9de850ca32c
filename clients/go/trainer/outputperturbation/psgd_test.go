package outputperturbation

import (
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/floats"

	"github.com/dpareto/dpareto/clients/go/trainer/dataset"
	"github.com/dpareto/dpareto/clients/go/trainer/linear"
	"github.com/dpareto/dpareto/clients/go/trainer/random"
	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
)

const streamTest = 7

func newRisk(t testing.TB, d *dataset.Dataset, loss linear.Loss) linear.Risk {
	t.Helper()
	examples, err := linear.NewExamples(d, 1)
	require.NoError(t, err)
	return linear.Risk{Examples: examples, Loss: loss}
}

// randomRows returns records with normal features; most are clipped to norm 1.
func randomRows(rows, dim int, rng *rand.Rand) *dataset.Dataset {
	d := &dataset.Dataset{Name: "random", Rows: rows, Dim: dim, RowStart: []int{0}}
	for range rows {
		for j := range dim {
			d.Indices = append(d.Indices, int32(j))
			d.Values = append(d.Values, float32(rng.NormFloat64()))
		}
		d.RowStart = append(d.RowStart, len(d.Indices))
		d.Labels = append(d.Labels, float32(2*rng.IntN(2)-1))
	}
	return d
}

// replaced returns a copy of d with another record at row i: for half of the
// calls the opposite of the old one.
func replaced(d *dataset.Dataset, i int, rng *rand.Rand) *dataset.Dataset {
	other := *d
	other.Values = append([]float32(nil), d.Values...)
	other.Labels = append([]float32(nil), d.Labels...)
	other.Labels[i] = -d.Labels[i]
	if rng.IntN(2) == 0 {
		for k := d.RowStart[i]; k < d.RowStart[i+1]; k++ {
			other.Values[k] = float32(rng.NormFloat64())
		}
	}
	return &other
}

// descend runs the descent for some epochs in the orders of a seed.
func descend(t testing.TB, risk linear.Risk, gamma, radius float64, epochs int, seed uint64) []float64 {
	t.Helper()
	d := newDescent(risk, gamma, radius, random.New(seed, 0, streamTest, 0))
	for range epochs {
		if !d.epoch(t.Context()) {
			t.Fatal("the epoch was not finished")
		}
	}
	return d.weights()
}

// The update written down with dense vectors.
func TestDescentAgainstDense(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		data := randomRows(1+rng.IntN(40), 1+rng.IntN(6), rng)
		risk := newRisk(t, data, linear.Logistic{})
		gamma, radius, seed := math.Pow(10, -4+5*rng.Float64()), math.Inf(1), rng.Uint64()
		if rng.IntN(2) == 0 {
			radius = 0.5 * rng.Float64() // tight enough to matter
		}
		const epochs = 3
		got := descend(t, risk, gamma, radius, epochs, seed)

		orders := random.New(seed, 0, streamTest, 0)
		order := make([]int32, data.Rows)
		for i := range order {
			order[i] = int32(i)
		}
		w, x := make([]float64, data.Dim), make([]float64, data.Dim)
		step := 0
		for range epochs {
			orders.Shuffle(order)
			for _, row := range order {
				i := int(row)
				step++
				eta := math.Min(1/(1+gamma), 1/(gamma*float64(step)))
				for j := range x {
					x[j] = float64(data.Values[i*data.Dim+j])
				}
				floats.Scale(float64(data.Labels[i])/math.Max(1, floats.Norm(x, 2)), x)
				slope := -1 / (1 + math.Exp(floats.Dot(w, x)))
				floats.Scale(1-eta*gamma, w)
				floats.AddScaled(w, -eta*slope, x)
				if norm := floats.Norm(w, 2); norm > radius {
					floats.Scale(radius/norm, w)
				}
			}
		}
		if !floats.EqualApprox(got, w, 1e-11) {
			t.Errorf("γ = %v, R = %v: weights differ by %v", gamma, radius, floats.Distance(got, w, 2))
		}
	}
}

// The weights below may not change: stored results depend on them. The tolerance
// is for processors that fuse multiplications and additions.
func TestDescentGolden(t *testing.T) {
	d := newDescent(newRisk(t, randomRows(20, 3, rand.New(rand.NewPCG(4, 4))), linear.Logistic{}), 0.1, 1, random.New(5, 0, streamTest, 0))
	d.epoch(t.Context())
	d.epoch(t.Context())
	want := []float64{0.264054660959, 0.473905233184, 0.347651889016}
	if !floats.EqualApprox(d.weights(), want, 1e-10) {
		t.Errorf("weights %.12f, want %.12f", d.weights(), want)
	}
}

// Many epochs lead to the regularised minimiser, which Newton's method finds.
func TestDescentConverges(t *testing.T) {
	data := dataset.Generated(500, 1)
	examples, err := linear.NewExamples(data, 4)
	require.NoError(t, err)
	risk := linear.Risk{Examples: examples, Loss: linear.Logistic{}}
	const gamma = 0.05
	m, err := linear.Objective{Risk: risk, Ridge: gamma}.Minimize(t.Context(), nil, 0)
	require.NoError(t, err)
	before := math.Inf(1)
	for _, epochs := range []int{1, 10, 100} {
		distance := floats.Distance(descend(t, risk, gamma, math.Inf(1), epochs, 1), m.Theta, 2)
		if distance > before/2 {
			t.Errorf("after %d epochs the minimiser is %v away, before that %v", epochs, distance, before)
		}
		before = distance
	}
	if norm := floats.Norm(m.Theta, 2); before > 0.02*norm {
		t.Errorf("after 100 epochs the minimiser of norm %v is %v away", norm, before)
	}
}

// A change of one record moves the model by no more than the sensitivity.
func TestSensitivity(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	largest := make(map[Projection]float64)
	for range 1500 {
		data := randomRows(2+rng.IntN(12), 1+rng.IntN(3), rng)
		other := replaced(data, rng.IntN(data.Rows), rng)
		gamma, epochs, seed := math.Pow(10, -3+4*rng.Float64()), 1+rng.IntN(4), rng.Uint64()
		for _, p := range []Projection{NoProjection, PublishedProjection, SmallProjection} {
			radius := p.radius(gamma)
			bound := privacy.OutputPerturbation{
				DatasetSize: int64(data.Rows), Regularization: gamma, Lipschitz: 1, StandardDeviation: 1, Radius: radius,
			}.L2Sensitivity()
			if p == NoProjection {
				radius = math.Inf(1)
			}
			distance := floats.Distance(
				descend(t, newRisk(t, data, linear.Logistic{}), gamma, radius, epochs, seed),
				descend(t, newRisk(t, other, linear.Logistic{}), gamma, radius, epochs, seed), 2)
			largest[p] = max(largest[p], distance/bound)
			if distance > bound*(1+1e-12) {
				t.Errorf("n = %d, γ = %v, %d epochs, projection %s: models are %v apart, want at most %v",
					data.Rows, gamma, epochs, p, distance, bound)
			}
		}
	}
	// The inputs come near enough to the bounds for the test to mean something. With
	// logistic slopes, 2/(γn) is approached where the model is near zero: by half.
	if largest[NoProjection] < 0.45 || largest[PublishedProjection] < 0.2 {
		t.Errorf("largest fractions of the bounds: %v", largest)
	}
}

// slope is the loss −z, whose gradient has norm 1 everywhere.
type slope struct{}

func (slope) Value(z float64) float64                { return -z }
func (slope) Derivatives(float64) (float64, float64) { return -1, 0 }
func (slope) Third(float64) float64                  { return 0 }
func (slope) Curvature() float64                     { return 0 }

// The loss γ/2·w² − wz of one feature attains 2/(γn) when a record z = 1 turns
// into −1, unless that record is the very first, at whose step the bound on the
// step length holds.
func TestSensitivityIsAttained(t *testing.T) {
	const n, gamma = 8, 1
	data := &dataset.Dataset{Rows: n, Dim: 1}
	for i := range n + 1 {
		data.RowStart = append(data.RowStart, i)
	}
	data.Indices = make([]int32, n)
	data.Labels = []float32{1, -1, 1, 1, -1, 1, -1, 1}
	other := *data
	other.Labels = append([]float32{-1}, data.Labels[1:]...)
	attained := 0
	for seed := range uint64(20) {
		a := descend(t, newRisk(t, data, slope{}), gamma, math.Inf(1), 3, seed)
		b := descend(t, newRisk(t, &other, slope{}), gamma, math.Inf(1), 3, seed)
		want := 2.0 / (gamma * n)
		switch got := math.Abs(a[0] - b[0]); {
		case math.Abs(got-want) <= 1e-12:
			attained++
		case got > want:
			t.Errorf("seed %d: models are %v apart, want at most %v", seed, got, want)
		}
	}
	if attained < 10 {
		t.Errorf("the sensitivity is attained in %d of 20 orders, want in nearly all", attained)
	}
}

// The published projection never moves an iterate.
func TestPublishedProjectionIsIdle(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 100 {
		data := randomRows(1+rng.IntN(20), 1+rng.IntN(3), rng)
		risk := newRisk(t, data, linear.Logistic{})
		gamma, seed := math.Pow(10, -4+6*rng.Float64()), rng.Uint64()
		free := descend(t, risk, gamma, math.Inf(1), 3, seed)
		projected := descend(t, risk, gamma, PublishedProjection.radius(gamma), 3, seed)
		if !floats.Equal(free, projected) {
			t.Errorf("γ = %v: projection moves the model by %v", gamma, floats.Distance(free, projected, 2))
		}
	}
}

func TestEpochDoesNotAllocate(t *testing.T) {
	risk := newRisk(t, dataset.Generated(200, 1), linear.Logistic{})
	d := newDescent(risk, 0.1, 5, random.New(1, 0, streamTest, 0))
	if n := testing.AllocsPerRun(10, func() { d.epoch(t.Context()) }); n != 0 {
		t.Errorf("%v allocations an epoch, want 0", n)
	}
}
