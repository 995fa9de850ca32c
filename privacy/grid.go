package privacy

import (
	"math"
	"math/cmplx"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"
)

// grid is a distribution of losses on the points offset + (first + i)·step, i >= 0.
type grid struct {
	first        int
	step, offset float64
	mass         []float64
}

// densityPair is a lossPair whose losses have a density, but for an atom at center.
type densityPair interface {
	// mass returns the mass of both distributions with a loss in (from, to].
	mass(from, to float64) (upper, lower float64)
	// center returns a loss in the bulk of the distribution. Where a grid is much coarser than the bulk,
	// it matters little only if it has a point there.
	center() float64
	// extent returns losses beyond which there is hardly any mass.
	extent() (lowest, highest float64)
}

// discretise rounds the losses of p to a grid, up for side > 0 and down for side < 0.
func discretise(p densityPair, step, bottom, side float64, w *Work) (g grid, ok bool) {
	lowest, highest := p.extent()
	lowest = math.Max(lowest, bottom)
	highest = math.Max(lowest, highest)
	g = grid{step: step, offset: p.center()}
	first, last := math.Floor((lowest-g.offset)/step)-1, math.Ceil((highest-g.offset)/step)+1
	if !(last-first < 2*maxGrid) || math.Abs(first) > math.MaxInt32 {
		return grid{}, false
	}
	g.first, g.mass = int(first), make([]float64, int(last-first)+1)
	if side > 0 {
		g.connect(p, w)
	} else {
		g.merge(p, lowest, highest, w)
	}
	return g, true
}

// leastMass is a mass below which floats lose digits.
const leastMass = 1e-290

// at returns the loss of a grid point.
func (g *grid) at(index int) float64 { return g.offset + float64(index)*g.step }

// put adds a mass at a grid point, or at the lowest one if that is below it.
func (g *grid) put(index int, mass float64) { g.mass[max(0, index-g.first)] += mass }

// connect rounds losses pessimistically: the mass of each cell is shared between its two ends so that
// both distributions keep their mass ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and
// Manurangsi, 2022). The discrete pair dominates p.
func (g *grid) connect(p densityPair, w *Work) {
	edge := math.Inf(-1)
	for i := range g.mass {
		w.add(pointWork)
		index := g.first + i
		upper, lower := p.mass(edge, g.at(index))
		edge = g.at(index)
		right := upper // all below the first point moves up to it, and what is not in the range of floats
		if below := math.Exp(g.at(index - 1)); i > 0 && lower > leastMass && !math.IsInf(below, 1) {
			right = math.Min(math.Max((upper-below*lower)/-math.Expm1(-g.step), 0), upper)
			g.mass[i-1] += upper - right
		}
		g.mass[i] += right
	}
	upper, _ := p.mass(edge, math.Inf(1)) // by rounding errors
	g.mass[len(g.mass)-1] += upper
}

// merge rounds losses optimistically: it cuts their range into cells, whose two masses say no more than
// in which cell a loss is. That is a post-processing, so that p dominates it. Cells are cut so that the logarithm
// of the quotient of their masses, between the losses at their ends, is at a grid point, or else rounded down to one.
//
// Cells are cut from both ends of the range, since densities rise towards the middle: there, an edge close to the
// next grid point is always found. The cell in the middle is what remains.
func (g *grid) merge(p densityPair, lowest, highest float64, w *Work) {
	center := p.center()
	if upper, lower := p.mass(center-0.5*g.step, center+g.step); upper > leastMass && lower > leastMass {
		g.offset = math.Log(upper / lower)
	}
	outside := 0.0
	right := highest
	for index := len(g.mass) - 1 + g.first; index > 0; index-- {
		w.add(4 * pointWork)
		if right > g.at(index) {
			to, mass, _ := g.cut(p, right, index, -1)
			g.put(index, mass)
			outside += mass
			right = to
		}
	}
	left := lowest
	for index := g.first + 1; index < 0; index++ {
		w.add(4 * pointWork)
		if left < g.at(index) {
			to, mass, ok := g.cut(p, left, index, 1)
			if ok {
				g.put(index, mass)
			} else {
				g.put(index-1, mass)
			}
			outside += mass
			left = to
		}
	}
	upper, lower := p.mass(left, right)
	if !(upper > leastMass && lower > leastMass) {
		return
	}
	excess := math.Log(upper/lower) - g.at(0)
	if excess < 0 {
		// Either all losses are rounded down a little more, or a part of the cell to the point below.
		to, mass, ok := g.cut(p, right, 0, -1)
		if !ok || -excess*outside < g.step*(upper-mass) {
			g.offset += excess
		} else {
			rest, _ := p.mass(left, to)
			g.put(-1, rest)
			upper = mass
		}
	}
	g.put(0, upper)
}

// cut returns the other end of the cell from an edge, above it for side > 0, whose quotient of masses belongs to
// the grid point with the given index, and the mass of the cell. ok is false where the quotient is below that.
func (g *grid) cut(p densityPair, edge float64, index int, side float64) (to, mass float64, ok bool) {
	target := g.at(index)
	near, far := target, target+side*g.step
	excess := func(to float64) (excess, mass float64) {
		from := edge
		if side < 0 {
			from, to = to, from
		}
		upper, lower := p.mass(from, to)
		if !(upper > leastMass && lower > leastMass) {
			return math.NaN(), 0
		}
		return math.Log(upper/lower) - target, upper
	}
	tolerance := 1e-4 * g.step
	best := math.NaN()
	to = 2*target - edge // if the density were constant
	for range 12 {
		e, m := excess(to)
		if math.IsNaN(e) {
			return target + 0.5*side*g.step, 0, false
		}
		if e >= 0 {
			best, mass = to, m
			if e <= tolerance {
				break
			}
		}
		// The excess rises with the end, by about half of it.
		if (e >= 0) == (side > 0) {
			far = to
		} else {
			near = to
		}
		next := to - 2*(e-0.5*tolerance)
		if !((next-near)*side > 0 && (far-next)*side >= 0) {
			next = 0.5 * (near + far)
		}
		if next == to {
			break
		}
		to = next
	}
	if !math.IsNaN(best) {
		return best, mass, true
	}
	_, mass = excess(far)
	return far, mass, false
}

// add adds an atom for side > 0 at the lowest point if it is below, at a grid point if it is on one, and
// otherwise shared between its neighbours so that both distributions keep their mass. For side < 0 it is rounded down.
func (g *grid) add(loss, mass, side float64) {
	i := (loss - g.offset) / g.step
	nearest, left := math.Round(i), math.Floor(i)
	switch {
	case i <= float64(g.first):
		if side > 0 || i == float64(g.first) {
			g.mass[0] += mass
		}
	case math.Abs(i-nearest) <= 0x1p-50*math.Abs(i):
		g.put(int(nearest), mass)
	case side < 0:
		g.put(int(left), mass)
	default:
		right := mass * math.Expm1(g.at(int(left))-loss) / math.Expm1(-g.step)
		g.put(int(left), mass-right)
		g.put(int(left)+1, right)
	}
}

func (p mixturePair) discretise(step, bottom, side float64, w *Work) (g grid, ok bool) {
	return discretise(p, step, bottom, side, w)
}

// center returns the loss at the mean of Q, or 0 where that has an atom.
func (p mixturePair) center() float64 {
	if len(p.branches) > 1 {
		return 0
	}
	return p.branches[0].sign * p.logMixture(-0.5/(p.z*p.z))
}

func (p mixturePair) extent() (lowest, highest float64) {
	furthest := p.end
	if furthest == 0 {
		furthest = 1 + largestDeviation*p.z
	}
	lo, hi := p.logMixture((-largestDeviation*p.z-0.5)/(p.z*p.z)), p.logMixture((furthest-0.5)/(p.z*p.z))
	switch {
	case len(p.branches) > 1:
		return -hi, hi
	case p.branches[0].sign < 0:
		return -hi, -lo
	default:
		return lo, hi
	}
}

// largestDeviation is the distance, in standard deviations, beyond which the mass is below 1e-310.
const largestDeviation = 38

// mass returns the mass of both distributions with loss in (from, to].
func (p mixturePair) mass(from, to float64) (upper, lower float64) {
	for _, b := range p.branches {
		lo, hi := p.position(b, from), p.position(b, to)
		if b.sign < 0 {
			lo, hi = hi, lo
		}
		lo, hi = math.Max(lo, b.from), math.Max(hi, b.from)
		width := (hi - lo) / p.z
		q, shifted := normalInterval(lo/p.z, hi/p.z, width), normalInterval((lo-1)/p.z, (hi-1)/p.z, width)
		upper += (1-b.upper)*q + b.upper*shifted
		lower += (1-b.lower)*q + b.lower*shifted
	}
	if len(p.branches) > 1 && from < 0 && to >= 0 {
		atom := (1 - p.q) * math.Erf(0.5/p.z/math.Sqrt2)
		upper, lower = upper+atom, lower+atom
	}
	return upper, lower
}

// position returns the x at which the loss on branch b is l.
func (p mixturePair) position(b branch, l float64) float64 {
	l *= b.sign
	if math.IsInf(l, 0) {
		return l
	}
	t := l
	if p.q < 1 {
		if l > 30 {
			t = l - math.Log(p.q) + math.Log1p(-(1-p.q)*math.Exp(-l))
		} else {
			t = math.Log1p(math.Max(-1, math.Expm1(l)/p.q)) // −Inf below log(1 − q)
		}
	}
	return p.z*p.z*t + 0.5
}

// normalInterval returns Φ(b) − Φ(a) for b − a = width: for small widths by Taylor's formula around the middle,
// whose next term is below 1e-16, and else from the tail where both are small.
func normalInterval(a, b, width float64) float64 {
	if !(width > 0) {
		return 0
	}
	mid := a + 0.5*width
	if width*math.Max(1, math.Abs(mid)) < 0.02 {
		m, w := mid*mid, width*width
		return width / math.Sqrt(2*math.Pi) * math.Exp(-0.5*m) * (1 + w/24*(m-1+w/80*(m*m-6*m+3)))
	}
	if a > 0 {
		a, b = -b, -a
	}
	return 0.5 * (math.Erfc(-b/math.Sqrt2) - math.Erfc(-a/math.Sqrt2))
}

// pointWork is the number of operations that the mass next to a grid point takes.
const pointWork = 10

// transformWork returns the number of operations of a Fourier transform of a grid.
func transformWork(size int) int { return int(float64(size) * math.Log2(float64(size)) / 4) }

// Limits of the discretisation.
const (
	meshError = 2e-5 // aim of the relative excess of ε
	maxGrid   = 1 << 20
	spill     = 10 // −log of the share of δ that may lie beyond a grid
	// rareShare is the logarithm of the probability, over δ, of a large loss that is folded apart.
	rareShare = 10
	// rareTilt is by how much such losses are tilted.
	rareTilt = 10
	// rareRoom lies above them: what wraps around from above the grid is tilted more than the rest.
	rareRoom = 10
)

// mesh is what a grid aims at.
type mesh struct {
	excess float64 // of ε, relative to it
	most   int     // points, a power of two
}

// find is the lossMethod of grids.
func (m mesh) find(s *lossSum, b bound, runs, _, side float64) (epsilon float64, ok bool) {
	g, ok := s.compose(b, runs, m, math.Inf(1), side)
	if !ok {
		return 0, false
	}
	epsilon, ok = g.epsilon(math.Exp(b.logDelta))
	return epsilon + side*g.rounding, ok
}

// composedGrid is the distribution of a sum of losses on the points offset + (first + i)·step for 0 <= i < size, and
// an infinite one. Losses below the grid are missing.
type composedGrid struct {
	folds        []fold
	size, first  int
	step, offset float64
	infinite     float64
	rounding     float64 // of the losses
}

// at returns the loss of a point.
func (g *composedGrid) at(i int) float64 { return g.offset + float64(g.first+i)*g.step }

// mass returns the mass of a point, rounded up or down as the grid is.
func (g *composedGrid) mass(i int) float64 {
	sum := 0.0
	for k := range g.folds {
		sum += g.folds[k].mass(g.first+i, g.at(i))
	}
	return sum
}

// fold is a part of the distribution of a sum of losses, tilted by e^{cL}, on a window of a grid.
type fold struct {
	tilted      []float64
	size, first int
	c, logTotal float64
	noise       float64 // what errors may add to each mass, or take off it if negative
	wrapped     float64 // of the mass, what may belong outside the window
}

func (f *fold) mass(index int, loss float64) float64 {
	if index < f.first || index >= f.first+f.size {
		return 0
	}
	tilted := math.Max(0, math.Max(0, f.tilted[wrap(index, f.size)])+f.noise)
	return tilted * math.Exp(f.logTotal-f.c*loss)
}

// compose discretises losses, tilts them, so that rounding errors are relative to the part of the distribution that
// matters, and convolves them by the fast Fourier transform. For side > 0 the result dominates the sum of losses,
// rounding errors included, and for side < 0 it is dominated by it.
//
// If few large losses matter beside many small ones, no tilt is good for both. Sums with a large loss are then folded
// apart from sums of small ones. The grid begins at lowest, or where smaller losses do not matter.
func (s *lossSum) compose(b bound, runs float64, m mesh, lowest, side float64) (composedGrid, bool) {
	small := s.truncate(runs, math.Min(-2, b.logDelta+rareShare))
	near, ok := small.renyi(runs, b.logDelta)
	if !ok {
		return composedGrid{}, false
	}
	l := small.chooseLine(near, runs, spill)
	windows := []window{{index: l.index, bottom: math.Min(lowest, near.epsilon-l.left)}}
	common := &windows[0]
	common.top, common.far = small.ceiling(near, runs)
	common.top = math.Max(common.top, near.epsilon+l.right)
	span := common.top - common.bottom
	if small != s {
		rare := window{index: s.rareTilt(near), rare: true}
		rare.top, rare.far = s.ceiling(b, runs)
		rare.top += rareRoom / tiltAt(b.index)
		rare.bottom = math.Max(common.bottom-(spill+rareShare)/tiltAt(rare.index), math.Max(runs*s.lowest(), -rare.top))
		windows = append(windows, rare)
		span = math.Max(span, rare.top-rare.bottom)
	}
	scale := near.epsilon
	if b.epsilon > 0 {
		scale = math.Min(scale, b.epsilon)
	}
	step, ok := small.step(tiltAt(l.index), scale, runs, m.excess)
	if !ok || !(span > 0) || math.IsInf(span, 1) {
		return composedGrid{}, false
	}
	finest := span / float64(m.most)
	step = math.Max(step, finest)
	if atom, one := s.atom(); one { // on a grid point, if possible
		if aligned := atom / math.Ceil(atom/step); aligned >= finest {
			step = aligned
		}
	}
	var count float64
	for _, part := range s.parts {
		count += part.count
	}
	lowTilt := tiltAt(windows[len(windows)-1].index)
	floor := -(math.Log(runs*count) + negligibleTilted) / lowTilt
	g := composedGrid{step: step, rounding: runs * count * 0x1p-52 * (16 - 4*b.logDelta)}
	parts := make([]splitGrid, len(s.parts))
	for i, part := range s.parts {
		p := &parts[i]
		if p.grid, ok = part.pair.discretise(step, floor, side, s.work); !ok {
			return composedGrid{}, false
		}
		p.times = runs * part.count
		p.small = len(p.mass)
		if most := small.parts[i].pair.largest(); small != s && !math.IsInf(most, 1) {
			p.small = min(p.small, max(0, int((most-p.offset)/step)+1-p.first))
		}
		g.offset += p.times * p.offset
	}
	last := math.MinInt
	g.first = math.MaxInt
	for _, w := range windows {
		f, infinite, ok := s.fold(small, parts, w, runs, g.offset, b.logDelta, m.most, side)
		if !ok {
			return composedGrid{}, false
		}
		g.folds = append(g.folds, f)
		g.infinite += infinite
		g.first, last = min(g.first, f.first), max(last, f.first+f.size)
	}
	g.size = last - g.first
	return g, true
}

// negligibleTilted is −log of the tilted probability that some loss is below the grid of one run.
const negligibleTilted = 23

// splitGrid is the grid of a part. Its first losses are small, the other ones rare.
type splitGrid struct {
	grid

	small int
	times float64 // number of runs
}

// window is a range of losses of a sum, and the tilt for it.
type window struct {
	index       int // of the tilt
	bottom, top float64
	far         int  // of a tilt that bounds what is above the window
	rare        bool // for sums with a rare loss
}

// fold convolves the losses on a window: the small ones, or with the characteristic functions v of small losses and
// r of rare ones (v + r)^n − v^n. It also returns, for side > 0, a bound of what is above the window.
func (s *lossSum) fold(
	small *lossSum, parts []splitGrid, w window, runs, offset, logDelta float64, most int, side float64,
) (f fold, infinite float64, ok bool) {
	step := parts[0].step
	logTail := 0.0
	if side > 0 { // rounded up, there is more above
		for _, p := range parts {
			tail := p.grid
			if !w.rare {
				tail.mass = p.mass[:p.small]
			}
			logTail += p.times * tail.logMoment(tiltAt(w.far))
		}
		w.top = math.Max(w.top, (logTail+spill-logDelta)/tiltAt(w.far))
	}
	f = fold{c: tiltAt(w.index), first: int(math.Floor((w.bottom - offset) / step)), size: 16}
	for float64(f.size)*step < w.top-w.bottom && f.size < 2*most {
		f.size *= 2
	}
	const perPoint = 16 // besides the transforms: tilt, power, sum
	transforms := 2 + len(parts)
	s.work.admit(float64(transforms) * float64(transformWork(f.size)+perPoint*f.size))
	fft := fourier.NewFFT(f.size)
	buffer := make([]float64, f.size)
	product := newPowers(f.size, w.rare)
	var common, large []complex128
	rareMass := 0.0
	for _, p := range parts {
		within := p.grid
		within.mass = p.mass[:p.small]
		k := within.logMoment(f.c)
		if math.IsInf(k, 0) || math.IsNaN(k) {
			return fold{}, 0, false
		}
		f.logTotal += p.times * k
		common = p.transform(fft, buffer, common, 0, p.small, f.c, k, s.work)
		total := 0.0
		if w.rare {
			for i, m := range p.mass[p.small:] {
				rareMass += p.times * m
				total += m * math.Exp(f.c*p.at(p.first+p.small+i)-k)
			}
			large = p.transform(fft, buffer, large, p.small, len(p.mass), f.c, k, s.work)
		}
		product.multiply(common, large, p.times, total, s.work)
	}
	s.work.add(transformWork(f.size) + perPoint*f.size/2)
	f.noise = product.finish()
	if math.IsNaN(f.noise) || math.IsInf(f.noise, 1) {
		return fold{}, 0, false
	}
	f.tilted = fft.Sequence(buffer, product.values)
	for i := range f.tilted {
		f.tilted[i] /= float64(f.size)
	}
	bottom, top := offset+float64(f.first)*step, offset+float64(f.first+f.size)*step
	if side > 0 {
		return f, math.Exp(logTail - tiltAt(w.far)*top), true
	}
	f.noise = -f.noise
	if w.rare {
		below := math.Min(math.Log(rareMass), s.logBelow(runs, bottom, w.far))
		f.wrapped = s.wrapped(w.index, runs, math.Inf(-1), top, f.logTotal) + math.Exp(below+f.c*bottom-f.logTotal)
	} else {
		f.wrapped = small.wrapped(w.index, runs, bottom, top, f.logTotal)
	}
	return f, 0, true
}

// lowest returns the lowest loss of one run of all parts, or −Inf if it is unbounded.
func (s *lossSum) lowest() float64 {
	sum := 0.0
	for _, p := range s.parts {
		mixture, ok := p.pair.(mixturePair)
		if !ok || len(mixture.branches) > 1 || mixture.branches[0].sign < 0 || mixture.q == 1 {
			return math.Inf(-1)
		}
		sum += p.count * math.Log1p(-mixture.q)
	}
	return sum
}

// logBelow bounds the logarithm of the probability of a sum of losses below bottom < 0. Where pairs are their own mirror
// image, E[e^{−(c+1)L}] = E[e^{cL}].
func (s *lossSum) logBelow(runs, bottom float64, index int) float64 {
	if bottom <= runs*s.lowest() {
		return math.Inf(-1)
	}
	for _, p := range s.parts {
		if mixture, ok := p.pair.(mixturePair); ok && len(mixture.branches) < 2 {
			return 0
		}
	}
	return math.Min(0, runs*s.cumulant(index)+(1+tiltAt(index))*bottom)
}

// transform returns the characteristic function of some tilted losses, over e^k.
func (p *splitGrid) transform(fft *fourier.FFT, buffer []float64, dst []complex128, from, to int, c, k float64, w *Work) []complex128 {
	clear(buffer)
	for i := from; i < to; i++ {
		buffer[wrap(p.first+i, len(buffer))] += p.mass[i] * math.Exp(c*p.at(p.first+i)-k)
	}
	w.add(transformWork(len(buffer)) + 2*(to-from))
	dst = fft.Coefficients(dst, buffer)
	w.add(0)
	return dst
}

// powers is a product of powers of characteristic functions, without rare losses and with them.
type powers struct {
	size     int
	rounding float64 // of each factor
	values   []complex128
	bounds   []float64    // log of what the absolute value of a value may be
	whole    []complex128 // with rare losses
	wholes   []float64    // as bounds
	excess   []complex128 // log of the quotient of whole and values
	errors   []float64    // of excess
}

func newPowers(size int, rare bool) *powers {
	count := size/2 + 1
	p := &powers{
		size: size, rounding: transformRounding * math.Log2(float64(size)),
		values: slices.Repeat([]complex128{1}, count), bounds: make([]float64, count),
	}
	if rare {
		p.whole, p.wholes = slices.Repeat([]complex128{1}, count), make([]float64, count)
		p.excess, p.errors = make([]complex128, count), make([]float64, count)
	}
	return p
}

// powerRounding bounds the relative rounding error of a power, over the exponent.
const powerRounding = 4 * math.Pi * 0x1p-52

// multiply multiplies the products by powers of common, and of what it is with rare losses, of which total bounds
// the absolute value.
func (p *powers) multiply(common, large []complex128, times, total float64, w *Work) {
	for i, v := range common {
		w.add(10)
		var abs float64
		p.values[i], abs = mulPower(p.values[i], v, times)
		p.bounds[i] += times * (math.Log(abs+p.rounding) + powerRounding)
		if large == nil {
			continue
		}
		w.add(10)
		var wholeAbs float64
		p.whole[i], wholeAbs = mulPower(p.whole[i], v+large[i], times)
		p.wholes[i] += times * (math.Log(wholeAbs+p.rounding*(1+total)) + powerRounding)
		r := large[i] / v
		ratio := math.Hypot(real(r), imag(r))
		if !(ratio < 0.5) {
			p.errors[i] = math.Inf(1)
			continue
		}
		p.excess[i] += complex(times, 0) * log1p(r)
		p.errors[i] += 2 * times * (p.rounding*total + ratio*p.rounding) / abs
	}
}

// finish takes the product without rare losses off the one with them, if there are any, and returns by how much each
// result of the inverse transform may be in error.
func (p *powers) finish() (noise float64) {
	for i, v := range p.values {
		most, abs := math.Exp(p.bounds[i]), math.Hypot(real(v), imag(v))
		e := most - abs + p.rounding*abs
		if p.whole != nil {
			excess, size := p.excess[i], math.Hypot(real(p.excess[i]), imag(p.excess[i]))
			if p.errors[i] < 0.1 && size < 1 { // the difference would lose digits
				p.values[i] = v * expm1(excess)
				e = (most-abs)*3*size + most*math.Exp(real(excess))*math.Expm1(p.errors[i])
			} else {
				p.values[i] = p.whole[i] - v
				e += math.Exp(p.wholes[i]) - math.Hypot(real(p.whole[i]), imag(p.whole[i]))
			}
			e += p.rounding * (math.Hypot(real(p.values[i]), imag(p.values[i])))
		}
		noise += 2 * e / float64(p.size)
	}
	return noise
}

// log1p returns log(1 + z).
func log1p(z complex128) complex128 {
	if size := math.Hypot(real(z), imag(z)); size > 0.5 {
		return cmplx.Log(1 + z)
	}
	return complex(0.5*math.Log1p(2*real(z)+real(z)*real(z)+imag(z)*imag(z)), math.Atan2(imag(z), 1+real(z)))
}

// expm1 returns e^z − 1.
func expm1(z complex128) complex128 {
	sin, cos := math.Sincos(imag(z))
	half := math.Sin(0.5 * imag(z))
	return complex(math.Expm1(real(z))*cos-2*half*half, math.Exp(real(z))*sin)
}

// wrapped bounds the tilted mass of the sum of losses below and above a grid, by Chernoff's bound for several tilts.
// For the dominated losses of a grid it is less.
func (s *lossSum) wrapped(index int, runs, bottom, top, logTotal float64) float64 {
	c := tiltAt(index)
	below, above := c*bottom, math.Inf(1)
	if top > runs*s.largest() {
		above = math.Inf(-1)
	}
	const stride = tiltGrid / 4
	for at := index - stride; at >= index-4*tiltGrid && !math.IsInf(below, -1); at -= stride {
		bound := runs*s.cumulant(at) + (c-tiltAt(at))*bottom
		if !(bound < below) {
			break
		}
		below = bound
	}
	for at := index + stride; at <= index+4*tiltGrid; at += stride {
		bound := runs*s.cumulant(at) - (tiltAt(at)-c)*top
		if !(bound < above) {
			break
		}
		above = bound
	}
	return math.Exp(below-logTotal) + math.Exp(above-logTotal)
}

// transformRounding bounds the rounding errors of a fast Fourier transform of numbers that add up to 1, over the
// binary logarithm of their number: each result is a sum of them times as many factors.
const transformRounding = 16 * 0x1p-53

// wrap returns i modulo size.
func wrap(i, size int) int {
	i %= size
	if i < 0 {
		i += size
	}
	return i
}

// ceiling returns a loss above which lies at most e^{−spill} of δ by Chernoff's bound for the tilt far.
func (s *lossSum) ceiling(b bound, runs float64) (ceiling float64, far int) {
	ceiling, far = math.Inf(1), b.index+1
	for index := b.index + 1; index <= b.index+4*tiltGrid; index += 2 {
		lower := (runs*s.cumulant(index) + spill - b.logDelta) / tiltAt(index)
		if !(lower < ceiling) {
			break
		}
		ceiling, far = lower, index
	}
	return ceiling, far
}

// step returns a step for which ε exceeds the least one by about a share of it. Rounding a loss at the distance d from
// the next point below to the points around it adds d(h − d)/2 to ε, times c + 1/2; for most losses that is h²/12, and
// for those close to the center of a coarse grid it is d·h/2.
func (s *lossSum) step(c, epsilon, runs, share float64) (step float64, ok bool) {
	var count float64
	for _, p := range s.parts {
		count += p.count
	}
	aim := share * math.Max(math.Abs(epsilon), 1e-3/c) / (runs * count * (c + 0.5))
	hi, lo := math.Inf(1), 0.0
	for range 60 {
		excess := 0.0
		step = math.Sqrt(lo * hi)
		switch {
		case lo > 0 && math.IsInf(hi, 1):
			step = 4 * lo
		case lo == 0 && math.IsInf(hi, 1):
			step = math.Sqrt(6 * aim)
		case lo == 0:
			step = hi / 4
		}
		for i := range s.parts {
			e, ok := s.parts[i].rounding(c, step)
			if !ok {
				return 0, false
			}
			excess += s.parts[i].count / count * e
		}
		if excess > aim {
			hi = step
		} else {
			lo = step
		}
		if hi < 1.2*lo {
			return lo, true
		}
	}
	return 0, false
}

// rounding returns the mean of d(h − d) over tilted losses, over 2·E[e^{cL}].
func (p *lossPart) rounding(c, step float64) (sum float64, ok bool) {
	nodes, ok := p.cover(c)
	if !ok {
		return 0, false
	}
	center := 0.0
	if d, ok := p.pair.(densityPair); ok {
		center = d.center()
	}
	k := nodes.cumulant(c)
	for i, l := range nodes.loss {
		d := math.Abs(l - center)
		e := step * step / 6
		if d < step {
			e = d * (step - d)
		}
		sum += math.Exp(nodes.logMass[i]+c*l-k) * 0.5 * e
	}
	p.work.add(len(nodes.loss))
	return sum, true
}

// logMoment returns log E[e^{cL}] of a grid.
func (g *grid) logMoment(c float64) float64 {
	top := math.Inf(-1)
	for i, m := range g.mass {
		if math.IsNaN(m) {
			return m
		}
		if m > 0 {
			top = math.Max(top, math.Log(m)+c*g.at(g.first+i))
		}
	}
	var sum float64
	for i, m := range g.mass {
		if m > 0 {
			sum += math.Exp(math.Log(m) + c*g.at(g.first+i) - top)
		}
	}
	return top + math.Log(sum)
}

// atom returns a loss > 0 at which a part has an atom, and whether all parts share it.
func (s *lossSum) atom() (loss float64, one bool) {
	for i, p := range s.parts {
		b, ok := p.pair.(boundedPair)
		if !ok || i > 0 && b.loss != loss {
			return 0, false
		}
		loss = b.loss
	}
	return loss, loss > 0
}

// mulPower returns product·c^times, and the absolute value of c.
func mulPower(product, c complex128, times float64) (result complex128, abs float64) {
	abs = math.Hypot(real(c), imag(c))
	if abs == 0 {
		return 0, 0
	}
	sin, cos := math.Sincos(times * math.Atan2(imag(c), real(c)))
	power := math.Pow(abs, times)
	return product * complex(power*cos, power*sin), abs
}

// epsilon returns the least ε >= 0 with δ(ε) <= delta.
//
// From above, with a = Σ_{k>=i} m_k and b = Σ_{k>=i} m_k·e^{−(l_k − l_i)}:
// δ(ε) = infinite + a − b·e^{ε − l_i} for ε in [l_{i−1}, l_i].
func (g *composedGrid) epsilon(delta float64) (epsilon float64, ok bool) {
	if g.infinite >= delta {
		return 0, false
	}
	shrink := math.Exp(-g.step)
	a, b := 0.0, 0.0
	for i := g.size - 1; i >= 0; i-- {
		m := g.mass(i)
		a, b = a+m, m+shrink*b
		at := g.at(i)
		rest := g.infinite - g.wrapped(at-g.step)
		if rest+a-b*shrink < delta && at > 0 {
			continue // δ(l_{i−1}) is still below
		}
		if !(rest+a > delta) {
			return 0, true
		}
		return math.Max(0, at+math.Log((rest+a-delta)/b)), true
	}
	return 0, false
}

// wrapped returns how much of δ(ε) may be of losses outside the windows: (1 − e^{ε−l})·e^{−cl} is at most e^{−cε}/(c+1).
func (g *composedGrid) wrapped(epsilon float64) float64 {
	sum := 0.0
	for _, f := range g.folds {
		if f.wrapped > 0 {
			sum += f.wrapped * math.Exp(f.logTotal-f.c*epsilon) / (f.c + 1)
		}
	}
	return sum
}
