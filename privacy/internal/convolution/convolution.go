package convolution

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/dsp/fourier"

	"github.com/dpareto/dpareto/privacy/internal/logexp"
	"github.com/dpareto/dpareto/privacy/internal/pld"
	"github.com/dpareto/dpareto/privacy/meter"
)

// transformWork returns the number of operations of a Fourier transform of a grid.
func transformWork(size int) int { return int(float64(size) * math.Log2(float64(size)) / 4) }

// Limits of the discretisation.
const (
	MeshError = 2e-5 // aim of the relative excess of ε
	Spill     = 10   // −log of the share of δ that may lie beyond a grid
	// rareRoom lies above rare losses: what wraps around from above the grid is tilted more than the rest.
	rareRoom = 10
)

// Mesh is the target of a grid.
type Mesh struct {
	Excess float64 // of ε, relative to it
	Most   int     // points, a power of two
}

// Find finds ε on a grid, from above for side = +1 and from below for side = −1.
func (m Mesh) Find(s *pld.Sum, b pld.Bound, runs, _, side float64) (epsilon float64, ok bool) {
	g, ok := Compose(s, b, runs, m, math.Inf(1), side)
	if !ok {
		return 0, false
	}
	epsilon, ok = g.epsilon(math.Exp(b.LogDelta))
	return epsilon + side*g.Rounding, ok
}

// Grid is the distribution of a sum of losses on the points offset + (first + i)·step for 0 <= i < size, and
// an infinite one. Losses below the grid are missing.
type Grid struct {
	folds        []fold
	Size, first  int
	Step, offset float64
	Infinite     float64
	Rounding     float64 // of the losses
}

// At returns the loss of a point.
func (g *Grid) At(i int) float64 { return g.offset + float64(g.first+i)*g.Step }

// Mass returns the mass of a point, rounded up or down as the grid is.
func (g *Grid) Mass(i int) float64 {
	sum := 0.0
	for k := range g.folds {
		sum += g.folds[k].mass(g.first+i, g.At(i))
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

// Compose discretises losses, tilts them, so that rounding errors are relative to the part of the distribution that
// matters, and convolves them by the fast Fourier transform. For side > 0 the result dominates the sum of losses,
// rounding errors included, and for side < 0 it is dominated by it.
//
// If few large losses matter beside many small ones, no tilt is good for both. Sums with a large loss are then folded
// apart from sums of small ones. The grid begins at lowest, or where smaller losses do not matter.
func Compose(s *pld.Sum, b pld.Bound, runs float64, m Mesh, lowest, side float64) (Grid, bool) {
	small := s.Truncate(runs, math.Min(-2, b.LogDelta+pld.RareShare))
	near, ok := small.Renyi(runs, b.LogDelta)
	if !ok {
		return Grid{}, false
	}
	l := small.ChooseLine(near, runs, Spill)
	windows := []window{{index: l.Index, bottom: math.Min(lowest, near.Epsilon-l.Left)}}
	common := &windows[0]
	common.top, common.far = ceiling(small, near, runs)
	common.top = math.Max(common.top, near.Epsilon+l.Right)
	span := common.top - common.bottom
	if small != s {
		rare := window{index: s.RareTilt(near), rare: true}
		rare.top, rare.far = ceiling(s, b, runs)
		rare.top += rareRoom / pld.TiltAt(b.Index)
		rare.bottom = math.Max(common.bottom-(Spill+pld.RareShare)/pld.TiltAt(rare.index), math.Max(runs*s.Lowest(), -rare.top))
		windows = append(windows, rare)
		span = math.Max(span, rare.top-rare.bottom)
	}
	scale := near.Epsilon
	if b.Epsilon > 0 {
		scale = math.Min(scale, b.Epsilon)
	}
	step, ok := step(small, pld.TiltAt(l.Index), scale, runs, m.Excess)
	if !ok || !(span > 0) || math.IsInf(span, 1) {
		return Grid{}, false
	}
	finest := span / float64(m.Most)
	step = math.Max(step, finest)
	if unit, one := s.Unit(); one { // atoms lie on grid points, if possible
		if aligned := unit / math.Ceil(unit/step); aligned >= finest {
			step = aligned
		}
	}
	var count float64
	for _, part := range s.Parts {
		count += part.Count
	}
	lowTilt := pld.TiltAt(windows[len(windows)-1].index)
	floor := -(math.Log(runs*count) + negligibleTilted) / lowTilt
	g := Grid{Step: step, Rounding: runs * count * 0x1p-52 * (16 - 4*b.LogDelta)}
	parts := make([]splitGrid, len(s.Parts))
	for i, part := range s.Parts {
		p := &parts[i]
		if p.Grid, ok = part.Pair.Discretise(step, floor, side, s.Work); !ok {
			return Grid{}, false
		}
		p.times = runs * part.Count
		p.small = len(p.Mass)
		if most := small.Parts[i].Pair.Largest(); small != s && !math.IsInf(most, 1) {
			p.small = min(p.small, max(0, int((most-p.Offset)/step)+1-p.First))
		}
		g.offset += p.times * p.Offset
	}
	c := composer{sum: s, small: small, parts: parts, runs: runs, offset: g.offset, logDelta: b.LogDelta, side: side, most: m.Most}
	last := math.MinInt
	g.first = math.MaxInt
	for _, w := range windows {
		f, infinite, ok := c.fold(w)
		if !ok {
			return Grid{}, false
		}
		g.folds = append(g.folds, f)
		g.Infinite += infinite
		g.first, last = min(g.first, f.first), max(last, f.first+f.size)
	}
	g.Size = last - g.first
	return g, true
}

// negligibleTilted is −log of the tilted probability that some loss is below the grid of one run.
const negligibleTilted = 23

// splitGrid is the grid of a part. Its first losses are small, the other ones rare.
type splitGrid struct {
	pld.Grid

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

// composer composes losses on windows.
type composer struct {
	sum, small *pld.Sum
	parts      []splitGrid
	runs       float64
	offset     float64 // of the grid of the sum
	logDelta   float64
	side       float64
	most       int // points
}

// fold convolves the losses on a window: the small ones, or with the characteristic functions v of small losses and
// r of rare ones (v + r)^n − v^n. It also returns, for side > 0, a bound of what is above the window.
func (o *composer) fold(w window) (f fold, infinite float64, ok bool) {
	s, parts, runs := o.sum, o.parts, o.runs
	step := parts[0].Step
	logTail := 0.0
	if o.side > 0 { // rounded up, there is more above
		for _, p := range parts {
			tail := p.Grid
			if !w.rare {
				tail.Mass = p.Mass[:p.small]
			}
			logTail += p.times * tail.LogMoment(pld.TiltAt(w.far))
		}
		w.top = math.Max(w.top, (logTail+Spill-o.logDelta)/pld.TiltAt(w.far))
	}
	f = fold{c: pld.TiltAt(w.index), first: int(math.Floor((w.bottom - o.offset) / step)), size: 16}
	for float64(f.size)*step < w.top-w.bottom && f.size < 2*o.most {
		f.size *= 2
	}
	const perPoint = 16 // besides the transforms: tilt, power, sum
	transforms := 2 + len(parts)
	s.Work.Admit(float64(transforms) * float64(transformWork(f.size)+perPoint*f.size))
	fft := fourier.NewFFT(f.size)
	buffer := make([]float64, f.size)
	product := newPowers(f.size, w.rare)
	var common, large []complex128
	rareMass := 0.0
	for _, p := range parts {
		within := p.Grid
		within.Mass = p.Mass[:p.small]
		k := within.LogMoment(f.c)
		if math.IsInf(k, 0) || math.IsNaN(k) {
			return fold{}, 0, false
		}
		f.logTotal += p.times * k
		common = p.transform(fft, buffer, common, 0, p.small, f.c, k, s.Work)
		total := 0.0
		if w.rare {
			for i, m := range p.Mass[p.small:] {
				rareMass += p.times * m
				total += m * math.Exp(f.c*p.At(p.First+p.small+i)-k)
			}
			large = p.transform(fft, buffer, large, p.small, len(p.Mass), f.c, k, s.Work)
		}
		product.multiply(common, large, p.times, total, s.Work)
	}
	s.Work.Add(transformWork(f.size) + perPoint*f.size/2)
	f.noise = product.finish()
	if math.IsNaN(f.noise) || math.IsInf(f.noise, 1) {
		return fold{}, 0, false
	}
	f.tilted = fft.Sequence(buffer, product.values)
	for i := range f.tilted {
		f.tilted[i] /= float64(f.size)
	}
	bottom, top := o.offset+float64(f.first)*step, o.offset+float64(f.first+f.size)*step
	if o.side > 0 {
		return f, math.Exp(logTail - pld.TiltAt(w.far)*top), true
	}
	f.noise = -f.noise
	if w.rare {
		below := math.Min(math.Log(rareMass), s.LogBelow(runs, bottom, w.far))
		f.wrapped = wrapped(s, w.index, runs, math.Inf(-1), top, f.logTotal) + math.Exp(below+f.c*bottom-f.logTotal)
	} else {
		f.wrapped = wrapped(o.small, w.index, runs, bottom, top, f.logTotal)
	}
	return f, 0, true
}

// transform returns the characteristic function of some tilted losses, over e^k.
func (p *splitGrid) transform(fft *fourier.FFT, buffer []float64, dst []complex128, from, to int, c, k float64, w *meter.Work) []complex128 {
	clear(buffer)
	for i := from; i < to; i++ {
		buffer[wrap(p.First+i, len(buffer))] += p.Mass[i] * math.Exp(c*p.At(p.First+i)-k)
	}
	w.Add(transformWork(len(buffer)) + 2*(to-from))
	dst = fft.Coefficients(dst, buffer)
	w.Add(0)
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
func (p *powers) multiply(common, large []complex128, times, total float64, w *meter.Work) {
	for i, v := range common {
		w.Add(10)
		var abs float64
		p.values[i], abs = mulPower(p.values[i], v, times)
		p.bounds[i] += times * (math.Log(abs+p.rounding) + powerRounding)
		if large == nil {
			continue
		}
		w.Add(10)
		var wholeAbs float64
		p.whole[i], wholeAbs = mulPower(p.whole[i], v+large[i], times)
		p.wholes[i] += times * (math.Log(wholeAbs+p.rounding*(1+total)) + powerRounding)
		r := large[i] / v
		ratio := math.Hypot(real(r), imag(r))
		if !(ratio < 0.5) {
			p.errors[i] = math.Inf(1)
			continue
		}
		p.excess[i] += complex(times, 0) * logexp.ComplexLog1p(r)
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
				p.values[i] = v * logexp.ComplexExpm1(excess)
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

// wrapped bounds the tilted mass of the sum of losses below and above a grid, by Chernoff's bound for several tilts.
// For the dominated losses of a grid it is less.
func wrapped(s *pld.Sum, index int, runs, bottom, top, logTotal float64) float64 {
	c := pld.TiltAt(index)
	below, above := c*bottom, math.Inf(1)
	if top > runs*s.Largest() {
		above = math.Inf(-1)
	}
	const stride = pld.TiltGrid / 4
	for at := index - stride; at >= index-4*pld.TiltGrid && !math.IsInf(below, -1); at -= stride {
		bound := runs*s.Cumulant(at) + (c-pld.TiltAt(at))*bottom
		if !(bound < below) {
			break
		}
		below = bound
	}
	for at := index + stride; at <= index+4*pld.TiltGrid; at += stride {
		bound := runs*s.Cumulant(at) - (pld.TiltAt(at)-c)*top
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
func ceiling(s *pld.Sum, b pld.Bound, runs float64) (ceiling float64, far int) {
	ceiling, far = math.Inf(1), b.Index+1
	for index := b.Index + 1; index <= b.Index+4*pld.TiltGrid; index += 2 {
		lower := (runs*s.Cumulant(index) + Spill - b.LogDelta) / pld.TiltAt(index)
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
func step(s *pld.Sum, c, epsilon, runs, share float64) (step float64, ok bool) {
	var count float64
	for _, p := range s.Parts {
		count += p.Count
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
		for i := range s.Parts {
			e, ok := rounding(&s.Parts[i], c, step)
			if !ok {
				return 0, false
			}
			excess += s.Parts[i].Count / count * e
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
func rounding(p *pld.Part, c, step float64) (sum float64, ok bool) {
	nodes, ok := p.Cover(c)
	if !ok {
		return 0, false
	}
	center := 0.0
	if d, ok := p.Pair.(pld.DensityPair); ok {
		center = d.Center()
	}
	k := nodes.Cumulant(c)
	for i, l := range nodes.Loss {
		d := math.Abs(l - center)
		e := step * step / 6
		if d < step {
			e = d * (step - d)
		}
		sum += math.Exp(nodes.LogMass[i]+c*l-k) * 0.5 * e
	}
	p.Work.Add(len(nodes.Loss))
	return sum, true
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
func (g *Grid) epsilon(delta float64) (epsilon float64, ok bool) {
	if g.Infinite >= delta {
		return 0, false
	}
	shrink := math.Exp(-g.Step)
	a, b := 0.0, 0.0
	for i := g.Size - 1; i >= 0; i-- {
		m := g.Mass(i)
		a, b = a+m, m+shrink*b
		at := g.At(i)
		rest := g.Infinite - g.wrapped(at-g.Step)
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
func (g *Grid) wrapped(epsilon float64) float64 {
	sum := 0.0
	for _, f := range g.folds {
		if f.wrapped > 0 {
			sum += f.wrapped * math.Exp(f.logTotal-f.c*epsilon) / (f.c + 1)
		}
	}
	return sum
}
