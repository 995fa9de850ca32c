package privacy

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"

	"github.com/dpareto/dpareto/internal/require"
	"github.com/dpareto/dpareto/privacy/meter"
	"github.com/dpareto/dpareto/privacy/privacytest"
)

// tradeoff returns the bounds of steps runs of m.
func tradeoff(t *testing.T, a Accountant, m Mechanism, steps int64, delta float64, rates ...float64) Tradeoff {
	t.Helper()
	c, err := a.Curve(m)
	require.NoError(t, err)
	g, err := c.Epsilon(steps, delta)
	require.NoError(t, err)
	bounds, err := NewTradeoff(c, g, rates, nil)
	require.NoError(t, err)
	return bounds
}

// quantile returns x with Φ(x) = p, by bisection.
func quantile(p float64) float64 {
	if p == 0 {
		return math.Inf(-1)
	}
	lo, hi := -40.0, 40.0
	for range 200 {
		if mid := 0.5 * (lo + hi); 0.5*math.Erfc(-mid/math.Sqrt2) < p {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// laplacePower is the power of the best test between Laplace distributions x scales apart.
func laplacePower(x, alpha float64) float64 {
	switch {
	case alpha < 0.5*math.Exp(-x):
		return alpha * math.Exp(x)
	case alpha <= 0.5:
		return 1 - math.Exp(-x)/(4*alpha)
	default:
		return 1 - math.Exp(-x)*(1-alpha)
	}
}

var someRates = []float64{0, 1e-6, 1e-4, 0.001, 0.01, 0.05, 0.1, 0.25, 0.4, 0.5, 0.6, 0.8, 0.95, 0.999, 1}

// The bounds are the power of the best test where it has a closed form: never below it, and above
// it by a small share.
func TestTradeoffHasClosedForms(t *testing.T) {
	pure := func(epsilon float64) func(float64) float64 {
		return func(alpha float64) float64 {
			return math.Min(math.Exp(epsilon)*alpha, 1-math.Exp(-epsilon)*(1-alpha))
		}
	}
	for name, tc := range map[string]struct {
		accountant Accountant
		mechanism  Mechanism
		steps      int64
		delta      float64
		power      func(alpha float64) float64
		attained   bool
	}{
		"Gaussian": {Tightest{}, Gaussian{1, 2, AddRemove}, 9, 1e-5,
			func(alpha float64) float64 { return 0.5 * math.Erfc(-(quantile(alpha)+1.5)/math.Sqrt2) }, true},
		"Gaussian by GDP": {GDP{}, Gaussian{1, 0.3, ReplaceOne}, 1, 1e-5,
			func(alpha float64) float64 { return 0.5 * math.Erfc(-(quantile(alpha)+1/0.3)/math.Sqrt2) }, true},
		"one Laplace":         {Tightest{}, Laplace{1, 2, AddRemove}, 1, 0, func(alpha float64) float64 { return laplacePower(0.5, alpha) }, true},
		"one large Laplace":   {Tightest{}, Laplace{6, 1, AddRemove}, 1, 1e-6, func(alpha float64) float64 { return laplacePower(6, alpha) }, true},
		"randomised response": {Tightest{}, RandomizedResponse{0.7, 2}, 1, 0, pure(0.7), true},
		"hardly private": {Tightest{}, Gaussian{1, 0.02, AddRemove}, 1, 1e-5,
			func(alpha float64) float64 { return 0.5 * math.Erfc(-(quantile(alpha)+50)/math.Sqrt2) }, true},
		"pure":          {Pure{}, Laplace{1, 2, AddRemove}, 3, 0, pure(1.5), false},
		"sparse vector": {Tightest{}, SparseVector{Cutoff: 1, NoiseScale: 10, Neighbours: AddRemove}, 1, 0, nil, false},
		"no runs":       {Tightest{}, Gaussian{1, 2, AddRemove}, 0, 1e-5, func(alpha float64) float64 { return alpha }, true},
	} {
		got := tradeoff(t, tc.accountant, tc.mechanism, tc.steps, tc.delta, someRates...)
		if tc.power == nil {
			tc.power = pure(tc.mechanism.(PureMechanism).PureEpsilon())
		}
		if got.Attained != tc.attained {
			t.Errorf("%s: attained is %t", name, got.Attained)
		}
		for i, alpha := range someRates {
			if want := tc.power(alpha); got.TruePositiveRates[i] < want*(1-1e-13) || got.TruePositiveRates[i] > want*(1+2*tradeoffPrecision)+1e-12 {
				t.Errorf("%s: at %g %.9g, want %.9g", name, alpha, got.TruePositiveRates[i], want)
			}
		}
	}
}

// The bounds of DP-SGD are those by the privacy loss distribution of dp_accounting 0.6.0
// (from_gaussian_mechanism, value_discretization_interval 1e-5, self_compose, both branches of the
// formula on a grid of 30,001 ε in [0, 15]), which is a slightly larger bound.
func TestTradeoffOfPoissonSampling(t *testing.T) {
	alphas := []float64{1e-4, 0.01, 0.1, 0.3, 0.5, 0.9}
	for _, tc := range []struct {
		m     PoissonGaussian
		steps int64
		want  []float64
	}{
		{PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: AddRemove}, 1000, []float64{0.00054743, 0.02913910, 0.19420115, 0.45442966, 0.65857631, 0.95599379}},
		{PoissonGaussian{SamplingProbability: 256.0 / 60000, NoiseMultiplier: 0.8, Neighbours: AddRemove}, 2343, []float64{0.00055731, 0.02860720, 0.19072245, 0.44853506, 0.65291776, 0.95492981}},
		{PoissonGaussian{SamplingProbability: 0.05, NoiseMultiplier: 2, Neighbours: AddRemove}, 500, []float64{0.00095081, 0.04247284, 0.24656040, 0.52649926, 0.72285406, 0.97008358}},
	} {
		got := tradeoff(t, Tightest{}, tc.m, tc.steps, 1e-5, alphas...)
		if !got.Attained {
			t.Errorf("%+v: not attained", tc.m)
		}
		for i, alpha := range alphas {
			if x := got.TruePositiveRates[i]; privacytest.RelErr(x, tc.want[i]) > 1.5e-4 {
				t.Errorf("%+v: at %g %.8f, want %.8f", tc.m, alpha, x, tc.want[i])
			}
		}
	}
}

// Values of other libraries, which take the harder order of the data sets where the two differ.
func TestTradeoffVectors(t *testing.T) {
	tb := privacytest.SharedVectors(t, "tradeoff_public.csv")
	for _, row := range tb.Rows {
		p1, steps := tb.Float(row, "p1"), tb.Int(row, "steps")
		var m Mechanism
		switch tb.Text(row, "mechanism") {
		case "gaussian":
			m = Gaussian{1, p1, AddRemove}
		case "laplace":
			m = Laplace{1, p1, AddRemove}
		case "rr2":
			continue // only approximately private
		case "poisson_gaussian":
			m = PoissonGaussian{SamplingProbability: tb.Float(row, "p2"), NoiseMultiplier: p1, Neighbours: AddRemove}
		default:
			t.Fatalf("row %v", row)
		}
		alpha, want := tb.Float(row, "fpr"), tb.Float(row, "tpr_riskcal")
		got := tradeoff(t, Tightest{}, m, steps, 1e-5, alpha).TruePositiveRates[0]
		tb.Compare("tpr_riskcal", got, want)
		if privacytest.RelErr(got, want) > 2e-3 {
			t.Errorf("%v: %.9g", row, got)
		}
	}
}

// The advantage, the error of guesses and μ say what ε for other δ says. The values of other libraries are rounded: their
// errors of guesses are up to 2e-7 too small.
func TestTradeoffSummaries(t *testing.T) {
	var rates []float64
	for x := -4.75; x < 4.8; x += 0.25 {
		rates = append(rates, 0.5*math.Erfc(-x/math.Sqrt2))
	}
	for _, tc := range []struct {
		m                                 Mechanism
		steps                             int64
		advantage, bayesError, mu, regret float64
	}{
		{Gaussian{1, 0.7, AddRemove}, 1, 0.5249494759, 0.09043180396, 1 / 0.7, 0},
		{Gaussian{1, 3, AddRemove}, 1, 0.1323676652, 0.09999999992, 1. / 3, 0},
		{Laplace{1, 1, AddRemove}, 1, 0.3934693403, 0.1, 1.030064, 0.0370161},
		{PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 0.8, Neighbours: AddRemove}, 300, 0.1259593938, 0.09999953733, 0.50914201, 0.0374931},
		{PoissonGaussian{SamplingProbability: 0.005, NoiseMultiplier: 1, Neighbours: AddRemove}, 2000, 0.1153584129, 0.0999998373, 0.31327284, 0.00455542},
	} {
		c, err := Tightest{}.Curve(tc.m)
		require.NoError(t, err)
		got, err := NewTradeoff(c, epsilonOf(t, Tightest{}, tc.m, tc.steps, 1e-5), rates, []float64{0.1, 0.9})
		require.NoError(t, err)
		if privacytest.RelErr(got.Advantage, tc.advantage) > 1e-3 || epsilonOf(t, Exact{}, tc.m, tc.steps, got.Advantage).EpsilonLower > 0 {
			t.Errorf("%+v: advantage %.9g", tc.m, got.Advantage)
		}
		delta := 1 - got.BayesErrors[0]/0.1 // at ε = log 9
		if math.Abs(got.BayesErrors[0]-tc.bayesError) > 1e-6 || epsilonOf(t, Exact{}, tc.m, tc.steps, delta).EpsilonLower > math.Log(9) {
			t.Errorf("%+v: error %.12g", tc.m, got.BayesErrors[0])
		}
		if math.Abs(got.BayesErrors[1]-got.BayesErrors[0]) > 1e-6 { // the bounds are symmetric
			t.Errorf("%+v: errors %.9g", tc.m, got.BayesErrors)
		}
		most, far := 1.01*tc.mu, 3e-3
		if _, sampled := tc.m.(PoissonGaussian); sampled { // the reference leaves out small rates
			most, far = 1.08*tc.mu, 1e-2
		}
		if got.Mu < tc.mu*(1-1e-6) || got.Mu > most || math.Abs(got.MuRegret-tc.regret) > far {
			t.Errorf("%+v: mu %.9g, regret %.9g", tc.m, got.Mu, got.MuRegret)
		}
	}
}

// The best tests of one step on a Poisson sample have different powers for adding and for removing a
// record. The bound is above both, and equals their concave hull.
func TestTradeoffOfBothOrders(t *testing.T) {
	cdf := func(x float64) float64 { return 0.5 * math.Erfc(-x/math.Sqrt2) }
	for _, tc := range []struct{ q, sigma, gap float64 }{{0.5, 0.2, 1.2}, {0.1, 0.5, 1.02}, {0.9, 0.5, 1.002}, {0.1, 4, 1}} {
		mixed := func(x float64) float64 { return (1-tc.q)*cdf(x/tc.sigma) + tc.q*cdf((x-1)/tc.sigma) }
		var rates, powers []float64 // of the better order
		for x := -8 * tc.sigma; x <= 1+8*tc.sigma; x += tc.sigma / 50 {
			add := [2]float64{cdf(-x / tc.sigma), 1 - mixed(x)}
			remove := [2]float64{mixed(x), cdf(x / tc.sigma)}
			for _, at := range [][2]float64{add, remove} {
				rates, powers = append(rates, at[0]), append(powers, at[1])
			}
		}
		var lines []profileLine // above all powers
		for slope := math.Exp(-30); slope < math.Exp(30); slope *= 1.003 {
			l := profileLine{slope: slope}
			for k := range rates {
				l.intercept = math.Max(l.intercept, powers[k]-slope*rates[k])
			}
			lines = append(lines, l)
		}
		m := PoissonGaussian{SamplingProbability: tc.q, NoiseMultiplier: tc.sigma, Neighbours: AddRemove}
		alphas := []float64{0.01, 0.1, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.7}
		got := tradeoff(t, Tightest{}, m, 1, 1e-5, alphas...)
		widest := 1.0
		for i, alpha := range alphas {
			best, hull := 0.0, 1.0
			for k, rate := range rates {
				if rate <= alpha {
					best = math.Max(best, powers[k])
				}
			}
			for _, l := range lines {
				hull = math.Min(hull, l.at(alpha))
			}
			bound := got.TruePositiveRates[i]
			if bound < best || privacytest.RelErr(bound, hull) > 1e-3 {
				t.Errorf("%+v: at %g %.6f, best test %.6f, hull %.6f", tc, alpha, bound, best, hull)
			}
			widest = math.Max(widest, bound/best)
		}
		if widest < tc.gap || widest > 1.25 {
			t.Errorf("%+v: up to %.4f of the better test", tc, widest)
		}
	}
}

// The likelihood-ratio test, which is the best one, on simulated losses of DP-SGD: its power is
// below the bound, and by little.
func TestTradeoffAgainstAnAttack(t *testing.T) {
	const q, sigma, steps, runs = 0.1, 1.2, 20, 40000
	rng := rand.New(rand.NewPCG(3, 1))
	loss := func(with bool) float64 {
		sum := 0.0
		for range steps {
			x := sigma * rng.NormFloat64()
			if with && rng.Float64() < q {
				x++
			}
			sum += math.Log1p(q * math.Expm1((x-0.5)/(sigma*sigma)))
		}
		return sum
	}
	var without, with [runs]float64
	for i := range runs {
		without[i], with[i] = loss(false), loss(true)
	}
	slices.Sort(without[:])
	slices.Sort(with[:])
	m := PoissonGaussian{SamplingProbability: q, NoiseMultiplier: sigma, Neighbours: AddRemove}
	alphas := []float64{0.01, 0.05, 0.1, 0.3, 0.5}
	bounds := tradeoff(t, Tightest{}, m, steps, 1e-5, alphas...)
	for i, alpha := range alphas {
		threshold := without[int((1-alpha)*runs)]
		above, _ := slices.BinarySearch(with[:], threshold)
		power := 1 - float64(above)/runs
		// Four standard deviations of both counts; the slope of the curve is at most power/alpha.
		noise := 4 * (math.Sqrt(power*(1-power)/runs) + power/alpha*math.Sqrt(alpha*(1-alpha)/runs))
		if bound := bounds.TruePositiveRates[i]; power > bound+noise || bound > power+noise+0.02 {
			t.Errorf("at %g: attack %.4f ± %.4f, bound %.4f", alpha, power, noise, bound)
		}
	}
}

// Over random mechanisms and accountants the curve is concave, does not fall, and is not below its
// argument, nor above what any (ε, δ) of the accountant allows; nor does it depend on
// which rates were asked for, up to the precision.
func TestTradeoffProperties(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 1))
	between := func(a, b float64) float64 { return a * math.Pow(b/a, rng.Float64()) }
	for range 20 {
		var m Mechanism
		switch rng.IntN(6) {
		case 0:
			m = PoissonGaussian{SamplingProbability: between(1e-4, 1), NoiseMultiplier: between(0.4, 8), Neighbours: AddRemove}
		case 1:
			m = FixedSizeGaussian{DatasetSize: 10000, BatchSize: 1 + rng.Int64N(9999), NoiseMultiplier: between(0.4, 8)}
		case 2:
			m = Laplace{1, between(0.1, 30), AddRemove}
		case 3:
			m = Gaussian{1, between(0.1, 30), AddRemove}
		case 4:
			m = ZeroConcentrated{Rho: between(1e-3, 3), Neighbours: AddRemove}
		default:
			m = PoissonGaussian{SamplingProbability: between(1e-4, 1), NoiseMultiplier: between(0.8, 8), Neighbours: ReplaceOne}
		}
		steps := int64(between(50, 3000))
		var a Accountant = Tightest{}
		if rng.IntN(3) == 0 {
			a = RDP{}
		}
		rates := make([]float64, 20)
		for i := range rates {
			rates[i] = between(1e-7, 1)
		}
		slices.Sort(rates)
		got := tradeoff(t, a, m, steps, 1e-6, rates...)
		name := a.Name() + " " + m.Name() + " " + strconv.Itoa(int(steps))
		powers := got.TruePositiveRates
		c, _ := a.Curve(m)
		for i, alpha := range rates {
			if powers[i] < alpha || powers[i] > 1 || i > 0 && powers[i] < powers[i-1] {
				t.Errorf("%s: at %g %g after %g", name, alpha, powers[i], powers[max(0, i-1)])
			}
			if i > 1 && (powers[i]-powers[i-1])*(rates[i-1]-rates[i-2]) > (powers[i-1]-powers[i-2])*(rates[i]-rates[i-1])+1e-12 {
				t.Errorf("%s: not concave at %g", name, alpha)
			}
			g, err := c.Epsilon(steps, between(1e-9, 1)*0.999)
			require.NoError(t, err)
			limit := math.Min(g.Delta+math.Exp(g.Epsilon)*alpha, 1-math.Exp(-g.Epsilon)*(1-alpha-g.Delta))
			if powers[i] > math.Max(limit, alpha)*(1+2*tradeoffPrecision) {
				t.Errorf("%s: at %g %g, above %g", name, alpha, powers[i], limit)
			}
		}
		if alone := tradeoff(t, a, m, steps, 1e-3, rates[9]).TruePositiveRates[0]; privacytest.RelErr(alone, powers[9]) > 2*tradeoffPrecision {
			t.Errorf("%s: alone %.9g, among others %.9g", name, alone, powers[9])
		}
	}
}

// A tradeoff whose work is limited is a larger bound, known as such; and a wrong rate is named.
func TestTradeoffIsLimited(t *testing.T) {
	m := PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: AddRemove}
	free := new(meter.Work)
	whole := tradeoff(t, Within(Exact{}, free), m, 100, 1e-5, someRates...)
	if !whole.Attained {
		t.Error("the whole bound is not attained")
	}
	for _, share := range []int64{2, 4, 16} {
		limited := tradeoff(t, Within(Exact{}, &meter.Work{Limit: free.Done() / share}), m, 100, 1e-5, someRates...)
		if share == 16 && limited.Attained {
			t.Error("a bound with little work is attained")
		}
		for i, alpha := range someRates {
			if limited.TruePositiveRates[i] < whole.TruePositiveRates[i]*(1-tradeoffPrecision) {
				t.Errorf("at %g %g, below %g", alpha, limited.TruePositiveRates[i], whole.TruePositiveRates[i])
			}
			if limited.Attained && limited.TruePositiveRates[i] > whole.TruePositiveRates[i]*(1+2*tradeoffClose) {
				t.Errorf("at %g %g, far above %g", alpha, limited.TruePositiveRates[i], whole.TruePositiveRates[i])
			}
		}
	}
	stopped := errors.New("stopped")
	c, err := Within(Exact{}, &meter.Work{Pause: func() error { return stopped }}).Curve(m)
	require.NoError(t, err)
	if _, err := NewTradeoff(c, Guarantee{Epsilon: 5, Delta: 1e-5, Steps: 100}, []float64{0.1}, nil); !errors.Is(err, stopped) {
		t.Errorf("a stopped one: %v", err)
	}
	for _, alpha := range []float64{-1e-9, 1.01, math.NaN()} {
		_, err := NewTradeoff(c, Guarantee{Steps: 1, Delta: 1e-5}, []float64{0.5, alpha}, nil)
		if found := FieldErrors(err); len(found) != 1 || found[0].Field != "false_positive_rates[1]" {
			t.Errorf("%g: %v", alpha, err)
		}
	}
}

func BenchmarkTradeoff(b *testing.B) {
	m := PoissonGaussian{SamplingProbability: 0.01, NoiseMultiplier: 1, Neighbours: AddRemove}
	for _, a := range []Accountant{Exact{}, PLD{}, RDP{}} {
		b.Run(a.Name(), func(b *testing.B) {
			work := new(meter.Work)
			for b.Loop() {
				c, err := Within(a, work).Curve(m)
				require.NoError(b, err)
				g, err := c.Epsilon(1000, 1e-5)
				require.NoError(b, err)
				require.NoError(b, require.ErrOf(NewTradeoff(c, g, someRates, nil)))
			}
			b.ReportMetric(float64(work.Done())/float64(b.N), "operations/op")
		})
	}
}
