package pld

import (
	"math"
	"sync"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Lots are how shuffling cuts the records of an epoch.
type Lots struct {
	Count   int64 // in an epoch, 0 if unknown: then only bounds from above are known, without amplification
	AreEven bool  // whether all have the same size
}

// mostLots bounds the number of lots for which there are bounds from below.
const mostLots = 1_000_000

// ShuffledReplaceOne returns the pairs of an epoch of shuffled lots with noise multiplier z, relative to the
// sensitivity when a record is replaced.
//
// The record that differs is in one lot. Whichever it is, the outputs are at most as easy to tell apart as N(0, 1) and
// N(1/z, 1), and so are their means over all orders, by joint convexity. [shufflingEpsilon] may say more; hull makes a
// pair of it, as for [AllocationReplace].
//
// From below: let all gradients be −C, except that one record has gradient C in one of the data sets. A lot with it
// then has a sum larger by 2C, and it is in a uniform lot if all have the same size: that is random allocation to the
// lots, with noise multiplier z, in both directions. Uneven lots give weights w in the place of 1/t. The mean over all
// permutations of lots is the uniform case, which is as easy to tell apart at most, by joint convexity. The same
// argument shows, by permutations of the lots of each epoch, that one order for all epochs is no better than fresh
// ones.
func ShuffledReplaceOne(lots Lots, z float64, hull func(epsilon func(logDelta float64) float64) Pair) Pairs {
	if lots.Count == 1 {
		return Attained(Gaussian(1 / z))
	}
	pairs := Pairs{Upper: []Pair{shuffledUpper(lots, z, 1/z, hull)}}
	if lots.Count > 1 && lots.Count <= mostLots {
		pairs.Lower = Allocation(lots.Count, 1, 1, z).Lower
	}
	return pairs
}

// ShuffledZeroOut is ShuffledReplaceOne if the vector of a record is made 0, with noise multiplier sigma relative to
// the clipping norm.
//
// From below, all other gradients are −C and the record's gradient is C. Its lot has a sum larger by 2C with it, and by
// C if it is made 0. Whether the largest sum exceeds a threshold c is a pair of two outcomes (Chua, Ghazi, Kamath,
// Kumar, Manurangsi, Sinha and Zhang, "How private are DP-SGD implementations?", 2024).
func ShuffledZeroOut(lots Lots, sigma float64, hull func(epsilon func(logDelta float64) float64) Pair) Pairs {
	if lots.Count == 1 {
		return Attained(Gaussian(1 / sigma))
	}
	// Other records may be exchanged for it in shufflingEpsilon, at twice the distance.
	pairs := Pairs{Upper: []Pair{shuffledUpper(lots, 0.5*sigma, 1/sigma, hull)}}
	if lots.Count > 1 && lots.Count <= mostLots && HasAllocationRatios(sigma) {
		pairs.Lower = []Pair{newLargestLot(lots.Count, sigma, true), newLargestLot(lots.Count, sigma, false)}
	}
	return pairs
}

// shuffledUpper returns the pair of the Gaussian with mu, or one with the bound of shufflingEpsilon where that is less for
// some δ.
func shuffledUpper(lots Lots, z, mu float64, hull func(epsilon func(logDelta float64) float64) Pair) Pair {
	if !lots.AreEven {
		return Gaussian(mu)
	}
	p := &hullPair{mu: mu}
	p.single = func(logDelta float64) float64 {
		return math.Min(gaussian.Epsilon(mu, logDelta), shufflingEpsilon(lots.Count, z, logDelta))
	}
	p.hull = sync.OnceValue(func() wholeAtoms { return wholeAtoms{hull(p.single).(atomPair), 1} })
	for logDelta := -1.0; logDelta > -100; logDelta *= 1.5 {
		if p.single(logDelta) < gaussian.Epsilon(mu, logDelta) {
			return p
		}
	}
	return Gaussian(mu)
}

// shufflingEpsilon bounds ε of an epoch of t shuffled lots of the same size, or is +Inf.
//
// In every lot without the record that differs, choose one record at random, and tell where all others are. Each way
// to exchange the t records that are left between the lots is then equally likely: they are shuffled over t adaptive
// mechanisms, each of which adds a record to its input and then noise. If these are (ε₀, δ₀)-DP for any two records,
// the epoch is (ε, δ + (e^ε + 1)(1 + e^{ε₀}/2)·t·δ₀)-DP with
//
//	ε = log(1 + (e^{ε₀} − 1)/(e^{ε₀} + 1)·(8√(e^{ε₀}·log(4/δ)/t) + 8e^{ε₀}/t)) if ε₀ <= log(t/(16·log(2/δ)))
//
// (Feldman, McMillan and Talwar, "Hiding among the clones", 2021, Theorems 3.1 and 3.8).
func shufflingEpsilon(t int64, z, logDelta float64) float64 {
	const share = 0.9 // of δ outside of δ₀
	count, best := float64(t), math.Inf(1)
	inner := logDelta + math.Log(share)
	limit := math.Log(count / (16 * (math.Ln2 - inner)))
	for smaller := 2.0; smaller < 40; smaller++ {
		logDelta0 := logDelta - math.Log(count) - smaller
		e0 := gaussian.Epsilon(1/z, logDelta0)
		if !(e0 <= limit) {
			break // ε₀ rises
		}
		grown := math.Exp(e0) / count
		epsilon := math.Log1p(math.Tanh(0.5*e0) * 8 * (math.Sqrt(grown*(2*math.Ln2-inner)) + grown))
		if math.Ln2+epsilon+math.Log1p(0.5*math.Exp(e0))+math.Log(count)+logDelta0 <= logDelta+math.Log1p(-share) {
			best = math.Min(best, epsilon*(1+splitRounding))
		}
	}
	return best
}

// hullPair dominates a symmetric profile.
type hullPair struct {
	mu     float64 // N(0, 1) against N(mu, 1) is no more private
	single func(logDelta float64) float64
	hull   func() wholeAtoms
}

func (p *hullPair) Single(logDelta float64) (epsilon float64, ok bool) {
	return p.single(logDelta), true
}
func (p *hullPair) Normal() (rate float64, ok bool)  { return 0, false }
func (p *hullPair) cliff() float64                   { return math.Inf(1) }
func (p *hullPair) Largest() float64                 { return p.hull().Largest() }
func (p *hullPair) infinite() float64                { return p.hull().infinite() }
func (p *hullPair) Variation() float64               { return p.hull().Variation() }
func (p *hullPair) Unsampled() (mu, epsilon float64) { return p.mu, 0 }

func (p *hullPair) truncate(logTail float64) (Pair, bool) {
	small, _ := p.hull().truncate(logTail)
	return small, true
}

func (p *hullPair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	return p.hull().Nodes(tilt, floor, panel)
}

func (p *hullPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return p.hull().Discretise(step, bottom, side, w)
}

// largestLot is the pair of whether the largest sum of a lot exceeds a threshold. For more than one run the threshold is
// the one for which the mean loss is largest.
type largestLot struct {
	wholeAtoms

	lots, sigma float64
	remove      bool
}

// largestLotRounding bounds the relative errors of the probabilities of largestLot.
const largestLotRounding = 1e-12

func newLargestLot(lots int64, sigma float64, remove bool) largestLot {
	p := largestLot{lots: float64(lots), sigma: sigma, remove: remove}
	c := p.bestThreshold(func(c float64) float64 {
		with, without := p.outcomes(c)
		return with*math.Log(with/without) + (1-with)*(math.Log1p(-with)-math.Log1p(-without))
	})
	a, b := p.outcomes(c)
	pair := atomPair{
		losses: []float64{math.Log(a/b) - 4*largestLotRounding, math.Log1p(-a) - math.Log1p(-b) - 4*largestLotRounding},
		upper:  []float64{a * (1 - largestLotRounding), (1 - a) * (1 - largestLotRounding)},
	}
	p.wholeAtoms = wholeAtoms{pair, -1}
	return p
}

// outcomes returns the probability that the largest sum is above c, with the record and without it; or that it is not
// if a record is added.
func (p largestLot) outcomes(c float64) (upper, lower float64) {
	others := (p.lots - 1) * gaussian.LogCDF(c/p.sigma)
	with, without := others+gaussian.LogCDF((c-2)/p.sigma), others+gaussian.LogCDF((c-1)/p.sigma)
	if p.remove {
		return -math.Expm1(with), -math.Expm1(without)
	}
	return math.Exp(without), math.Exp(with)
}

// bestThreshold returns a threshold for which a value is large.
func (p largestLot) bestThreshold(value func(c float64) float64) float64 {
	best, at := math.Inf(-1), 1.0
	try := func(c float64) {
		if v := value(c); v > best {
			best, at = v, c
		}
	}
	reach := 2 + 12*p.sigma
	for i := range 401 {
		try(reach * (float64(i)/200 - 1))
	}
	for width := reach / 400; width > 1e-9*reach; width /= 2 {
		center := at
		try(center - width)
		try(center + width)
	}
	return at
}

// Single takes the best threshold for δ.
func (p largestLot) Single(logDelta float64) (epsilon float64, ok bool) {
	delta := math.Exp(logDelta)
	value := func(c float64) float64 {
		a, b := p.outcomes(c)
		if a -= delta; !(a > 0 && b > 0) {
			return math.Inf(-1)
		}
		return math.Log(a/b) - largestLotRounding*(3+(a+delta)/a)
	}
	return math.Max(0, value(p.bestThreshold(value))), true
}
