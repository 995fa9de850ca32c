package privacy

import (
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// TestBoundsAreOrdered: for random mechanisms, ε is finite or says that it is vacuous, at least its lower bound, and
// does not rise with δ and noise nor fall with the sampling probability and the number of steps, but for what the
// methods may be in error.
//
// With -tags long there are 20 parts of 500 points each, which can be run one by one.
func TestBoundsAreOrdered(t *testing.T) {
	for part := range privacytest.Few(1, 20) {
		t.Run(strconv.Itoa(part), func(t *testing.T) {
			checkBounds(t, rand.New(rand.NewPCG(39, uint64(part+1))), privacytest.Few(16, 500))
		})
	}
}

func checkBounds(t *testing.T, rng *rand.Rand, points int) {
	for point := range points {
		q := math.Exp(-20 * rng.Float64())
		sigma := 0.2 * math.Exp(5*rng.Float64())
		steps := int64(math.Exp(16 * rng.Float64()))
		delta := 0.5 * math.Exp(-690*rng.Float64()*rng.Float64()*rng.Float64())
		if point%2 == 0 { // as in practice
			q, sigma = math.Exp(-8*rng.Float64()), 0.5*math.Exp(3*rng.Float64())
			steps, delta = 1+int64(math.Exp(9*rng.Float64())), math.Exp(-3-20*rng.Float64())
		}
		factor := 1 + 2*rng.Float64()
		for _, family := range []func(q, sigma float64) Mechanism{
			func(q, sigma float64) Mechanism {
				return PoissonGaussian{SamplingProbability: q, NoiseMultiplier: sigma, Neighbours: AddRemove}
			},
			func(q, sigma float64) Mechanism {
				return PoissonGaussian{SamplingProbability: q, NoiseMultiplier: sigma, Neighbours: ReplaceOne}
			},
			func(q, sigma float64) Mechanism {
				const records = 1 << 40
				return FixedSizeGaussian{records, max(1, int64(q*records)), sigma}
			},
		} {
			m := family(q, sigma)
			g := epsilonOf(t, Exact{}, m, steps, delta)
			if math.IsNaN(g.Epsilon) || g.Epsilon < 0 || !(g.EpsilonLower <= g.Epsilon) || math.IsInf(g.Epsilon, 1) && len(g.Warnings) == 0 {
				t.Errorf("%+v, %d steps, delta %g: %+v", m, steps, delta, g)
			}
			more := func(what string, m Mechanism, steps int64, delta float64) {
				h := epsilonOf(t, Exact{UpperOnly: true}, m, steps, delta)
				// What proves that g is too large is a lower bound.
				if h.Epsilon < g.EpsilonLower*(1-1e-12) {
					t.Errorf("%+v, %d steps, delta %g: epsilon %g, %s %g", m, steps, delta, g.Epsilon, what, h.Epsilon)
				}
				if precise := math.Max(g.Epsilon-g.EpsilonLower, 1e-4*g.Epsilon); h.Epsilon < g.Epsilon-precise-1e-300 {
					t.Errorf("%+v, %d steps, delta %g: epsilon %g from %g, %s %g", m, steps, delta, g.Epsilon, g.EpsilonLower, what, h.Epsilon)
				}
			}
			more("at a smaller delta", m, steps, delta/factor)
			more("with less noise", family(q, sigma/factor), steps, delta)
			more("at a higher rate", family(math.Min(1, q*factor), sigma), steps, delta)
			more("with more steps", m, steps+1+int64(float64(steps)*(factor-1)), delta)
		}
	}
}

// With hardly any noise ε is large, with very much it is small, and bounds are in order.
func TestAbsurdNoise(t *testing.T) {
	for _, sigma := range []float64{1e-200, 1e-9, 1e9, 1e200} {
		for _, m := range []Mechanism{
			PoissonGaussian{0.01, sigma, AddRemove, false},
			FixedSizeGaussian{1000, 10, sigma},
			FixedSizeAddRemoveGaussian{1000, 10, sigma},
			ShuffledGaussian{NoiseMultiplier: sigma, Steps: 100, EvenSteps: true, Neighbours: ReplaceOne},
			ShuffledGaussian{NoiseMultiplier: sigma, Steps: 100, EvenSteps: true, Neighbours: AddRemove},
			TruncatedPoissonGaussian{DatasetSize: 1000, PhysicalBatch: 20, SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: AddRemove},
			TruncatedPoissonGaussian{DatasetSize: 1000, PhysicalBatch: 20, SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: ReplaceOne},
			UserPoissonGaussian{RecordsPerUser: 4, SamplingProbability: 0.01, NoiseMultiplier: sigma},
			BandMF{Bands: 4, SamplingProbability: 0.01, NoiseMultiplier: sigma, Neighbours: AddRemove},
			RandomAllocation{Steps: 100, Picks: 1, NoiseMultiplier: sigma, Epochs: 3, Neighbours: AddRemove},
			RandomAllocation{Steps: 100, Picks: 3, NoiseMultiplier: sigma, Epochs: 3, Neighbours: ReplaceOne},
		} {
			if _, truncated := m.(TruncatedPoissonGaussian); truncated && sigma > mostTruncatedNoise {
				if len(FieldErrors(m.Validate())) == 0 {
					t.Errorf("%+v is accepted", m)
				}
				continue
			}
			for _, delta := range []float64{1e-300, 1e-5} {
				for _, runs := range []int64{1, 50} {
					g := epsilonOf(t, Tightest{}, m, runs, delta)
					if math.IsNaN(g.Epsilon) || g.EpsilonLower > g.Epsilon || sigma < 1 && !(g.Epsilon > 1e15) || sigma > 1 && !(g.Epsilon < 1e-3) {
						t.Errorf("%+v, %d runs, delta %g: %g to %g by %s", m, runs, delta, g.EpsilonLower, g.Epsilon, g.Accountant)
					}
				}
			}
		}
	}
}

// Runs count alike, whether a curve or a composition multiplies them.
func TestGroupedRuns(t *testing.T) {
	rng := rand.New(rand.NewPCG(39, 2))
	for range privacytest.Few(4, 12) {
		n := 10 + rng.Int64N(1000)
		for _, m := range []Mechanism{
			FixedSizeGaussian{n, 1 + rng.Int64N(n/4+1), 0.3 + 6*rng.Float64()},
			PoissonGaussian{0.3 * rng.Float64(), 0.3 + 6*rng.Float64(), AddRemove, false},
			PoissonGaussian{1e-4 * rng.Float64(), 0.3 + rng.Float64(), ReplaceOne, false},
		} {
			few, times, delta := 1+rng.Int64N(9), 1+rng.Int64N(30), math.Pow(10, -3-12*rng.Float64())
			want := epsilonOf(t, Exact{}, m, few*times, delta)
			got := epsilonOf(t, Exact{}, Composition{{m, few}}, times, delta)
			if math.Abs(got.Epsilon-want.Epsilon) > 1e-9*want.Epsilon || math.Abs(got.EpsilonLower-want.EpsilonLower) > 1e-9*want.EpsilonLower {
				t.Errorf("%+v, %d times %d steps, delta %g: %g to %g, want %g to %g", m, times, few, delta, got.EpsilonLower, got.Epsilon, want.EpsilonLower, want.Epsilon)
			}
		}
	}
}

// BenchmarkRandomPoints takes 230 random settings of each mechanism once, and reports the mean and the 99th percentile
// of the time of one ε: go test -run '^$' -bench RandomPoints -benchtime 1x -cpu 1 ./privacy.
func BenchmarkRandomPoints(b *testing.B) {
	for _, upperOnly := range []bool{false, true} {
		for i, name := range []string{"fixed-size", "poisson", "replace-one"} {
			if upperOnly {
				name += "/upper"
			}
			b.Run(name, func(b *testing.B) {
				for b.Loop() {
					rng := rand.New(rand.NewPCG(7, 7))
					var milliseconds []float64
					for range 230 {
						q, sigma := math.Pow(10, -4.5*rng.Float64()), 0.5*math.Pow(16, rng.Float64())
						steps, delta := int64(math.Pow(10, 5*rng.Float64())), math.Pow(10, -3-9*rng.Float64())
						const records = 1e9
						m := [...]Mechanism{
							FixedSizeGaussian{records, int64(q * records), sigma},
							PoissonGaussian{q, sigma, AddRemove, false},
							PoissonGaussian{q, sigma, ReplaceOne, false},
						}[i]
						start := time.Now()
						epsilonOf(b, Tightest{UpperOnly: upperOnly}, m, steps, delta)
						milliseconds = append(milliseconds, 1e3*time.Since(start).Seconds())
					}
					slices.Sort(milliseconds)
					mean := 0.0
					for _, x := range milliseconds {
						mean += x / float64(len(milliseconds))
					}
					b.ReportMetric(mean, "ms-mean")
					b.ReportMetric(milliseconds[len(milliseconds)*99/100], "ms-p99")
				}
			})
		}
	}
}
