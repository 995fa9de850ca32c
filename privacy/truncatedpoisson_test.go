package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestSharedTruncatedPoisson compares each direction with another implementation of the pair, whose losses are rounded up
// to a coarse grid: by how much, Poisson sampling tells.
func TestSharedTruncatedPoisson(t *testing.T) {
	tb := privacytest.SharedVectors(t, "truncated_poisson_public.csv")
	for _, row := range tb.Rows {
		m := TruncatedPoissonGaussian{
			DatasetSize: tb.Int(row, "n"), PhysicalBatch: tb.Int(row, "B"), SamplingProbability: tb.Float(row, "q"),
			NoiseMultiplier: tb.Float(row, "sigma"), Neighbours: AddRemove,
		}
		for i, direction := range []string{"remove", "add"} {
			at := func(m Mechanism) float64 {
				losses, err := Losses(m)
				require.NoError(t, err)
				epsilon, ok := losses.UpperDirections()[i].Epsilon(tb.Float(row, "steps"), math.Log(tb.Float(row, "delta")), 1)
				if !ok {
					t.Errorf("%v: %s is not precise", row[:6], direction)
				}
				return epsilon
			}
			rounding := tb.Float(row, "eps_poisson_"+direction) - at(m.poisson())
			got, want := at(m), tb.Float(row, "eps_tight_"+direction)
			tb.Compare("eps_tight_"+direction, got, want)
			tb.Compare("eps_tight_"+direction+" less its rounding", got+rounding, want)
			if rounding < -1e-4 || math.Abs(got+rounding-want) > 1e-3*want {
				t.Errorf("%v: %s %.9g, want %.9g − %.2g", row[:6], direction, got, want, rounding)
			}
		}
	}
}

// outcomes returns the distribution of the sum of one step, without noise, by enumeration: records are drawn with
// probability q, and of more than size a uniform subset is kept.
func outcomes(values []int, size int, q float64) map[int]float64 {
	sums := make(map[int]float64)
	for drawn := range 1 << len(values) {
		probability, all := 1.0, []int(nil)
		for i, v := range values {
			if drawn>>i&1 == 1 {
				probability *= q
				all = append(all, v)
			} else {
				probability *= 1 - q
			}
		}
		var kept []int // the sums of all subsets that may be kept
		for subset := range 1 << len(all) {
			count, sum := 0, 0
			for i, v := range all {
				if subset>>i&1 == 1 {
					count, sum = count+1, sum+v
				}
			}
			if count == min(size, len(all)) {
				kept = append(kept, sum)
			}
		}
		for _, sum := range kept {
			sums[sum] += probability / float64(len(kept))
		}
	}
	return sums
}

// hockeyStick returns ∫(P − e^ε·Q)₊ of mixtures of normals with standard deviation sigma around integers up to 6.
func hockeyStick(p, q map[int]float64, sigma, epsilon float64) float64 {
	const points = 1500
	from, to := -6-9*sigma, 6+9*sigma
	h := (to - from) / points
	sum := 0.0
	for i := range points {
		y := from + (float64(i)+0.5)*h
		density := func(m map[int]float64) float64 {
			at := 0.0
			for mean, mass := range m {
				z := (y - float64(mean)) / sigma
				at += mass * math.Exp(-0.5*z*z)
			}
			return at
		}
		sum += h * math.Max(0, density(p)-math.Exp(epsilon)*density(q))
	}
	return sum / (sigma * math.Sqrt(2*math.Pi))
}

// others calls f with all multisets of count values in {−1, 0, 1}.
func others(count int, f func(values []int)) {
	for minus := range count + 1 {
		for plus := range count + 1 - minus {
			var values []int
			for i := range count {
				switch {
				case i < minus:
					values = append(values, -1)
				case i < minus+plus:
					values = append(values, 1)
				default:
					values = append(values, 0)
				}
			}
			f(values)
		}
	}
}

// TestTruncatedPoissonBruteForce: no data set of a few records is less private than the pair, in either direction, and
// one where the others add nothing is as private as the bound from below says.
func TestTruncatedPoissonBruteForce(t *testing.T) {
	for _, tc := range []struct {
		records, size int
		q, sigma      float64
	}{{2, 1, 0.5, 0.7}, {3, 1, 0.3, 1}, {4, 2, 0.6, 0.6}, {5, 2, 0.5, 1}, {6, 3, 0.7, 0.8}, {6, 1, 0.9, 1.5}, {4, 3, 1, 1}} {
		m := TruncatedPoissonGaussian{int64(tc.records), int64(tc.size), tc.q, tc.sigma, AddRemove}
		losses, err := Losses(m)
		require.NoError(t, err)
		m.Neighbours = ReplaceOne
		replaced, err := Losses(m)
		require.NoError(t, err)
		for _, epsilon := range []float64{0.1, 1, 3} {
			var remove, add, replace, removeZero, replaceZero float64
			others(tc.records-1, func(values []int) {
				without := outcomes(values, tc.size, tc.q)
				with := func(x int) map[int]float64 { return outcomes(append(values, x), tc.size, tc.q) }
				plus := with(1)
				for _, x := range []int{-1, 1} {
					remove = math.Max(remove, hockeyStick(with(x), without, tc.sigma, epsilon))
					add = math.Max(add, hockeyStick(without, with(x), tc.sigma, epsilon))
				}
				for _, x := range []int{-1, 0} {
					replace = math.Max(replace, hockeyStick(plus, with(x), tc.sigma, epsilon))
					replace = math.Max(replace, hockeyStick(with(x), plus, tc.sigma, epsilon))
				}
				if values[0] == 0 && values[len(values)-1] == 0 {
					removeZero = hockeyStick(plus, without, tc.sigma, epsilon)
					replaceZero = hockeyStick(plus, with(-1), tc.sigma, epsilon)
				}
			})
			upper, lower := losses.UpperDirections(), losses.LowerDirections()
			for _, bound := range []struct {
				what  string
				delta float64
				of    interface {
					Epsilon(runs, logDelta, side float64) (float64, bool)
				}
			}{{"remove", remove, upper[0]}, {"add", add, upper[1]}, {"replace", replace, replaced.UpperDirections()[0]}} {
				if bound.delta < 1e-12 {
					continue
				}
				if got, _ := bound.of.Epsilon(1, math.Log(bound.delta), 1); got < epsilon-1e-4 {
					t.Errorf("%+v: %s costs at least %g for delta %g, bound %g", tc, bound.what, epsilon, bound.delta, got)
				}
			}
			if tc.q == 1 { // batches of a fixed size: see TestFixedSizeAddRemove
				continue
			}
			if got, _ := lower[0].Epsilon(1, math.Log(removeZero), -1); math.Abs(got-epsilon) > 1e-3*epsilon {
				t.Errorf("%+v: lower bound for removing %g, want %g", tc, got, epsilon)
			}
			if got, _ := replaced.LowerDirections()[0].Epsilon(1, math.Log(replaceZero), -1); math.Abs(got-epsilon) > 1e-3*epsilon {
				t.Errorf("%+v: lower bound for replacing %g, want %g", tc, got, epsilon)
			}
		}
	}
}

// TestTruncatedPoissonEdges: at random parameters bounds are finite, in order, at most the Rényi bound and that of the
// Gaussian without sampling, and monotone in the noise, the number of steps and δ.
func TestTruncatedPoissonEdges(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 3))
	for range privacytest.Few(15, 1000) {
		m := TruncatedPoissonGaussian{
			DatasetSize: 2 + int64(math.Exp(rng.Float64()*14)), SamplingProbability: math.Exp(-rng.Float64() * 9),
			NoiseMultiplier: 0.3 * math.Exp(rng.Float64()*4), Neighbours: AddRemove + Adjacency(rng.IntN(2)),
		}
		mean := m.SamplingProbability * float64(m.DatasetSize)
		m.PhysicalBatch = 1 + int64(mean+(rng.Float64()*10-2)*math.Sqrt(mean))
		m.PhysicalBatch = max(1, min(m.PhysicalBatch, m.DatasetSize))
		steps := 1 + int64(math.Exp(rng.Float64()*8))
		delta := math.Max(1e-300, math.Exp(-0.7-rng.Float64()*rng.Float64()*690))
		g := epsilonOf(t, Exact{}, m, steps, delta)
		whole := epsilonOf(t, Exact{}, Gaussian{2, m.NoiseMultiplier, m.Neighbours}, steps, delta)
		renyi := epsilonOf(t, RDP{}, m, steps, delta)
		if !(g.EpsilonLower >= 0 && g.EpsilonLower <= g.Epsilon && g.Epsilon <= whole.Epsilon*(1+1e-9) && g.Epsilon <= renyi.Epsilon*(1+1e-4)+1e-4) {
			t.Errorf("%+v, %d steps, delta %g: epsilon %g to %g, Gaussian %g, Rényi %g", m, steps, delta, g.EpsilonLower, g.Epsilon, whole.Epsilon, renyi.Epsilon)
		}
		noisier := m
		noisier.NoiseMultiplier *= 1.3
		for what, less := range map[string]float64{
			"noise": epsilonOf(t, Exact{UpperOnly: true}, noisier, steps, delta).Epsilon,
			"steps": epsilonOf(t, Exact{UpperOnly: true}, m, steps-steps/2, delta).Epsilon,
			"delta": epsilonOf(t, Exact{UpperOnly: true}, m, steps, 1.5*delta).Epsilon,
		} {
			if less > g.Epsilon*(1+1e-4)+1e-5 {
				t.Errorf("%+v, %d steps, delta %g: epsilon %g exceeds %g for less %s", m, steps, delta, less, g.Epsilon, what)
			}
		}
	}
}

// TestSmallestPhysicalBatch: a batch smaller by one record costs more than the excess that counts as free.
func TestSmallestPhysicalBatch(t *testing.T) {
	m := TruncatedPoissonGaussian{DatasetSize: 5000, PhysicalBatch: 1, SamplingProbability: 0.02, NoiseMultiplier: 1.2, Neighbours: AddRemove}
	size, err := SmallestPhysicalBatch(Exact{UpperOnly: true}, m, 2000, 1e-5)
	require.NoError(t, err)
	excess := func(size int64) float64 {
		m.PhysicalBatch = size
		return epsilonOf(t, Exact{}, m, 2000, 1e-5).Epsilon/epsilonOf(t, Exact{}, m.poisson(), 2000, 1e-5).Epsilon - 1
	}
	if size != 145 || !(excess(size) <= FreeBatch && excess(size-1) > FreeBatch) {
		t.Errorf("physical batch %d, excess %g, of one less %g", size, excess(size), excess(size-1))
	}
}

// TestFreeBatches: at random parameters the excess counts as free from the batch on that is found, and not with one record less.
func TestFreeBatches(t *testing.T) {
	rng := rand.New(rand.NewPCG(42, 4))
	for range privacytest.Few(4, 300) {
		m := TruncatedPoissonGaussian{
			DatasetSize: 2 + int64(math.Exp(rng.Float64()*12)), PhysicalBatch: 1, SamplingProbability: math.Exp(-rng.Float64() * 7),
			NoiseMultiplier: 0.4 * math.Exp(rng.Float64()*3), Neighbours: AddRemove + Adjacency(rng.IntN(2)),
		}
		steps, delta := 1+int64(math.Exp(rng.Float64()*8)), math.Exp(-2-rng.Float64()*60)
		accountant := Exact{UpperOnly: true}
		size, err := SmallestPhysicalBatch(accountant, m, steps, delta)
		require.NoError(t, err)
		whole := m
		whole.PhysicalBatch = m.DatasetSize
		most := epsilonOf(t, accountant, whole, steps, delta).Epsilon * (1 + FreeBatch)
		least := int64(math.Ceil(m.SamplingProbability * float64(m.DatasetSize)))
		if size < least || size > m.DatasetSize {
			t.Errorf("%+v: physical batch %d", m, size)
		}
		for _, b := range []int64{size - 1, size, min(size+1, m.DatasetSize), size + rng.Int64N(m.DatasetSize-size+1)} {
			if m.PhysicalBatch = b; b < least {
				continue
			}
			if epsilon := epsilonOf(t, accountant, m, steps, delta).Epsilon; (epsilon <= most) != (b >= size) {
				t.Errorf("%+v, %d steps, delta %g: epsilon %.9g, smallest batch %d with at most %.9g", m, steps, delta, epsilon, size, most)
			}
		}
	}
}

// TestTruncatedPoissonWithRoom: batches that are never truncated cost what Poisson sampling does.
func TestTruncatedPoissonWithRoom(t *testing.T) {
	for _, size := range []int64{1000, 100_000, 1_000_000, 2_000_000} {
		m := TruncatedPoissonGaussian{1_000_000, size, 2e-4, 0.8, AddRemove}
		got, want := epsilonOf(t, Exact{}, m, 3000, 1e-7), epsilonOf(t, Exact{}, m.poisson(), 3000, 1e-7)
		if privacytest.RelErr(got.Epsilon, want.Epsilon) > 1e-4 || privacytest.RelErr(got.EpsilonLower, want.EpsilonLower) > 1e-4 {
			t.Errorf("physical batch %d: epsilon %.9g to %.9g, want %.9g to %.9g", size, got.EpsilonLower, got.Epsilon, want.EpsilonLower, want.Epsilon)
		}
	}
}

func TestTruncatedPoissonValidate(t *testing.T) {
	fields := FieldErrors(TruncatedPoissonGaussian{DatasetSize: 0, PhysicalBatch: 0, SamplingProbability: 2, NoiseMultiplier: -1}.Validate())
	if len(fields) != 5 {
		t.Errorf("errors %v, want 5", fields)
	}
}

// TestFixedSizeAddRemove: batches of a fixed size are attained by data sets whose other records are opposite, and are those
// that are always truncated. With the same noise, ε is the bound from below if a record is replaced.
func TestFixedSizeAddRemove(t *testing.T) {
	for _, tc := range []struct {
		records, size  int64
		sigma, epsilon float64
	}{{4, 3, 1, 0.5}, {5, 2, 0.8, 1.5}, {6, 1, 1.2, 0.2}} {
		m := FixedSizeAddRemoveGaussian{tc.records, tc.size, tc.sigma}
		others := slices.Repeat([]int{-1}, int(tc.records-1))
		with, without := outcomes(append(others, 1), int(tc.size), 1), outcomes(others, int(tc.size), 1)
		delta := math.Max(hockeyStick(with, without, tc.sigma, tc.epsilon), hockeyStick(without, with, tc.sigma, tc.epsilon))
		g := epsilonOf(t, Exact{}, m, 1, delta)
		if privacytest.RelErr(g.Epsilon, tc.epsilon) > 1e-3 || privacytest.RelErr(g.EpsilonLower, tc.epsilon) > 1e-3 {
			t.Errorf("%+v: epsilon %g to %g, want %g", tc, g.EpsilonLower, g.Epsilon, tc.epsilon)
		}
		truncated := TruncatedPoissonGaussian{tc.records, tc.size, 1, tc.sigma, AddRemove}
		if got := epsilonOf(t, Exact{}, truncated, 40, 1e-5).Epsilon; privacytest.RelErr(got, epsilonOf(t, Exact{}, m, 40, 1e-5).Epsilon) > 1e-12 {
			t.Errorf("%+v: truncated samples of all records cost %g", tc, got)
		}
	}
	many := FixedSizeAddRemoveGaussian{40000, 128, 2}
	g, replaced := epsilonOf(t, Exact{}, many, 3120, 1e-6), epsilonOf(t, Exact{}, FixedSizeGaussian{40000, 128, 1}, 3120, 1e-6)
	if renyi := epsilonOf(t, RDP{}, many, 3120, 1e-6); !(privacytest.RelErr(g.Epsilon, replaced.EpsilonLower) < 1e-8 && renyi.Epsilon >= g.Epsilon) {
		t.Errorf("epsilon %g to %g, if a record is replaced %g to %g, Rényi %g", g.EpsilonLower, g.Epsilon, replaced.EpsilonLower, replaced.Epsilon, renyi.Epsilon)
	}
	all := epsilonOf(t, Exact{}, FixedSizeAddRemoveGaussian{100, 100, 2}, 4, 1e-6)
	if want := epsilonOf(t, Exact{}, Gaussian{1, 1, AddRemove}, 1, 1e-6); privacytest.RelErr(all.Epsilon, want.Epsilon) > 1e-12 {
		t.Errorf("full batches: epsilon %g, want %g", all.Epsilon, want.Epsilon)
	}
	if fields := FieldErrors((FixedSizeAddRemoveGaussian{0, 0, 0}).Validate()); len(fields) != 3 {
		t.Errorf("errors %v, want 3", fields)
	}
}
