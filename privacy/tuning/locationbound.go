package tuning

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"github.com/dpareto/dpareto/privacy/internal/profile"
)

// locationBound is the bound of Location on δ(ε).
type locationBound struct {
	pair    profile.DiscretePair
	hull    []selectionLine // of G, in rising order of b
	largest float64         // at least G(0) = E[K]
}

// selectionLine is the line a − b·x. The upper envelope of all lines is at least G.
type selectionLine struct{ a, b float64 }

func newLocationBound(forward, backward []profile.Point, law runCountDistribution) *locationBound {
	l := &locationBound{pair: profile.NewDiscretePair(forward, backward)}
	l.hull = upperHull(selectionLines(l.pair, law))
	l.largest = math.Max(law.mean()*(1+countRounding), l.hull[len(l.hull)-1].a)
	return l
}

// selectionLines returns lines whose upper envelope is at least G. Between two corners of the
// boundary β, u and β(u) are linear: φ′(u) is below its chord, and φ′(β(u)) above its tangents at
// both ends, since φ′ is convex. So the largest values are at the ends and where the
// tangents cross. At any other point the lower of the two tangents is on the safe side. Rounding
// errors of φ′ and φ″ raise the lines. Where one of these is no finite number, G is taken to be +Inf.
func selectionLines(d profile.DiscretePair, law runCountDistribution) []selectionLine {
	const (
		finest = 100.0 // parts of a piece per unit of the logarithms of φ′
		most   = 640
		more   = 1 + countRounding
		less   = 1 - countRounding
	)
	finite := true
	at := func(s profile.Split) (value, slope float64) {
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
	a0, _ := at(d.U[0])
	b0, s0 := at(d.Beta[0])
	lines := []selectionLine{below(a0, b0*less)}
	for i := 1; i < len(d.Losses) && finite; i++ {
		u0, u1 := d.U[i-1], d.U[i]
		v0, v1 := d.Beta[i-1], d.Beta[i]
		aEnd, _ := at(u1)
		bEnd, _ := at(v1)
		pieces := math.Ceil(finest * math.Max(math.Log(aEnd/a0), math.Log(bEnd/b0)))
		if !(pieces < most) {
			pieces = most
		}
		pieces = math.Max(pieces, 1)
		width := v0.Below(v1) / pieces
		for k := 1.0; k <= pieces; k++ {
			share := k / pieces
			a1, _ := at(u0.Between(u1, share))
			b1, s1 := at(v0.Between(v1, share))
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
	sum := l.largest * l.pair.Upper[0]
	for i := 1; i < len(l.pair.Losses); i++ {
		sum += l.pair.Upper[i] * l.largestGain(math.Exp(epsilon-l.pair.Losses[i]))
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
