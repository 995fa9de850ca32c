package pld

import (
	"math"
	"slices"
	"sync"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/meter"
)

// allocation holds the bounds of the likelihood ratio of random allocation, by how small a δ they are for: points far
// out would make those in the middle rarer. It is safe for concurrent use.
type allocation struct {
	steps, picks, epochs int64
	sigma                float64

	mu    sync.Mutex // guards what follows
	known map[allocationKey]*ratios
}

type allocationKey struct {
	side float64
	tier int
}

// allocationTails are logarithms of a tail that a grid of ratios may leave out.
var allocationTails = [...]float64{-46, -110, -300, -705}

// allocationPoints are the numbers of points of their grids. With the points of the first grid, ε is 1e-3 to 4e-3 of
// it too large. The other grids bring ε within 1 to 5 % of its lower bound, for 19 epochs and more.
var allocationPoints = [...]int{640, 820, 1150, 1700}

// room is the logarithm of the number of factors that can leave a tail out.
func (a *allocation) room() float64 { return math.Log(float64(a.picks) * float64(a.epochs)) }

// tier returns the first tier that leaves out about e^logTail at most, or the best one.
func (a *allocation) tier(logTail float64) int {
	tier, room := 0, a.room()
	for tier+1 < len(allocationTails) && allocationTails[tier]+room > logTail {
		tier++
	}
	return tier
}

// at returns the bound of a tier on a side.
func (a *allocation) at(side float64, tier int, w *meter.Work) *ratios {
	key := allocationKey{side, tier}
	a.mu.Lock()
	defer a.mu.Unlock()
	r, ok := a.known[key]
	if !ok {
		tail := allocationTails[key.tier]
		r = allocationRatios(a.steps, a.picks, a.epochs, a.sigma, ratioGrid{allocationPoints[key.tier], math.Sqrt(-2 * tail), math.Exp(tail), side, w})
		r.grid.work = nil
		if a.known == nil {
			a.known = make(map[allocationKey]*ratios)
		}
		a.known[key] = r
	}
	return r
}

// Allocation returns the pairs of the Gaussian with noise multiplier sigma when each record takes part in picks of
// steps steps, epochs times over, each time by a new draw: for removing and for adding a record. Some data sets
// attain the pairs of one pick. More picks are not known to be as bad as one of each block of steps.
func Allocation(steps, picks, epochs int64, sigma float64) Pairs {
	if steps == picks || !HasAllocationRatios(sigma) {
		mu := math.Sqrt(float64(picks)) * math.Sqrt(float64(epochs)) / sigma
		if steps == picks {
			return Attained(Gaussian(mu))
		}
		return Pairs{Upper: []Pair{Gaussian(mu)}}
	}
	a := &allocation{steps: steps, picks: picks, epochs: epochs, sigma: sigma}
	pairs := Pairs{Upper: []Pair{&allocationPair{a, 1, true}, &allocationPair{a, 1, false}}}
	if picks == 1 {
		pairs.Lower = []Pair{&allocationPair{a, -1, true}, &allocationPair{a, -1, false}}
	}
	return pairs
}

// Below leastAllocationNoise likelihood ratios leave the range of floats, and beyond mostAllocationNoise they are 1 but
// for rounding errors. The Gaussian without amplification, which dominates by joint convexity, takes their place.
const (
	leastAllocationNoise = 0.06
	mostAllocationNoise  = 1e6
)

// HasAllocationRatios reports whether likelihood ratios of random allocation with noise multiplier sigma are floats.
func HasAllocationRatios(sigma float64) bool {
	return sigma >= leastAllocationNoise && sigma <= mostAllocationNoise
}

// allocationPair is a direction of random allocation.
type allocationPair struct {
	of     *allocation
	side   float64
	remove bool
}

// atoms returns the losses, which leave out about e^logTail at most.
func (p *allocationPair) atoms(logTail float64) wholeAtoms { return p.ofTier(p.of.tier(logTail)) }

// ofTier returns the losses of a tier.
func (p *allocationPair) ofTier(tier int) wholeAtoms {
	r := p.of.at(p.side, tier, nil)
	if p.remove {
		return wholeAtoms{r.removing(), p.side}
	}
	return wholeAtoms{r.adding(), p.side}
}

func (p *allocationPair) all() wholeAtoms { return p.atoms(math.Inf(-1)) }

func (p *allocationPair) Normal() (rate float64, ok bool) { return 0, false }
func (p *allocationPair) cliff() float64                  { return math.Inf(1) }
func (p *allocationPair) Largest() float64                { return p.all().Largest() }
func (p *allocationPair) Variation() float64              { return p.all().Variation() }

// infinite bounds the mass without computing it: in each of some 40 operations lostMass is added, and it grows with
// the number of factors.
func (p *allocationPair) infinite() float64 {
	return 1e6 * lostMass * float64(p.of.picks) * float64(p.of.epochs)
}

// Unsampled returns the Gaussian with all noise.
func (p *allocationPair) Unsampled() (mu, epsilon float64) {
	return math.Sqrt(float64(p.of.picks)) * math.Sqrt(float64(p.of.epochs)) / p.of.sigma, 0
}

// singleSpill is −log of the share of δ that losses left out may have, and is part of ε.
const singleSpill = 14

// Single returns at most what the Gaussian with all noise has.
//
// ε does not rise with δ. That holds within a tier, which is one pair, but the next tier might have less at its largest
// δ than this one has there. Therefore every tier has at least what those before it have at the smallest δ that is
// theirs, D > δ. No bound is lost: more is still a bound from above, and ε(D) is at most the true ε(δ) if it is a
// bound from below. Take δ₁ < δ₂, of tiers k >= j. If k = j both are the larger of one falling function and the same
// constants. If k > j, ε(δ₁) is at least ε_j(D_j) >= ε_j(δ₂), and at least all constants of j.
func (p *allocationPair) Single(logDelta float64) (epsilon float64, ok bool) {
	tier := p.of.tier(logDelta - singleSpill)
	epsilon, ok = p.ofTier(tier).Single(logDelta)
	for before := range tier {
		least, found := p.ofTier(before).Single(allocationTails[before] + p.of.room() + singleSpill)
		if found {
			epsilon, ok = math.Max(epsilon, least), true
		}
	}
	if p.side < 0 {
		return epsilon, ok
	}
	mu, _ := p.Unsampled()
	return math.Min(epsilon, gaussian.Epsilon(mu, logDelta)), true
}

func (p *allocationPair) truncate(logTail float64) (Pair, bool) {
	atoms := p.atoms(logTail)
	if small, ok := atoms.truncate(logTail); ok {
		return small, true
	}
	return atoms, true
}

func (p *allocationPair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	return p.all().Nodes(tilt, floor, panel)
}

func (p *allocationPair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return p.all().Discretise(step, bottom, side, w)
}

// wholeAtoms is a pair with atoms some of whose losses may be rare. Single counts the infinite loss.
type wholeAtoms struct {
	atomPair

	side float64
}

// truncate makes the largest losses infinite.
func (p wholeAtoms) truncate(logTail float64) (Pair, bool) {
	room := math.Exp(logTail)
	first, beyond := 0, 0.0
	for first+1 < len(p.losses) && beyond+p.upper[first] <= room {
		beyond += p.upper[first]
		first++
	}
	if first == 0 {
		return p, false
	}
	small := atomPair{losses: p.losses[first:], upper: p.upper[first:], infiniteMass: p.infiniteMass + beyond}
	return wholeAtoms{small, p.side}, true
}

// Single solves δ(ε), rounded to the side of the pair.
func (p wholeAtoms) Single(logDelta float64) (epsilon float64, ok bool) {
	return p.solve(logDelta, p.side)
}

// Nodes returns the atoms. Their masses do not add up to 1 where they bound others.
func (p wholeAtoms) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	n, ok = p.atomPair.Nodes(tilt, floor, panel)
	upper, excess := 0.0, 0.0
	for i, mass := range n.Mass {
		upper += mass
		excess += n.Lower[i] - mass
	}
	n.beyond, n.Drift = 1-upper, excess
	return n, ok
}

// allocationRatios returns a bound of the likelihood ratio of random allocation with the Gaussian of noise
// multiplier sigma: each record takes part in picks of steps steps, epochs times over, each time by a new draw.
//
// Of one pick, Q = N(0, σ²I) on t coordinates and P is the mean of N(e_i, σ²I), so that S is the mean of t independent
// lognormal ratios. More picks are one from each of as many blocks of t/k steps, rounded: a random partition with a
// pick from each block is a uniform set of picks, and the partition may be revealed. Runs compose by products.
func allocationRatios(steps, picks, epochs int64, sigma float64, o ratioGrid) *ratios {
	one := lognormal(sigma, o)
	v := 1 / (sigma * sigma)
	mean := func(x *ratios, count int64, y *ratios, other int64) *ratios {
		return meanOf(x, float64(count), y, float64(other), math.Sqrt(log1pExpOver(v, float64(count+other))))
	}
	product := func(x *ratios, _ int64, y *ratios, _ int64) *ratios { return productOf(x, y) }
	size, larger := steps/picks, steps%picks // larger blocks have one step more
	block := powerOf(one, size, mean)
	var all *ratios
	if n := (picks - larger) * epochs; n > 0 {
		all = powerOf(block, n, product)
	}
	if larger == 0 {
		return all
	}
	rest := powerOf(mean(block, size, one, 1), larger*epochs, product)
	if all == nil {
		return rest
	}
	return productOf(all, rest)
}

// log1pExpOver returns log(1 + (e^v − 1)/a).
func log1pExpOver(v, a float64) float64 {
	if v > 30 {
		return math.Log1p(math.Exp(v-math.Log(a)) - 1/a)
	}
	return math.Log1p(math.Expm1(v) / a)
}

// removing returns the pair P against Q.
func (r *ratios) removing() atomPair {
	shift := r.grid.side * r.lossError
	scale := 1 + shift - r.massError
	p := atomPair{infiniteMass: r.infinite}
	for i, s := range slices.Backward(r.s) {
		if r.p[i] > 0 && s > 0 {
			p.losses = append(p.losses, r.loss(i, 1)+shift)
			p.upper = append(p.upper, r.p[i]*scale)
		}
	}
	return p
}

// adding returns the pair Q against P.
func (r *ratios) adding() atomPair {
	shift := r.grid.side * r.lossError
	scale := 1 - r.massError
	var p atomPair
	for i := range r.s {
		switch {
		case r.s[i] == 0:
			p.infiniteMass += r.q[i] * scale
		case r.q[i] > 0:
			p.losses = append(p.losses, r.loss(i, -1)+shift)
			p.upper = append(p.upper, r.q[i]*scale)
		}
	}
	return p
}

// loss returns sign·log s, rounded up for an upper bound and down for a lower one.
func (r *ratios) loss(i int, sign float64) float64 {
	l := math.Log(r.s[i])
	return sign*l + r.grid.side*0x1p-51*math.Abs(l)
}

// AllocationReplace returns the pairs for replacing a record. Its profile is the less of two: the one of the Gaussian
// with all noise, since pairs are jointly convex, and through the data set without the record
//
//	δ(ε) <= δ_remove(ε₁) + e^{ε₁}·δ_add(ε − ε₁), 0 <= ε₁ <= ε.
//
// For hockey sticks at e^{ε₁} and e^{ε₂}, (P − e^{ε₁+ε₂}·R)₊ <= (P − e^{ε₁}·Q)₊ + e^{ε₁}·(Q − e^{ε₂}·R)₊ everywhere.
// The other direction is the same by symmetry. If the other record adds nothing, the pairs of removing and adding are
// attained.
//
// hull returns a pair that dominates a profile, given ε as a function of log δ. It stands for a run where several are
// composed: pairs that dominate each run dominate them together (Zhu, Dong and Wang, "Optimal accounting of
// differential privacy via characteristic function", 2022, Theorem 10). So does N(0, 1) against N(μ, 1) with μ² added
// up, so that the less of both ε holds. One run of all epochs is better than several runs of one: it adds up removals
// and additions before they meet.
func AllocationReplace(steps, picks, epochs int64, sigma float64, hull func(epsilon func(logDelta float64) float64) Pair) Pairs {
	pairs := Allocation(steps, picks, epochs, sigma)
	mu := 2 * math.Sqrt(float64(picks)) * math.Sqrt(float64(epochs)) / sigma
	remove, ok := pairs.Upper[0].(*allocationPair)
	if !ok {
		if steps == picks {
			return Attained(Gaussian(mu))
		}
		return Pairs{Upper: []Pair{Gaussian(mu)}}
	}
	p := &allocationReplacePair{remove: remove, add: pairs.Upper[1].(*allocationPair), mu: mu}
	p.hull = sync.OnceValue(func() wholeAtoms {
		return wholeAtoms{hull(func(logDelta float64) float64 {
			epsilon, _ := p.Single(logDelta)
			return epsilon
		}).(atomPair), 1}
	})
	return Pairs{Upper: []Pair{p}, Lower: pairs.Lower}
}

// allocationReplacePair bounds random allocation if a record is replaced.
type allocationReplacePair struct {
	remove, add *allocationPair
	mu          float64
	hull        func() wholeAtoms // of Single
}

// replaceShares are the shares of δ for removing that are tried.
var replaceShares = [...]float64{1e-4, 1e-3, 0.01, 0.03, 0.06, 0.1, 0.15, 0.2, 0.27, 0.35, 0.43, 0.5, 0.57, 0.65, 0.73, 0.8, 0.85, 0.9, 0.94, 0.97, 0.99, 0.999}

// splitRounding covers the rounding errors of the split of δ.
const splitRounding = 1e-13

// Single takes the least bound over shares of δ. All of them fall in δ, as the pairs of removing and adding do:
// less δ means more ε₁, so that less is left for adding.
func (p *allocationReplacePair) Single(logDelta float64) (epsilon float64, ok bool) {
	epsilon = gaussian.Epsilon(p.mu, logDelta)
	for _, share := range replaceShares {
		first, ok := p.remove.Single(logDelta + math.Log(share))
		if !ok || first >= epsilon {
			continue
		}
		if second, ok := p.add.Single(logDelta + math.Log1p(-share) - first); ok {
			epsilon = math.Min(epsilon, (first+second)*(1+splitRounding))
		}
	}
	return epsilon, true
}

func (p *allocationReplacePair) Normal() (rate float64, ok bool)  { return 0, false }
func (p *allocationReplacePair) cliff() float64                   { return math.Inf(1) }
func (p *allocationReplacePair) Largest() float64                 { return p.hull().Largest() }
func (p *allocationReplacePair) infinite() float64                { return p.hull().infinite() }
func (p *allocationReplacePair) Variation() float64               { return p.hull().Variation() }
func (p *allocationReplacePair) Unsampled() (mu, epsilon float64) { return p.mu, 0 }

func (p *allocationReplacePair) truncate(logTail float64) (Pair, bool) {
	small, _ := p.hull().truncate(logTail)
	return small, true
}

func (p *allocationReplacePair) Nodes(tilt, floor, panel float64) (n *Nodes, ok bool) {
	return p.hull().Nodes(tilt, floor, panel)
}

func (p *allocationReplacePair) Discretise(step, bottom, side float64, w *meter.Work) (g Grid, ok bool) {
	return p.hull().Discretise(step, bottom, side, w)
}
