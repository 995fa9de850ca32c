package privacy

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"sort"
)

// Location is the accountant of repeated selection, [RepeatedSelection], [CappedSelection],
// [PoissonSelection] and [BinomialSelection], from the whole profile δ(ε) of a candidate. It needs no
// Rényi divergence and is nearly tight: for the truncated negative binomial distribution within 2 % of
// what an attack attains on some candidates.
//
// Let φ(z) = E z^K for the number K of candidates, and let the pair (P, Q) dominate a candidate.
// Order its outputs by score, equal scores by coins that belong to the output. Then
//
//	δ(ε) <= ∫ G(e^{ε−ℓ}) dP(ℓ),  G(x) = sup_{0<=u<=1} [φ′(u) − x·φ′(β(u))]₊,
//
// where ℓ = log dP/dQ and β(u) is the least probability under Q of a set that has the
// probability u under P.
//
// Proof. Where an output has mass dp and dp′ on two adjacent data sets, and the outputs up to it
// have u and u′, the best of K has φ′(u)·dp and φ′(u′)·dp′ (outputs with an atom: the mean of φ′
// over what it covers; K = 0 is as likely on both). No test does better against the candidate
// than against the pair, so that u′ >= β(u). Since φ′ does not fall,
// [φ′(u)·dp − e^ε·φ′(u′)·dp′]₊ <= dp·G(e^ε·dp′/dp). G is convex, as the supremum of functions
// [a − bx]₊, so that the sum of these is an f-divergence of the two data sets, and the pair has at
// least as much. ∎
//
// K = 1 gives the candidate's own profile. Nothing is assumed of φ, so that K may also be
// conditioned on being at most a number.
type Location struct {
	// UpperOnly leaves EpsilonLower out, an attack that takes about as long as ε.
	UpperOnly bool
}

// Name returns "location".
func (Location) Name() string { return "location" }

// Curve accounts a selection. It takes a tenth of a second for DP-SGD. The errors are m's
// validation error, and an *UnsupportedError for other mechanisms.
func (a Location) Curve(m Mechanism) (Curve, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	s, ok := m.(selectionOfRuns)
	if !ok {
		return nil, &UnsupportedError{a.Name(), m.Name(), "it is not the best of a number of runs"}
	}
	base, runs := s.candidate()
	profiles, err := newRunProfiles(base, runs)
	if err != nil {
		return nil, err
	}
	return &locationCurve{base: baseGuarantee(a, m), profiles: profiles, law: s.law(), upperOnly: a.UpperOnly}, nil
}

// selectionOfRuns is a Mechanism that releases the best of a random number of candidates.
type selectionOfRuns interface {
	Mechanism
	// candidate returns the mechanism of a candidate, and how often it runs.
	candidate() (base Mechanism, runs int64)
	// law returns the distribution of the number of candidates.
	law() countLaw
}

// locationCurve is the Curve of Location.
type locationCurve struct {
	base      Guarantee
	profiles  runProfiles
	law       countLaw
	upperOnly bool
}

func (c *locationCurve) countIn(w *Work) { countIn(c.profiles.curve, w) }

// Epsilon composes more than one step by adding ε and δ up. EpsilonLower is what an attack on data
// sets that exist shows, see [Location.Attack].
func (c *locationCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := errors.Join(checkSteps(steps), checkDelta(delta)); err != nil {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	each := delta / float64(steps)
	bounds, err := c.bounds(each)
	if err != nil {
		return Guarantee{}, err
	}
	for _, bound := range bounds {
		g.Epsilon = math.Max(g.Epsilon, bound.epsilon(each))
	}
	g.Epsilon *= float64(steps)
	if c.profiles.exact != nil && !c.upperOnly { // the first of the steps shows as much
		g = g.withLower(c.attack(c.profiles.exact.lower, delta))
	}
	if math.IsInf(g.Epsilon, 1) {
		g = g.warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g, nil
}

// bounds returns the bounds for both orders of the data sets, one if they agree, which are precise
// down to a δ.
func (c *locationCurve) bounds(least float64) ([]*locationBound, error) {
	rate := leastRate
	if tail := locationTail * least / c.law.mean(); tail > rate { // not if it is no number
		rate = tail
	}
	forward, backward, err := c.profiles.down(rate)
	if err != nil {
		return nil, err
	}
	bounds := []*locationBound{newLocationBound(forward, backward, c.law)}
	if len(c.profiles.directions) > 1 {
		bounds = append(bounds, newLocationBound(backward, forward, c.law))
	}
	return bounds, nil
}

// locationTail is the share of δ that the candidate's losses beyond the known profile may take.
const locationTail = 1e-4

// runProfiles are the profiles of a number of runs of a mechanism.
type runProfiles struct {
	curve Curve
	runs  int64
	exact *lossCurve // the curve if it is Exact's, or nil
	// directions give ε for log δ, of the two orders of the data sets or of both at once.
	directions []func(logDelta float64) (epsilon float64, err error)
}

// newRunProfiles takes the profiles from Exact, each order of the data sets by itself, where it
// is precise, and otherwise from Tightest.
func newRunProfiles(base Mechanism, runs int64) (runProfiles, error) {
	c, err := newLossCurve(Exact{}, base, []lossMethod{(*lossSum).invert, pessimistic})
	if err == nil && !boundedByPure(base) {
		p := runProfiles{curve: c, runs: runs, exact: c}
		for _, sum := range c.upper {
			p.directions = append(p.directions, func(logDelta float64) (float64, error) {
				c.mu.Lock()
				defer c.mu.Unlock()
				epsilon, _ := sum.epsilon(c.methods, float64(runs), logDelta, 1)
				if math.IsNaN(epsilon) { // beyond the range of floats
					epsilon = math.Inf(1)
				}
				return epsilon, nil
			})
		}
		return p, nil
	}
	curve, err := Tightest{}.Curve(base)
	if err != nil {
		return runProfiles{}, err
	}
	return runProfiles{curve: curve, runs: runs, directions: []func(float64) (float64, error){func(logDelta float64) (float64, error) {
		g, err := curve.Epsilon(runs, math.Exp(logDelta))
		return g.Epsilon, err
	}}}, nil
}

// profileNodes is the number of values of ε that a profile is known by. Twice as many lower
// the ε of a selection by some 1e-4 of it.
const profileNodes = 160

// down returns points of the profiles of both orders of the data sets, down to a δ.
func (p runProfiles) down(least float64) (forward, backward []profilePoint, err error) {
	known := make([][]profilePoint, len(p.directions))
	for i, direction := range p.directions {
		if known[i], err = pointsOf(direction, least, profileNodes); err != nil {
			return nil, nil, err
		}
	}
	return known[0], known[len(known)-1], nil
}

// pointsOf returns points of a profile in rising order of ε, the first with ε = 0, at equal
// distances of √log(1/δ), in which ε is nearly linear.
func pointsOf(direction func(logDelta float64) (float64, error), least float64, nodes int) ([]profilePoint, error) {
	zero, furthest := 0.0, math.Sqrt(-math.Log(least))
	positive := furthest
	for range 16 { // between δ with ε = 0 and others
		r := 0.5 * (zero + positive)
		epsilon, err := direction(-r * r)
		if err != nil {
			return nil, err
		}
		if epsilon > 0 {
			positive = r
		} else {
			zero = r
		}
	}
	points := []profilePoint{{zero, 0, math.Exp(-zero * zero)}}
	for i := range nodes + 1 {
		r := positive + (furthest-positive)*float64(i)/float64(nodes)
		epsilon, err := direction(-r * r)
		if err != nil {
			return nil, err
		}
		if math.IsInf(epsilon, 1) {
			break
		}
		points = append(points, profilePoint{r, epsilon, math.Exp(-r * r)})
	}
	return points, nil
}

// lowerHull returns the points on the lower convex hull of δ over e^ε. A point above the
// profile only raises the hull, which stays above it.
func lowerHull(points []profilePoint) []profilePoint {
	sorted := slices.SortedFunc(slices.Values(points), func(a, b profilePoint) int {
		return cmp.Or(cmp.Compare(a.epsilon, b.epsilon), cmp.Compare(a.delta, b.delta))
	})
	var hull []profilePoint
	for _, p := range sorted {
		if n := len(hull); n > 0 && p.delta >= hull[n-1].delta { // δ does not rise
			continue
		}
		for n := len(hull); n > 1 && fallTo(hull[n-2], hull[n-1]) <= fallFrom(hull[n-1], p); n-- {
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// fallBetween returns by how much δ falls from a to b per unit of e^ε, 0 where that is below the range of floats.
func fallBetween(a, b profilePoint) float64 { return math.Exp(-a.epsilon) * fallFrom(a, b) }

// fallFrom returns fallBetween times e^ε of a.
func fallFrom(a, b profilePoint) float64 {
	return (a.delta - b.delta) / math.Expm1(b.epsilon-a.epsilon)
}

// fallTo returns fallBetween times e^ε of b.
func fallTo(a, b profilePoint) float64 { return (a.delta - b.delta) / -math.Expm1(a.epsilon-b.epsilon) }

// split is a probability z and its complement v = 1 − z. The smaller one keeps its precision.
type split struct{ z, v float64 }

// splitRounding covers the rounding errors of a complement.
const splitRounding = 4e-15

// mostRest and leastRest bound the complement of a probability.
func mostRest(x float64) float64  { return math.Min(1, 1-x+splitRounding) }
func leastRest(x float64) float64 { return math.Max(0, 1-x-splitRounding) }

// between returns the split at a share of the way from s to other.
func (s split) between(other split, share float64) split {
	return split{(1-share)*s.z + share*other.z, (1-share)*s.v + share*other.v}
}

// below returns by how much z is below the one of other.
func (s split) below(other split) float64 {
	if other.z < 0.5 {
		return other.z - s.z
	}
	return s.v - other.v
}

// discretePair is a pair of distributions on finitely many losses, by the losses from the
// largest to the smallest. Index 0 stands for the loss +Inf, which only the upper one has.
type discretePair struct {
	losses []float64
	upper  []float64 // masses of the upper distribution
	u      []split   // of the upper one: losses at least as large, not below what that is
	beta   []split   // of the lower one: β(u), not above it
}

// newDiscretePair returns the pair whose profile is linear in e^ε between the points, forward
// for one order of the data sets and backward for the other: it dominates all pairs whose
// profiles lie below. Its profile for −ε is 1 − e^{−ε}·(1 − δ(ε)) with the backward δ.
func newDiscretePair(forward, backward []profilePoint) discretePair {
	forward, backward = lowerHull(forward), lowerHull(backward)
	f, b := joinAtZero(forward, backward)
	infinite := f[len(f)-1].delta
	d := discretePair{[]float64{math.Inf(1)}, []float64{infinite}, []split{{infinite, leastRest(infinite)}}, []split{{0, 1}}}
	// Losses above 0. The lower distribution has the mass fall beyond a point, the upper one
	// δ + e^ε·fall.
	beyond := 0.0 // e^ε·fall of the next point
	for i := len(f) - 1; i > 0; i-- {
		here, fall := fallTo(f[i-1], f[i]), fallBetween(f[i-1], f[i])
		u := math.Min(1, f[i].delta+here)
		d.add(f[i].epsilon, here-beyond, split{u, leastRest(u)}, split{fall, mostRest(fall)})
		beyond = fallFrom(f[i-1], f[i])
	}
	// Losses below 0, where the upper one has the mass next below, and the lower one δ + e^ε·next.
	above := math.Max(0, 1-d.u[len(d.u)-1].z)
	for i := range b {
		next, below := 0.0, b[i].delta
		if i+1 < len(b) {
			next, below = fallBetween(b[i], b[i+1]), math.Min(1, below+fallFrom(b[i], b[i+1]))
		}
		d.add(-b[i].epsilon, math.Max(0, above-next), split{mostRest(next), next}, split{leastRest(below), below})
		above = next
	}
	return d
}

// joinAtZero gives both hulls the same first point at ε = 0, where they share δ: the smaller of
// theirs, or the least chord over 1 from a point of one to a point of the other. Bounds on profiles,
// unlike profiles, may not be convex there.
func joinAtZero(forward, backward []profilePoint) (f, b []profilePoint) {
	delta := math.Min(forward[0].deltaAtZero(), backward[0].deltaAtZero())
	for _, p := range backward {
		// δ at e^−ε is 1 − e^{−ε}(1 − δ_backward), at e^ε δ_forward.
		left := math.Exp(-p.epsilon)
		atLeft := 1 - left*(1-p.delta)
		for _, q := range forward {
			if right := math.Exp(q.epsilon); right > left {
				delta = math.Min(delta, atLeft+(1-left)/(right-left)*(q.delta-atLeft))
			}
		}
	}
	start := []profilePoint{{0, 0, delta}}
	return lowerHull(append(start, forward...)), lowerHull(append(start, backward...))
}

// deltaAtZero bounds δ(0) by a point.
func (p profilePoint) deltaAtZero() float64 {
	if p.epsilon == 0 {
		return p.delta
	}
	return 1
}

func (d *discretePair) add(loss, upper float64, u, beta split) {
	d.losses = append(d.losses, loss)
	d.upper = append(d.upper, upper)
	d.u = append(d.u, u)
	d.beta = append(d.beta, beta)
}

// locationBound is the bound of Location on δ(ε).
type locationBound struct {
	pair    discretePair
	hull    []selectionLine // of G, in rising order of b
	largest float64         // at least G(0) = E[K]
}

// selectionLine is the line a − b·x. The upper envelope of all lines is at least G.
type selectionLine struct{ a, b float64 }

func newLocationBound(forward, backward []profilePoint, law countLaw) *locationBound {
	l := &locationBound{pair: newDiscretePair(forward, backward)}
	l.hull = upperHull(selectionLines(l.pair, law))
	l.largest = math.Max(law.mean()*(1+countRounding), l.hull[len(l.hull)-1].a)
	return l
}

// selectionLines returns lines whose upper envelope is at least G. Between two corners of the
// boundary β, u and β(u) are linear: φ′(u) is below its chord, and φ′(β(u)) above its tangents at
// both ends, since φ′ is convex. So the largest values are at the ends and where the
// tangents cross. At any other point the lower of the two tangents is on the safe side. Rounding
// errors of φ′ and φ″ raise the lines. Where one of these is no finite number, G is taken to be +Inf.
func selectionLines(d discretePair, law countLaw) []selectionLine {
	const (
		finest = 100.0 // parts of a piece per unit of the logarithms of φ′
		most   = 640
		more   = 1 + countRounding
		less   = 1 - countRounding
	)
	finite := true
	at := func(s split) (value, slope float64) {
		value, slope = law.at(s)
		finite = finite && value <= math.MaxFloat64 && slope <= math.MaxFloat64
		return value, slope
	}
	below := func(a, b float64) selectionLine { // a float64 below leastLine may have lost its precision
		if b < leastLine {
			b = 0
		}
		return selectionLine{a * more, b}
	}
	a0, _ := at(d.u[0])
	b0, s0 := at(d.beta[0])
	lines := []selectionLine{below(a0, b0*less)}
	for i := 1; i < len(d.losses) && finite; i++ {
		u0, u1 := d.u[i-1], d.u[i]
		v0, v1 := d.beta[i-1], d.beta[i]
		aEnd, _ := at(u1)
		bEnd, _ := at(v1)
		pieces := math.Ceil(finest * math.Max(math.Log(aEnd/a0), math.Log(bEnd/b0)))
		if !(pieces < most) {
			pieces = most
		}
		pieces = math.Max(pieces, 1)
		width := v0.below(v1) / pieces
		for k := 1.0; k <= pieces; k++ {
			share := k / pieces
			a1, _ := at(u0.between(u1, share))
			b1, s1 := at(v0.between(v1, share))
			cross := 0.5
			if rise := width * (s1 - s0); rise > 0 {
				cross = math.Min(1, math.Max(0, (b0-b1+width*s1)/rise))
			}
			tangent := math.Min((b0+cross*width*s0)*less, b1*less-(1-cross)*width*s1*more)
			lines = append(lines, below(a0+cross*(a1-a0), tangent), below(a1, b1*less))
			a0, b0, s0 = a1, b1, s1
		}
	}
	if !finite {
		return []selectionLine{{math.Inf(1), 0}}
	}
	return lines
}

// leastLine is the least positive b of a line.
const leastLine = 0x1p-1000

// upperHull returns the lines on the upper envelope for x >= 0, in rising order of b and a.
func upperHull(lines []selectionLine) []selectionLine {
	slices.SortFunc(lines, func(p, q selectionLine) int { return cmp.Or(cmp.Compare(p.b, q.b), cmp.Compare(p.a, q.a)) })
	var hull []selectionLine
	for _, p := range lines {
		if n := len(hull); n > 0 && p.b == hull[n-1].b {
			hull = hull[:n-1]
		}
		if n := len(hull); n > 0 && p.a <= hull[n-1].a {
			continue
		}
		for len(hull) > 1 {
			n := len(hull)
			q, o := hull[n-1], hull[n-2]
			if (q.a-o.a)/(q.b-o.b) > (p.a-q.a)/(p.b-q.b) { // products would be below the range of floats
				break
			}
			hull = hull[:n-1]
		}
		hull = append(hull, p)
	}
	return hull
}

// largestGain returns G(x).
func (l *locationBound) largestGain(x float64) float64 {
	i := sort.Search(len(l.hull)-1, func(i int) bool { // the values rise to the largest and then fall
		p, q := l.hull[i], l.hull[i+1]
		return q.a-p.a <= x*(q.b-p.b)
	})
	line := l.hull[i]
	if line.b == 0 { // x may be infinite
		return line.a
	}
	return math.Max(0, line.a-x*line.b)
}

// delta returns the bound on δ(ε).
func (l *locationBound) delta(epsilon float64) float64 {
	sum := l.largest * l.pair.upper[0]
	for i := 1; i < len(l.pair.losses); i++ {
		sum += l.pair.upper[i] * l.largestGain(math.Exp(epsilon-l.pair.losses[i]))
	}
	return sum * (1 + locationMargin)
}

// locationMargin covers rounding errors.
const locationMargin = 1e-9

// epsilon returns the least ε >= 0 with a bound of at most delta, or +Inf.
func (l *locationBound) epsilon(delta float64) float64 {
	if l.delta(0) <= delta {
		return 0
	}
	fails, suffices := 0.0, 1.0
	for !(l.delta(suffices) <= delta) {
		if fails, suffices = suffices, 2*suffices; suffices > 1e4 {
			return math.Inf(1)
		}
	}
	for suffices-fails > 1e-9*suffices {
		middle := 0.5 * (fails + suffices)
		if l.delta(middle) <= delta {
			suffices = middle
		} else {
			fails = middle
		}
	}
	return suffices
}
