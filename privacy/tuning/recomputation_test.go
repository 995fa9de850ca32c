package tuning

import (
	"math"
	"math/cmplx"
	"testing"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// quadratureNodes returns c and what a standard normal has below it, for many c.
func quadratureNodes() (at, weight []float64) {
	const n, reach = 700, 8.0
	for i := range n {
		x := -reach + 2*reach*(float64(i)+0.5)/n
		at = append(at, x)
		weight = append(weight, 2*reach/n*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi))
	}
	return at, weight
}

// independentLocation returns the bound for N(μ, 1) against N(0, 1): β(u) = Φ(Φ⁻¹(u) − μ) is attained by the
// sets x > τ.
func independentLocation(mu, delta float64, law runCountDistribution) float64 {
	var lines [][2]float64
	for tau := -8.0; tau < 8+mu; tau += 0.01 {
		a, _ := law.at(at(normalAbove(tau - mu)))
		b, _ := law.at(at(normalAbove(tau)))
		lines = append(lines, [2]float64{a, b})
	}
	gain := func(x float64) float64 { // the lines are sorted: the best one is found from both ends
		best := 0.0
		for _, l := range lines {
			best = math.Max(best, l[0]-x*l[1])
		}
		return best
	}
	at, weight := quadratureNodes()
	return rootOf(func(epsilon float64) float64 {
		sum := 0.0
		for i, x := range at {
			if weight[i] > 1e-4*delta {
				sum += weight[i] * gain(math.Exp(epsilon-mu*(x+mu/2)))
			}
		}
		return sum - delta
	})
}

// rootOf returns where a function that does not rise is 0, to 1e-6.
func rootOf(f func(float64) float64) float64 {
	lo, hi := 0.0, 1.0
	for f(hi) > 0 {
		lo, hi = hi, 2*hi
	}
	for hi-lo > 1e-6*hi {
		if mid := 0.5 * (lo + hi); f(mid) > 0 {
			lo = mid
		} else {
			hi = mid
		}
	}
	return hi
}

// TestLocationIndependently: the bound for Gaussian candidates by quadrature.
func TestLocationIndependently(t *testing.T) {
	for _, tc := range []struct {
		mu, delta float64
		law       privacy.Mechanism
	}{
		{0.3, 1e-6, repeated(t, privacy.Gaussian{Sensitivity: 0.3, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 0, 20)},
		{0.8, 1e-4, repeated(t, privacy.Gaussian{Sensitivity: 0.8, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 0.5, 5)},
		{0.3, 1e-5, capped(t, privacy.Gaussian{Sensitivity: 0.3, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 1, 10, 25)},
		{0.4, 1e-6, PoissonSelection{privacy.Gaussian{Sensitivity: 0.4, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 10}},
		{0.4, 1e-3, BinomialSelection{privacy.Gaussian{Sensitivity: 0.4, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 12, 0.5}},
		{0.4, 1e-6, BinomialSelection{privacy.Gaussian{Sensitivity: 0.4, StandardDeviation: 1, Neighbours: privacy.AddRemove}, 1, 8, 1}},
	} {
		want := independentLocation(tc.mu, tc.delta, tc.law.(selectionOfRuns).law())
		if got := epsilonOf(t, Location{}, tc.law, 1, tc.delta).Epsilon; got < want*(1-1e-5) || got > want*(1+1e-3) {
			t.Errorf("%+v: %.6f, by quadrature %.6f", tc, got, want)
		}
	}
}

// lattice has the masses of losses k·latticeStep, −latticeSize/2 <= k < latticeSize/2, k modulo the size.
type lattice []float64

const (
	latticeStep = 4e-5
	latticeSize = 1 << 18 // up to losses of 5
)

// fixedSizeLattice returns the loss of one step of DP-SGD on fixed-size lots from the distribution functions of the
// pair. On x > 1/2 the loss log(1 + q(e^t − 1)), t = (2x − 1)/2σ², has the mass of (1−q)N(0) + qN(1), and its negative
// the mass of N(0); the rest of the mass has the loss 0.
func fixedSizeLattice(m privacy.FixedSizeGaussian) lattice {
	q, z := m.Rate(), m.NoiseMultiplier
	l := make(lattice, latticeSize)
	point := func(loss float64) float64 { // x of a loss
		return 0.5 + z*z*math.Log1p(math.Expm1(loss)/q)
	}
	rest := 1.0
	for k := range latticeSize/2 - 1 {
		lo := point(math.Max(0, (float64(k)-0.5)*latticeStep))
		hi := point((float64(k) + 0.5) * latticeStep)
		if lo > 1+15*z {
			break
		}
		lower := normalAbove(lo/z) - normalAbove(hi/z)
		upper := (1-q)*lower + q*(normalAbove((lo-1)/z)-normalAbove((hi-1)/z))
		l[k] += upper
		l[(latticeSize-k)%latticeSize] += lower
		rest -= upper + lower
	}
	l[0] += rest
	return l
}

// compose returns the sum of losses: counts[i] of lattices[i].
func compose(lattices []lattice, counts []float64) lattice {
	fft := fourier.NewFFT(latticeSize)
	var product []complex128
	for i, l := range lattices {
		c := fft.Coefficients(nil, l)
		if product == nil {
			product = make([]complex128, len(c))
			for k := range product {
				product[k] = 1
			}
		}
		for k := range c {
			product[k] *= cmplx.Pow(c[k], complex(counts[i], 0))
		}
	}
	sum := lattice(fft.Sequence(nil, product))
	for i := range sum {
		sum[i] = math.Max(0, sum[i]/latticeSize)
	}
	return sum
}

// loss returns the loss of an index.
func (l lattice) loss(k int) float64 {
	if k >= latticeSize/2 {
		k -= latticeSize
	}
	return float64(k) * latticeStep
}

// delta returns δ(ε).
func (l lattice) delta(epsilon float64) float64 {
	sum := 0.0
	for k := range latticeSize / 2 {
		if loss := l.loss(k); loss > epsilon {
			sum += l[k] * -math.Expm1(epsilon-loss)
		}
	}
	return sum
}

// location returns the bound on the profile of a selection, as a function of ε. The gain G is computed at x on a
// logarithmic grid, and is linear between.
func (l lattice) location(law runCountDistribution) func(epsilon float64) float64 {
	var lines [][2]float64
	upper, lower := 0.0, 0.0
	for k := latticeSize/2 - 1; k >= -latticeSize/2; k-- {
		mass := l[(k+latticeSize)%latticeSize]
		if mass < 1e-16 {
			continue
		}
		upper += mass
		lower += mass * math.Exp(-float64(k)*latticeStep)
		if k%25 == 0 {
			a, _ := law.at(at(math.Min(1, upper)))
			b, _ := law.at(at(math.Min(1, lower)))
			lines = append(lines, [2]float64{a, b})
		}
	}
	const width = 0.002 // of log x
	gains := make(map[int]float64)
	at := func(i int) float64 {
		g, ok := gains[i]
		if !ok {
			x := math.Exp(float64(i) * width)
			for _, line := range lines {
				g = math.Max(g, line[0]-x*line[1])
			}
			gains[i] = g
		}
		return g
	}
	return func(epsilon float64) float64 {
		sum := 0.0
		for k, mass := range l {
			if mass < 1e-15 {
				continue
			}
			logX := (epsilon - l.loss(k)) / width
			i := math.Floor(logX)
			sum += mass * (at(int(i))*(1-logX+i) + at(int(i)+1)*(logX-i))
		}
		return sum
	}
}

// TestRunsIndependently: a run of DP-SGD, the best of a number of runs, its μ, and the search on a tenth with the final run.
func TestRunsIndependently(t *testing.T) {
	const delta, slack, steps = 1e-6, 1e-10, 1270
	base := privacy.FixedSizeGaussian{DatasetSize: 32561, BatchSize: 256, NoiseMultiplier: 4}
	run := compose([]lattice{fixedSizeLattice(base)}, []float64{steps})
	atDelta := func(profile func(float64) float64) float64 {
		return rootOf(func(epsilon float64) float64 { return profile(epsilon) - delta })
	}
	compare := func(name string, got, want, tolerance float64) {
		t.Helper()
		t.Logf("%s: %.6f, on the lattice %.6f", name, got, want)
		if privacytest.RelErr(got, want) > tolerance {
			t.Errorf("%s: %.6f, on the lattice %.6f", name, got, want)
		}
	}
	compare("one run", epsilonOf(t, privacy.Exact{}, base, steps, delta).Epsilon, atDelta(run.delta), 1e-4)
	for name, m := range map[string]privacy.Mechanism{
		"logarithmic 32": repeated(t, base, steps, 0, 32), "Poisson 10": PoissonSelection{base, steps, 10},
	} {
		law := m.(selectionOfRuns).law()
		compare(name, epsilonOf(t, Location{}, m, 1, delta).Epsilon, atDelta(run.location(law)), 1e-3)
	}

	mu, err := adaptive.ApproximateMu(base, steps, slack)
	require.NoError(t, err)
	least := 0.0
	for epsilon := 0.005; epsilon < 0.5; epsilon += 0.01 {
		rest := (run.delta(epsilon) - slack) / (1 - slack)
		if rest < 1e-11 {
			break
		}
		least = math.Max(least, rootOf(func(mu float64) float64 { // of −δ_μ(ε)
			return rest - (normalAbove(epsilon/mu-mu/2) - math.Exp(epsilon)*normalAbove(epsilon/mu+mu/2))
		}))
	}
	compare("μ", mu, least, 5e-4)

	// δ(log(1 + r(e^ε − 1))) = r·δ(ε) of the search; the masses of its losses are what it falls by.
	search := searchOnSubset(t, 0.1, 26, 1250)
	share := float64(search.SubsetSize) / float64(search.DatasetSize)
	selection := search.Base.(RepeatedSelection)
	profile := compose([]lattice{fixedSizeLattice(selection.Base.(privacy.FixedSizeGaussian))}, []float64{1250}).location(selection.law())
	subset := func(epsilon float64) float64 { return share * profile(math.Log1p(math.Expm1(epsilon)/share)) }
	compare("amplified", epsilonOf(t, privacy.Exact{}, search, 1, delta).Epsilon, atDelta(subset), 2e-3)
	compare("total", epsilonOf(t, privacy.Tightest{}, privacy.Composition{{Mechanism: search, Count: 1}, {Mechanism: base, Count: steps}}, 1, delta).Epsilon,
		atDelta(compose([]lattice{profileLattice(subset), run}, []float64{1, 1}).delta), 2e-3)
}

// profileLattice returns the losses of the symmetric pair whose profile is linear in e^ε between points of the given one.
func profileLattice(profile func(float64) float64) lattice {
	const stride = 100 // of the lattice
	l := make(lattice, latticeSize)
	var falls, deltas []float64 // per unit of e^ε
	const points = 160
	for i := range points + 1 {
		deltas = append(deltas, math.Min(1, profile(float64(i*stride)*latticeStep)))
	}
	deltas = convexProfile(deltas, stride*latticeStep)
	for i := range points {
		falls = append(falls, (deltas[i]-deltas[i+1])/(math.Exp(float64((i+1)*stride)*latticeStep)-math.Exp(float64(i*stride)*latticeStep)))
	}
	falls = append(falls, 0)
	rest := 1.0
	for i := 1; i <= points; i++ {
		lower := math.Max(0, falls[i-1]-falls[i]) // of the other distribution, which has the loss −ℓ
		upper := lower * math.Exp(float64(i*stride)*latticeStep)
		l[i*stride] += upper
		l[latticeSize-i*stride] += lower
		rest -= upper + lower
	}
	l[0] += rest
	return l
}

// convexProfile lowers bounds on a symmetric profile at ε = 0, width, … to their convex hull over e^ε, which is a bound,
// too. For −ε the profile is 1 − e^{−ε}(1 − δ(ε)).
func convexProfile(deltas []float64, width float64) []float64 {
	type point struct{ x, y float64 }
	var points, hull []point
	for i := len(deltas) - 1; i > 0; i-- {
		x := math.Exp(-float64(i) * width)
		points = append(points, point{x, 1 - x*(1-deltas[i])})
	}
	for i, d := range deltas {
		points = append(points, point{math.Exp(float64(i) * width), d})
	}
	for _, p := range points {
		for n := len(hull); n > 1; n-- {
			a, b := hull[n-2], hull[n-1]
			if (b.y-a.y)*(p.x-a.x) < (p.y-a.y)*(b.x-a.x) {
				break
			}
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	convex := make([]float64, len(deltas))
	at := 0
	for i := range deltas {
		x := math.Exp(float64(i) * width)
		for at+2 < len(hull) && hull[at+1].x < x {
			at++
		}
		a, b := hull[at], hull[at+1]
		convex[i] = a.y + (b.y-a.y)*(x-a.x)/(b.x-a.x)
	}
	return convex
}
