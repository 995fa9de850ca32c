package privacy

import (
	"math"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/dpareto/dpareto/privacy/privacytest"
)

// boundedPoint is a random setting of a mechanism, and settings that are less private.
type boundedPoint struct {
	mechanism Mechanism
	runs      int64
	worse     []worsePoint
}

type worsePoint struct {
	what      string
	mechanism Mechanism
	runs      int64
}

// boundedFamilies draw settings of the mechanisms that [TestBoundsAreOrdered] and [TestRandomAllocationEdges] leave out.
var boundedFamilies = []struct {
	name string
	// slack is by how much ε may exceed the least for the mechanism where no lower bound says so, relative to it.
	slack float64
	draw  func(d drawn) boundedPoint
}{
	{"shuffled", 1e-4, func(d drawn) boundedPoint {
		m := ShuffledGaussian{NoiseMultiplier: d.sigma, Steps: d.whole(1, 1e5), EvenSteps: d.rng.IntN(2) == 0, Neighbours: d.neighbours()}
		runs, more := d.runs(300)
		louder := m
		louder.NoiseMultiplier /= d.factor
		return boundedPoint{m, runs, []worsePoint{{"less noise", louder, runs}, {"more epochs", m, more}}}
	}},
	{"truncated", 1e-4, func(d drawn) boundedPoint {
		m := TruncatedPoissonGaussian{
			DatasetSize: d.whole(10, 1e9), SamplingProbability: d.q, NoiseMultiplier: d.sigma, Neighbours: d.neighbours(),
		}
		mean := d.q * float64(m.DatasetSize)
		m.PhysicalBatch = 1 + int64(math.Max(0, mean+(10*d.rng.Float64()-3)*math.Sqrt(mean)))
		louder, oftener := m, m // a smaller batch may have less: it leaves out more
		louder.NoiseMultiplier /= d.factor
		oftener.SamplingProbability = d.higher()
		runs, more := d.runs(1e6)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise", louder, runs}, {"a higher rate", oftener, runs}, {"more steps", m, more},
		}}
	}},
	{"user", 1e-4, func(d drawn) boundedPoint {
		m := UserPoissonGaussian{RecordsPerUser: d.whole(1, 20), SamplingProbability: d.q, NoiseMultiplier: d.sigma}
		louder, oftener, larger := m, m, m
		louder.NoiseMultiplier /= d.factor
		oftener.SamplingProbability = d.higher()
		larger.RecordsPerUser = d.more(m.RecordsPerUser)
		runs, more := d.runs(1e4)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise", louder, runs}, {"a higher rate", oftener, runs}, {"more records", larger, runs},
			{"more steps", m, more},
		}}
	}},
	{"fixed-size-add-remove", 1e-4, func(d drawn) boundedPoint {
		const records = 1 << 40
		m := FixedSizeAddRemoveGaussian{records, max(1, int64(d.q*records)), d.sigma}
		louder, larger := m, m
		louder.NoiseMultiplier /= d.factor
		larger.BatchSize = min(records-1, int64(d.higher()*records)) // of all records none takes another one's place: ε is less
		runs, more := d.runs(1e6)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise", louder, runs}, {"larger batches", larger, runs}, {"more steps", m, more},
		}}
	}},
	{"band-mf", 1e-4, func(d drawn) boundedPoint {
		m := BandMF{Bands: d.whole(1, 100), SamplingProbability: d.q, NoiseMultiplier: d.sigma, Neighbours: d.neighbours()}
		louder, oftener := m, m
		louder.NoiseMultiplier /= d.factor
		oftener.SamplingProbability = d.higher()
		runs, more := d.runs(1e6)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise", louder, runs}, {"a higher rate", oftener, runs}, {"more runs", m, more},
		}}
	}},
	{"dp-ftrl", 1e-4, func(d drawn) boundedPoint {
		m := DPFTRL{Sensitivity: math.Exp(5 * d.rng.Float64()), NoiseMultiplier: d.sigma, Neighbours: d.neighbours()}
		louder, wider := m, m
		louder.NoiseMultiplier /= d.factor
		wider.Sensitivity *= d.factor
		runs, more := d.runs(1e4)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise", louder, runs}, {"a larger sensitivity", wider, runs}, {"more runs", m, more},
		}}
	}},
	{"adaptive-clipping", 1e-4, func(d drawn) boundedPoint {
		neighbours, count := d.neighbours(), math.Exp(-2+10*d.rng.Float64())
		joint := func(gradients, count float64) Mechanism {
			noise, err := JointNoise(gradients, count, neighbours)
			if err != nil {
				panic(err)
			}
			return PoissonGaussian{SamplingProbability: d.q, NoiseMultiplier: noise, Neighbours: neighbours}
		}
		m := joint(d.sigma, count)
		runs, more := d.runs(1e6)
		return boundedPoint{m, runs, []worsePoint{
			{"less noise of gradients", joint(d.sigma/d.factor, count), runs}, {"less noise of counts", joint(d.sigma, count/d.factor), runs},
			{"more steps", m, more},
		}}
	}},
	{"discrete-gaussian", 1e-4, func(d drawn) boundedPoint {
		m := DiscreteGaussian{Sensitivity: d.whole(1, 30), Sigma: d.sigma, Neighbours: d.neighbours()}
		runs, more := d.runs(1e4)
		wider := m
		wider.Sensitivity = d.more(m.Sensitivity)
		return boundedPoint{m, runs, []worsePoint{{"a larger sensitivity", wider, runs}, {"more runs", m, more}}}
	}},
	{"discrete-laplace", 1e-4, func(d drawn) boundedPoint {
		m := DiscreteLaplace{Sensitivity: d.whole(1, 30), Scale: d.sigma, Neighbours: d.neighbours()}
		runs, more := d.runs(1e4)
		wider := m
		wider.Sensitivity = d.more(m.Sensitivity)
		return boundedPoint{m, runs, []worsePoint{{"a larger sensitivity", wider, runs}, {"more runs", m, more}}}
	}},
}

// drawn are the random numbers of a setting.
type drawn struct {
	rng      *rand.Rand
	q, sigma float64
	most     float64 // runs
	factor   float64 // in [1, 3), by which worse settings differ
}

// whole returns a number of [least, most], by its logarithm.
func (d drawn) whole(least, most float64) int64 {
	return int64(least * math.Exp(d.rng.Float64()*math.Log(most/least)))
}

// runs returns a number of runs, of which there are at most those of d, and a larger one if that is not 1.
func (d drawn) runs(most float64) (some, more int64) {
	some = d.whole(1, math.Min(most, d.most))
	if d.most == 1 {
		return some, some
	}
	return some, d.more(some)
}

func (d drawn) more(n int64) int64 { return n + 1 + int64(float64(n)*(d.factor-1)) }

func (d drawn) higher() float64 { return math.Min(1, d.q*d.factor) }

func (d drawn) neighbours() Adjacency {
	if d.rng.IntN(2) == 0 {
		return ReplaceOne
	}
	return AddRemove
}

// TestSamplerBoundsAreOrdered is [TestBoundsAreOrdered] for the mechanisms of 2024 to 2026. Each point is compared with a
// smaller δ and with one of its worse settings, drawn at random. Most points are of one run: that tests the pair of the
// mechanism, in microseconds. One in 20 is composed, by methods that all pairs share.
//
// With -tags long there are 20 parts of 500 points of each mechanism, which can be run one by one.
func TestSamplerBoundsAreOrdered(t *testing.T) {
	for i, family := range boundedFamilies {
		t.Run(family.name, func(t *testing.T) {
			for part := range privacytest.Few(1, 20) {
				t.Run(strconv.Itoa(part), func(t *testing.T) {
					rng := rand.New(rand.NewPCG(uint64(100+i), uint64(part)))
					for point := range privacytest.Few(40, 500) {
						d := drawn{
							rng: rng, q: math.Exp(-14 * rng.Float64()), sigma: 0.2 * math.Exp(5*rng.Float64()),
							most: 1, factor: 1 + 2*rng.Float64(),
						}
						if point%20 == 0 {
							d.most = math.Exp(14)
						}
						delta := 0.5 * math.Exp(-690*rng.Float64()*rng.Float64()*rng.Float64())
						checkPoint(t, family.draw(d), d, delta, family.slack)
					}
				})
			}
		})
	}
}

func checkPoint(t *testing.T, p boundedPoint, d drawn, delta, slack float64) {
	t.Helper()
	curve, err := Exact{}.Curve(p.mechanism)
	if err != nil {
		t.Fatalf("%+v: %v", p.mechanism, err)
	}
	at := func(delta float64) Guarantee {
		g, err := curve.Epsilon(p.runs, delta)
		if err != nil {
			t.Fatalf("%+v, %d runs, delta %g: %v", p.mechanism, p.runs, delta, err)
		}
		if math.IsNaN(g.Epsilon) || g.Epsilon < 0 || !(g.EpsilonLower <= g.Epsilon) || math.IsInf(g.Epsilon, 1) && len(g.Warnings) == 0 {
			t.Errorf("%+v, %d runs, delta %g: %g to %g by %s, %v", p.mechanism, p.runs, delta, g.EpsilonLower, g.Epsilon, g.Accountant, g.Warnings)
		}
		return g
	}
	g, smaller := at(delta), at(delta/d.factor)
	worse := p.worse[d.rng.IntN(len(p.worse))]
	h := epsilonOf(t, Exact{UpperOnly: true}, worse.mechanism, worse.runs, delta)
	for what, more := range map[string]Guarantee{"a smaller delta": smaller, worse.what: h} {
		// What proves that g is too large is a lower bound.
		precise := math.Max(g.Epsilon-g.EpsilonLower, slack*g.Epsilon)
		if more.Epsilon < g.EpsilonLower*(1-1e-12) || more.Epsilon < g.Epsilon-precise-1e-300 {
			t.Errorf("%+v, %d runs, delta %g: epsilon %.9g to %.9g, with %s %.9g (%+v, %d runs)", p.mechanism, p.runs, delta,
				g.EpsilonLower, g.Epsilon, what, more.Epsilon, worse.mechanism, worse.runs)
		}
	}
}
