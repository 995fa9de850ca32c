package privacy

import (
	"math"

	"gonum.org/v1/gonum/dsp/fourier"
)

// grid is a distribution of losses on the points (first + i)·step, i >= 0.
type grid struct {
	first int
	mass  []float64
	top   float64 // mass of the losses above the grid, treated as infinite
}

// discretise rounds the losses of p to the grid pessimistically: the mass of each
// cell is shared between its two ends so that both distributions keep their mass
// ("connect the dots", Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, 2022).
// The discrete pair dominates p. Losses below bottom and those more than reach
// standard deviations outside the two means are moved up. ok is false when that
// takes too many points.
func (p mixturePair) discretise(step, bottom, reach float64, w *Work) (g grid, ok bool) {
	type extent struct{ first, last int }
	extents := make([]extent, len(p.branches))
	end := 0
	for i, b := range p.branches {
		x := [2]float64{math.Max(b.from, -reach*p.z), 1 + reach*p.z}
		lo, hi := b.sign*p.logMixture((x[0]-0.5)/(p.z*p.z)), b.sign*p.logMixture((x[1]-0.5)/(p.z*p.z))
		if lo > hi {
			lo, hi = hi, lo
		}
		lo = math.Max(lo, bottom)
		extents[i] = extent{int(math.Floor(lo / step)), int(math.Ceil(math.Max(lo, hi) / step))}
		g.first, end = min(g.first, extents[i].first), max(end, extents[i].last)
	}
	if end-g.first >= 2*maxGrid || end < g.first {
		return grid{}, false
	}
	g.mass = make([]float64, end-g.first+1)
	atom := 1.0
	for i, b := range p.branches {
		atom -= g.connect(extents[i].first, extents[i].last, step, w, func(from, to float64) (upper, lower float64) {
			return p.mass(b, from, to)
		})
	}
	g.mass[-g.first] += math.Max(0, atom) // or a rounding error
	return g, true
}

// add adds a mass at a loss: at the lowest point if it is below, at a grid point if it is on one, and
// otherwise shared between its neighbours so that both distributions keep their mass.
func (g *grid) add(loss, mass, step float64, lowest int) {
	i := loss / step
	nearest := math.Round(i)
	switch {
	case i <= float64(lowest):
		g.mass[lowest-g.first] += mass
	case math.Abs(i-nearest) <= 0x1p-50*math.Abs(i):
		g.mass[int(nearest)-g.first] += mass
	default:
		left := math.Floor(i)
		right := mass * math.Expm1(left*step-loss) / math.Expm1(-step)
		g.mass[int(left)-g.first] += mass - right
		g.mass[int(left)+1-g.first] += right
	}
}

// connect rounds losses to the points from first to last, given the mass of both distributions
// in (from, to], and returns the mass of the upper one.
func (g *grid) connect(first, last int, step float64, w *Work, mass func(from, to float64) (upper, lower float64)) (total float64) {
	edge := math.Inf(-1)
	for j := first; j <= last; j++ {
		w.add(pointWork)
		upper, lower := mass(edge, float64(j)*step)
		edge = float64(j) * step
		total += upper
		right := upper // all below the first point moves up to it
		if j > first {
			right = (upper - math.Exp(float64(j-1)*step)*lower) / -math.Expm1(-step)
			right = math.Min(math.Max(right, 0), upper)
			g.mass[j-1-g.first] += upper - right
		}
		g.mass[j-g.first] += right
	}
	upper, _ := mass(edge, math.Inf(1))
	g.top += upper
	return total + upper
}

// mass returns the mass of both distributions on branch b with loss in (from, to].
func (p mixturePair) mass(b branch, from, to float64) (upper, lower float64) {
	lo, hi := p.position(b, from), p.position(b, to)
	if b.sign < 0 {
		lo, hi = hi, lo
	}
	lo, hi = math.Max(lo, b.from), math.Max(hi, b.from)
	q := normalInterval(lo/p.z, hi/p.z)
	pp := normalInterval((lo-1)/p.z, (hi-1)/p.z)
	return (1-b.upper)*q + b.upper*pp, (1-b.lower)*q + b.lower*pp
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

// normalInterval returns Φ(b) − Φ(a), from the tail where both are small.
func normalInterval(a, b float64) float64 {
	if a >= b {
		return 0
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
)

// convolve returns the least ε >= 0 with δ(ε) <= e^logDelta, from above: losses are
// discretised pessimistically, tilted by e^{cl}, so that rounding errors are relative to the
// part of the distribution that matters, and convolved by the fast Fourier transform. The grid
// is coarser than usual by a factor, with a multiple of divide steps to an atom; a coarser
// grid fails if the atoms are not on grid points, because its excess is then not a multiple of
// the finer one's.
//
// If below is set, nothing but the excess of the grid is added: rounding errors of
// the transform and infinite losses are left out, and a grid that would have to be
// finer than the finest fails.
func (s *lossSum) convolve(l line, b bound, runs, coarser, divide float64, below bool) (epsilon float64, ok bool) {
	g, ok := s.compose(l, b, runs, coarser, divide, below)
	if !ok {
		return 0, false
	}
	return gridEpsilon(g.mass, g.size, g.first, g.step, g.infinite, math.Exp(b.logDelta))
}

// composedGrid is the distribution of a sum of losses: mass(i) at (first + i)·step for 0 <= i < size, and an
// infinite one. Losses below the grid are missing.
type composedGrid struct {
	mass        func(int) float64
	size, first int
	step        float64
	infinite    float64
}

// compose returns the grid of convolve.
func (s *lossSum) compose(l line, b bound, runs, coarser, divide float64, below bool) (composedGrid, bool) {
	c, logDelta := tiltAt(l.index), b.logDelta
	bottom := b.epsilon - l.left
	// Above ceiling lies at most spill of the mass, by the tilt far.
	const spill = 23 // −log of it, relative to δ
	ceiling, far := math.Inf(1), l.index
	for index := l.index; index <= l.index+2*tiltGrid; index += 2 {
		lower := (runs*s.cumulant(index) + spill - logDelta) / tiltAt(index)
		if !(lower < ceiling) {
			break
		}
		ceiling, far = lower, index
	}
	ceiling = math.Max(ceiling, b.epsilon+l.right)

	// For a grid of step h the excess of ε is about runs·h²(c + 1/2)/6, and of log E[e^{cL}]
	// up to runs·c²h²/8.
	var count float64
	for _, part := range s.parts {
		count += part.count
	}
	scale := math.Max(math.Abs(b.epsilon), 1e-3/c)
	step := math.Sqrt(6 * meshError * scale / (runs * count * (c + 0.5)))
	step = coarser * math.Min(step, 0.2/(c*math.Sqrt(runs*count)))
	finest := (ceiling - bottom) / maxGrid
	if below && step < finest {
		return composedGrid{}, false
	}
	step = math.Max(step, finest)
	if atom, one := s.atom(); atom > 0 { // on a grid point, if possible
		aligned := atom / (divide * math.Ceil(atom/(divide*step)))
		if one = one && aligned >= finest; one {
			step = aligned
		} else if coarser > 1 {
			return composedGrid{}, false
		}
	}
	if !(step > 0) || math.IsInf(step, 1) || !(ceiling > bottom) {
		return composedGrid{}, false
	}
	size := 16
	for float64(size)*step < ceiling-bottom && size < maxGrid {
		size *= 2
	}

	const perPoint = 10 // besides the transforms: tilt, power, sum
	s.work.admit(float64(len(s.parts)+1) * float64(transformWork(size)+perPoint*size))
	// Infinite losses: above the ceiling, and above the grid of a single run.
	infinite, logTail := 0.0, 0.0
	reach := math.Sqrt(2 * (math.Log(runs*count) - logDelta + spill))
	floor := -(math.Log(runs*count) + spill) / c // tilted, all below is negligible
	fft := fourier.NewFFT(size)
	buffer := make([]float64, size)
	var spectrum, product []complex128
	first := 0 // grid index of the sum of the lowest losses
	logTotal := 0.0
	for _, part := range s.parts {
		times := runs * part.count
		g, ok := part.pair.discretise(step, floor, reach, s.work)
		if !ok {
			return composedGrid{}, false
		}
		infinite += times * g.top
		clear(buffer)
		k := part.cumulants(c).k
		total := 0.0 // of the tilted mass, relative to e^k
		for i, m := range g.mass {
			total += m * math.Exp(c*float64(g.first+i)*step-k)
		}
		if !(total > 0) || math.IsInf(total, 1) {
			return composedGrid{}, false
		}
		for i, m := range g.mass {
			at := (g.first + i) % size
			if at < 0 {
				at += size
			}
			buffer[at] += m * math.Exp(c*float64(g.first+i)*step-k) / total
		}
		logTotal += times * (k + math.Log(total))
		logTail += times * g.logMoment(tiltAt(far), part.cumulants(tiltAt(far)).k, step)
		s.work.add(transformWork(size) + 2*len(g.mass))
		spectrum = fft.Coefficients(spectrum, buffer)
		s.work.add(0)
		if product == nil {
			product = make([]complex128, len(spectrum))
			for i := range product {
				product[i] = 1
			}
		}
		for i, v := range spectrum {
			s.work.add(perPoint)
			product[i] *= powComplex(v, times)
		}
	}
	s.work.add(transformWork(size))
	fft.Sequence(buffer, product)
	s.work.add(perPoint * size / 2)

	// The sum at grid index j sits at j mod size.
	first = int(math.Floor(bottom / step))
	infinite += math.Exp(logTail - tiltAt(far)*float64(first+size)*step)
	noise := 0x1p-52 * math.Log2(float64(size)) // of each tilted mass, absolutely
	if below {
		infinite, noise = 0, -noise
	}
	mass := func(i int) float64 {
		j := first + i
		at := j % size
		if at < 0 {
			at += size
		}
		tilted := math.Max(0, math.Max(0, buffer[at]/float64(size))+noise/float64(size))
		return tilted * math.Exp(logTotal-c*float64(j)*step)
	}
	return composedGrid{mass, size, first, step, infinite}, true
}

// logMoment returns log E[e^{cL}] of a grid, a value close to k.
func (g grid) logMoment(c, k, step float64) float64 {
	var sum float64
	for i, m := range g.mass {
		if m > 0 {
			sum += m * math.Exp(c*float64(g.first+i)*step-k)
		}
	}
	return k + math.Log(sum)
}

// atom returns a loss > 0 at which a part has an atom, or 0, and whether all such
// parts share it.
func (s *lossSum) atom() (loss float64, one bool) {
	one = true
	for _, p := range s.parts {
		if at := p.pair.largest(); !math.IsInf(at, 1) {
			one = one && (loss == 0 || at == loss)
			loss = at
		}
	}
	return loss, one
}

// powComplex returns c^times.
func powComplex(c complex128, times float64) complex128 {
	abs := math.Hypot(real(c), imag(c))
	if abs == 0 {
		return 0
	}
	sin, cos := math.Sincos(times * math.Atan2(imag(c), real(c)))
	abs = math.Pow(abs, times)
	return complex(abs*cos, abs*sin)
}

// gridEpsilon returns the least ε >= 0 with δ(ε) <= delta for a distribution of
// losses with mass(i) on the points (first + i)·step, 0 <= i < size, and an
// infinite one.
//
// From above, with a = Σ_{k>=i} m_k and b = Σ_{k>=i} m_k·e^{−(l_k − l_i)}:
// δ(ε) = infinite + a − b·e^{ε − l_i} for ε in [l_{i−1}, l_i].
func gridEpsilon(mass func(int) float64, size, first int, step, infinite, delta float64) (epsilon float64, ok bool) {
	if infinite >= delta {
		return 0, false
	}
	shrink := math.Exp(-step)
	a, b := 0.0, 0.0
	for i := size - 1; i >= 0; i-- {
		m := mass(i)
		a, b = a+m, m+shrink*b
		at := float64(first+i) * step
		if infinite+a-b*shrink < delta && at > 0 {
			continue // δ(l_{i−1}) is still below
		}
		if !(infinite+a > delta) {
			return 0, true
		}
		return math.Max(0, at+math.Log((infinite+a-delta)/b)), true
	}
	return 0, false
}
