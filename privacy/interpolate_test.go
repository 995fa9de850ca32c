package privacy

import (
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// interpolated is an interpolant with a box of DP-SGD configurations.
type interpolated struct {
	name       string
	neighbours Adjacency // 0 for fixed sizes
	accountant Accountant
	records    float64
	batch      [2]float64
	noise      [2]float64
	steps      [2]float64 // 0 for 1 to 64 passes
}

const interpolatedDelta, interpolatedLimit = 1e-5, 10

var interpolants = []interpolated{
	{name: "fixed size", accountant: Tightest{}, records: 32561, batch: [2]float64{8, 512}, noise: [2]float64{0.1, 16}},
	{name: "fixed size RDP", accountant: RDP{}, records: 40000, batch: [2]float64{8, 512}, noise: [2]float64{0.3, 4}},
	{name: "fixed size RDP classic", accountant: RDP{Conversion: Classic}, records: 40000, batch: [2]float64{8, 40000}, noise: [2]float64{0.3, 16}},
	{name: "Poisson", accountant: Exact{}, neighbours: AddRemove, records: 30000, batch: [2]float64{8, 2048}, noise: [2]float64{0.3, 16}},
	{name: "Poisson PLD", accountant: PLD{}, neighbours: ReplaceOne, records: 30000, batch: [2]float64{100, 200}, noise: [2]float64{4, 5}},
	{name: "Poisson RDP", accountant: RDP{}, neighbours: ReplaceOne, records: 30000, batch: [2]float64{8, 2048}, noise: [2]float64{0.3, 16}},
	{name: "large batches", accountant: Tightest{}, neighbours: AddRemove, records: 30000, batch: [2]float64{2048, 30000}, noise: [2]float64{0.6, 32}},
	{name: "half of the data", accountant: Tightest{}, records: 30000, batch: [2]float64{7500, 30000}, noise: [2]float64{1, 64}},
	{name: "few steps", accountant: Exact{}, neighbours: AddRemove, records: 1000, batch: [2]float64{100, 1000}, noise: [2]float64{0.8, 8}, steps: [2]float64{1, 100}},
}

func (c interpolated) interpolant(t testing.TB) *Interpolant {
	t.Helper()
	p, err := InterpolateFixedSize(c.accountant, interpolatedDelta, interpolatedLimit)
	if c.neighbours != 0 {
		p, err = InterpolatePoisson(c.accountant, interpolatedDelta, interpolatedLimit, c.neighbours)
	}
	require.NoError(t, err)
	return p
}

// draw returns a random configuration of the box, with a whole number of steps.
func (c interpolated) draw(rng *rand.Rand) (batch, noise, steps float64) {
	between := func(span [2]float64) float64 { return span[0] * math.Pow(span[1]/span[0], rng.Float64()) }
	batch, noise = math.Round(between(c.batch)), between(c.noise)
	span := c.steps
	if span[0] == 0 {
		span = [2]float64{c.records / batch, 64 * c.records / batch}
	}
	return batch, noise, math.Ceil(between(span))
}

// Within 2 % of the accountant up to the limit, and above it where ε is well above.
func TestInterpolant(t *testing.T) {
	const points = 25
	for _, c := range interpolants {
		t.Run(c.name, func(t *testing.T) {
			p := c.interpolant(t)
			rng := rand.New(rand.NewPCG(3, 4))
			for range points {
				batch, noise, steps := c.draw(rng)
				var m Mechanism = FixedSizeGaussian{int64(c.records), int64(batch), noise}
				if c.neighbours != 0 {
					m = PoissonGaussian{batch / c.records, noise, c.neighbours, false}
				}
				want := epsilonOf(t, c.accountant, m, int64(steps), interpolatedDelta).Epsilon
				got := p.Epsilon(batch/c.records, noise, steps)
				if want <= interpolatedLimit && math.Abs(got-want) > 0.02*want || want > 2*interpolatedLimit && got <= interpolatedLimit {
					t.Errorf("batch %g, noise %g, %g steps: %g, exact %g", batch, noise, steps, got, want)
				}
			}
		})
	}
}

// At less noise than the grid has, where ε is beyond the limit, the accountant is not asked.
func TestInterpolantOfLittleNoise(t *testing.T) {
	p := interpolants[0].interpolant(t)
	open := p.open
	p.open = func(rate, noise float64) (Curve, error) {
		if noise < gridLeastNoise {
			t.Errorf("a curve at noise %g", noise)
		}
		return open(rate, noise)
	}
	last := p.Epsilon(0.1, gridLeastNoise, 50)
	for noise := 0.04; noise > 1e-300; noise *= noise {
		epsilon := p.Epsilon(0.1, noise, 50)
		if !(epsilon > last && last > interpolatedLimit) {
			t.Errorf("noise %g: ε is %g, %g with more noise", noise, epsilon, last)
		}
		last = epsilon
	}
}

// The slope of log ε is continuous in every argument, and in the batch size for as many
// passes, except for a small change at one pass.
func TestInterpolantIsSmooth(t *testing.T) {
	const records, h = 32561., 1e-4
	p := interpolants[0].interpolant(t)
	for name, epsilon := range map[string]func(x float64) float64{
		"rate":  func(x float64) float64 { return p.Epsilon(x/records, 1.5, 2000) },
		"batch": func(x float64) float64 { return p.Epsilon(x/records, 1.5, 3*records/x) },
		"noise": func(x float64) float64 { return p.Epsilon(0.001, x/100, 2000) },
		"steps": func(x float64) float64 { return p.Epsilon(0.01, 1.5, x) },
		"large": func(x float64) float64 { return p.Epsilon(x/1000, 6, 1000) }, // where nodes begin to lie further apart
	} {
		at := func(x float64) float64 { return math.Log(epsilon(x)) }
		for x := 40.0; x < 400; x *= 1 + h {
			most := 0.002
			if name == "steps" && math.Abs(x/100-1) < 2*h { // one pass
				most = 0.01
			}
			if change := (at(x*(1+h)) - 2*at(x) + at(x/(1+h))) / h; !(math.Abs(change) < most) {
				t.Errorf("%s: the slope changes by %g at %g", name, change, x)
			}
		}
	}
}

// Places between nodes have weights that reproduce parabolas, at equal distances those of Catmull and Rom, and that
// continue at every node with the same slope.
func TestGridAxis(t *testing.T) {
	for _, a := range []gridAxis{{1, 1}, {0.35, 2}, {2, 3}} {
		value := func(node int, x float64, f func(float64) float64) (v float64) {
			for i, w := range a.weights(node, x) {
				v += w * f(float64(a.at(node-1+i))*a.width)
			}
			return v
		}
		parabola := func(v float64) float64 { return 1 + v*(0.5-0.25*v) }
		for place := -9.99; place < 3; place += 0.37 {
			node, x := a.find(place)
			if !(float64(a.at(node))*a.width <= place+1e-9 && place < float64(a.at(node+1))*a.width) || !(x >= -1e-9 && x < 1) {
				t.Fatalf("%v: %g is %g beyond node %d", a, place, x, node)
			}
			if got := value(node, x, parabola); privacytest.RelErr(got, parabola(place)) > 1e-12 {
				t.Errorf("%v: %g at %g, want %g", a, got, place, parabola(place))
			}
		}
		const h = 1e-6
		for node := -6; node < 3; node++ {
			at := func(node int, x float64) float64 { return value(node, x, math.Cos) }
			before, after := float64(a.at(node)-a.at(node-1)), float64(a.at(node+1)-a.at(node))
			left, right := (at(node-1, 1)-at(node-1, 1-h))/(h*before), (at(node, h)-at(node, 0))/(h*after)
			if math.Abs(at(node-1, 1)-at(node, 0)) > 1e-12 || math.Abs(left-right) > 1e-4 {
				t.Errorf("%v: the slope at node %d is %g from the left, %g from the right", a, node, left, right)
			}
		}
	}
	x := 0.3
	y := 1 - x
	for i, want := range []float64{-0.5 * x * y * y, 1 + x*x*(1.5*x-2.5), 1 + y*y*(1.5*y-2.5), -0.5 * y * x * x} {
		if got := (gridAxis{1, 1}).weights(0, x)[i]; math.Abs(got-want) > 1e-15 {
			t.Errorf("weight %d is %g, want %g", i, got, want)
		}
	}
}

func TestNoisePosition(t *testing.T) {
	last := math.Inf(-1)
	for noise := gridLeastNoise; noise <= gridMostNoise; noise *= 1.01 {
		at := noisePosition(noise)
		if got := noiseAt(at); !(math.Abs(got/noise-1) < 1e-6) || !(at > last) {
			t.Fatalf("σ = %g is at %g, where σ is %g; before it %g", noise, at, got, last)
		}
		last = at
	}
	const h = 1e-6
	below, above := noisePosition(steepNoise*(1-h)), noisePosition(steepNoise*(1+h))
	if at := noisePosition(steepNoise); math.Abs((above-at)/(at-below)-1) > 1e-4 {
		t.Errorf("the axis has a kink: %g, %g, %g", below, at, above)
	}
}

// Values of the accountant take the place of those that are not interpolated: between
// nodes at which there is none or at which it is 0, and beyond the grid.
func TestInterpolantOutside(t *testing.T) {
	gaussian := func(rate, noise float64, steps int64) float64 {
		return epsilonOf(t, Exact{}, PoissonGaussian{rate, noise, AddRemove, false}, steps, interpolatedDelta).Epsilon
	}
	p := interpolated{accountant: Exact{}, neighbours: AddRemove}.interpolant(t)
	for _, c := range []struct{ rate, noise, steps, want float64 }{
		{0.01, 2e4, 100, gaussian(0.01, 2e4, 100)},
		{1e-7, 1, 3, 0},
		{1e-10, 1, 3, 0},
		{0.5, 1, 0.9, math.Inf(1)},
		{0, 1, 1, math.Inf(1)},
		{1.1, 1, 1, math.Inf(1)},
		{0.5, 0, 1, math.Inf(1)},
		{math.NaN(), 1, 1, math.Inf(1)},
		{0.5, math.NaN(), 1, math.Inf(1)},
		{0.5, 1, math.NaN(), math.Inf(1)},
		{0.5, 1, math.Inf(1), math.Inf(1)},
	} {
		if got := p.Epsilon(c.rate, c.noise, c.steps); got != c.want && !(privacytest.RelErr(got, c.want) < 1e-9) {
			t.Errorf("Epsilon(%g, %g, %g) = %g, want %g", c.rate, c.noise, c.steps, got, c.want)
		}
	}
	// Between whole numbers of steps they are linear.
	p = interpolated{accountant: RDP{}}.interpolant(t)
	const rate, noise = 0.5, 2e4
	low, high := p.Epsilon(rate, noise, 7), p.Epsilon(rate, noise, 8)
	if got, want := p.Epsilon(rate, noise, 7.25), low+0.25*(high-low); privacytest.RelErr(got, want) > 1e-9 || !(low < high) {
		t.Errorf("between %g and %g: %g, want %g", low, high, got, want)
	}
}

func TestInterpolantErrors(t *testing.T) {
	if _, err := InterpolateFixedSize(Exact{}, 0, -1); len(FieldErrors(err)) != 2 {
		t.Errorf("errors %v", err)
	}
	if _, err := InterpolatePoisson(Exact{}, 1e-5, 1, 0); len(FieldErrors(err)) != 1 {
		t.Errorf("errors %v", err)
	}
	// Without an accountant's value there is none; after a panic only its cell is missing.
	p := interpolated{accountant: GDP{}}.interpolant(t)
	if got := p.Epsilon(0.01, 1, 100); !math.IsInf(got, 1) {
		t.Errorf("unsupported: %g", got)
	}
	p = interpolated{accountant: &failsOnce{}}.interpolant(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("no panic")
			}
		}()
		p.Epsilon(0.01, 1, 100)
	}()
	if got, want := p.Epsilon(0.01, 1, 100), epsilonOf(t, RDP{}, FixedSizeGaussian{100, 1, 1}, 100, interpolatedDelta).Epsilon; privacytest.RelErr(got, want) > 1e-9 {
		t.Errorf("after a panic: %g, want %g", got, want)
	}
}

// failsOnce is RDP, but panics the first time.
type failsOnce struct {
	RDP
	once sync.Once
}

func (f *failsOnce) Curve(m Mechanism) (Curve, error) {
	f.once.Do(func() { panic("no curve") })
	return f.RDP.Curve(m)
}

// Values do not depend on which goroutine asks first.
func TestInterpolantConcurrently(t *testing.T) {
	c := interpolants[1]
	together := c.interpolant(t)
	var wg sync.WaitGroup
	for i := range uint64(4) {
		wg.Go(func() {
			alone, rng := c.interpolant(t), rand.New(rand.NewPCG(5, i/2))
			for range 100 {
				batch, noise, steps := c.draw(rng)
				want, got := alone.Epsilon(batch/c.records, noise, steps), together.Epsilon(batch/c.records, noise, steps)
				if got != want {
					t.Errorf("%g, alone %g", got, want)
				}
			}
		})
	}
	wg.Wait()
}

// BenchmarkInterpolant is one value after those that it needs, and the first one.
func BenchmarkInterpolant(b *testing.B) {
	c := interpolants[0]
	b.Run("warm", func(b *testing.B) {
		p := c.interpolant(b)
		b.ReportAllocs()
		for b.Loop() {
			p.Epsilon(128./30956, 1.3, 2420)
		}
	})
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			c.interpolant(b).Epsilon(128./30956, 1.3, 2420)
		}
	})
}

// Within 2 % of the accountant for whole numbers of steps an epoch and of epochs.
func TestInterpolantOfAllocation(t *testing.T) {
	for _, neighbours := range []Adjacency{AddRemove, ReplaceOne} {
		p, err := InterpolateAllocation(Exact{}, interpolatedDelta, interpolatedLimit, neighbours)
		require.NoError(t, err)
		rng := rand.New(rand.NewPCG(3, 5))
		for range privacytest.Few(8, 200) {
			m := RandomAllocation{
				Steps: 2 + int64(math.Exp(rng.Float64()*7)), Picks: 1, NoiseMultiplier: float64(neighbours) * 0.5 * math.Exp(rng.Float64()*2.5),
				Epochs: int64(math.Exp(rng.Float64() * 4)), Neighbours: neighbours,
			}
			want := epsilonOf(t, Exact{}, m, 1, interpolatedDelta).Epsilon
			got := p.Epsilon(1/float64(m.Steps), m.NoiseMultiplier, float64(m.Steps*m.Epochs))
			if want <= interpolatedLimit && math.Abs(got-want) > 0.02*want || want > 2*interpolatedLimit && got <= interpolatedLimit {
				t.Errorf("%+v: %g, exact %g", m, got, want)
			}
		}
	}
	if _, err := InterpolateAllocation(Exact{}, interpolatedDelta, interpolatedLimit, 7); err == nil {
		t.Error("no error of an unknown adjacency")
	}
}
