package privacy

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"gonum.org/v1/gonum/mathext"

	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/profile"
	"github.com/dpareto/dpareto/privacy/meter"
)

// Tradeoff bounds the success of a test that tells adjacent data sets apart by an output, such as a
// membership inference attack on one record. It holds for every test, whatever else is known about
// the data.
type Tradeoff struct {
	// TruePositiveRates are upper bounds, in the order of the false positive rates asked for. As a
	// function of them they are concave and do not fall.
	TruePositiveRates []float64
	// Advantage is an upper bound of the true minus the false positive rate of every test: δ for ε = 0.
	Advantage float64
	// BayesErrors are lower bounds of how often a guess is wrong whether the record was in the data, in the order of
	// the priors asked for. Without the output the error of a prior of 0.1 is 0.1.
	BayesErrors []float64
	// Mu is the least μ >= 0 for which telling N(μ, 1) from N(0, 1) is at least as easy, by these bounds, as telling the
	// data sets apart, for tests of which both error rates are at least [LeastMuRate]. Where some δ > 0 has no finite ε,
	// no μ serves all tests.
	Mu float64
	// MuRegret says how far Mu's curve is above these bounds: if both error rates of a test may be larger by as
	// much, none is better than they say (Kulynych, Gomez, Kaissis, Hayes, Balle, Calmon and Raisaro, "Gaussian DP for
	// reporting differential privacy guarantees in machine learning", 2025). Below 0.01 Mu describes the mechanism well.
	MuRegret float64
	// Attained reports whether the bounds follow from the whole of δ(ε), which is nearly attained:
	// for every ε by some adjacent data sets in one of their orders. Where the best tests of the
	// two orders differ, as with few steps on Poisson samples and little noise, the bounds are
	// their concave hull, which neither attains in between: up to a quarter above the better one.
	// Otherwise they come from ε that is not known to be attained, or from a few ε because the
	// work ended early; real tests may be much weaker.
	Attained bool
}

// Precision of a bound, relative.
const (
	tradeoffPrecision  = 1e-4 // above the least over all ε
	tradeoffClose      = 1e-2 // the same where the work ended early, to count as attained
	tradeoffNegligible = 1e-7 // δ over the least false positive rate that is small enough
	tradeoffMargin     = 1e-9 // covers rounding errors
	tradeoffRounds     = 3    // of finding the best tests of guesses
)

// NewTradeoff bounds the true positive rates of tests with false positive rates in [0, 1], from the
// curve's ε for many δ and from g, the guarantee of the curve that the caller states. If the data
// sets are (ε, δ)-indistinguishable in both orders, a false positive rate α allows at most
//
//	min{δ + e^ε·α, 1 − e^{−ε}·(1 − α − δ)}
//
// (Wasserman and Zhou, "A statistical framework for differential privacy", 2010; Dong, Roth and Su,
// 2022, Proposition 2.5). The least over all ε is the trade-off function; the least over some of
// them is larger. Where a curve of [Within] ends early, the bound uses what it gave before. Priors, in (0, 1), are
// probabilities with which a record was in the data, for BayesErrors. The errors are FieldErrors for
// "false_positive_rates[i]" and "priors[i]", and the curve's.
func NewTradeoff(c Curve, g Guarantee, falsePositiveRates, priors []float64) (Tradeoff, error) {
	for i, prior := range priors {
		if !(prior > 0 && prior < 1) {
			return Tradeoff{}, FieldErrorf(fmt.Sprintf("priors[%d]", i), "must be in (0, 1), is %g", prior)
		}
	}
	rates := slices.Clone(falsePositiveRates)
	least := 1.0 // positive rate
	for i, alpha := range falsePositiveRates {
		if !(alpha >= 0 && alpha <= 1) {
			return Tradeoff{}, FieldErrorf(fmt.Sprintf("false_positive_rates[%d]", i), "must be in [0, 1], is %g", alpha)
		}
		if alpha > 0 {
			rates[i] = math.Max(alpha, profile.LeastDelta) // the bounds do not fall
			least = math.Min(least, rates[i])
		}
	}
	p := tradeoffProfile{curve: c, steps: g.Steps, attained: true, points: []profile.Point{{R: 0, Epsilon: 0, Delta: 1}}}
	p.add(g)
	gain, err := p.refine(rates, math.Sqrt(-math.Log(math.Max(tradeoffNegligible*least, profile.LeastDelta))))
	guesses := append([]float64{0.5}, priors...)
	for range tradeoffRounds { // the best tests of guesses come out with the curve
		best := make([]float64, len(guesses))
		for i, prior := range guesses {
			best[i], _ = p.guess(prior)
		}
		if err == nil {
			_, err = p.refineAt(best)
		}
	}
	if _, early := errors.AsType[*meter.LimitError](err); err != nil && !early {
		return Tradeoff{}, err
	}
	t := Tradeoff{TruePositiveRates: make([]float64, len(rates)), Attained: p.attained && gain <= tradeoffClose}
	_, wrong := p.guess(0.5)
	t.Advantage = math.Min(1, math.Max(0, 1-2*wrong)*(1+tradeoffMargin))
	for _, prior := range priors {
		_, wrong := p.guess(prior)
		t.BayesErrors = append(t.BayesErrors, math.Max(0, wrong-tradeoffMargin*prior))
	}
	t.Mu, t.MuRegret = p.gaussian()
	for i, alpha := range rates {
		_, power := p.least(alpha)
		t.TruePositiveRates[i] = math.Min(1, math.Max(alpha, power*(1+tradeoffMargin)))
	}
	return t, nil
}

// tradeoffProfile holds points of δ(ε), a convex function of e^ε, for both signs of ε: by symmetry,
// δ(−ε) = 1 − e^{−ε}·(1 − δ(ε)). Every point is a line that the trade-off function lies below.
type tradeoffProfile struct {
	curve    Curve
	steps    int64
	points   []profile.Point // in ascending order of r and ε; the first has ε = 0, and maybe too large a δ
	lines    []profileLine   // of the other points, from the least ε < 0 to the largest
	attained bool
}

// profileLine has the slope e^ε, the intercept δ(ε), and 1 − δ(ε).
type profileLine struct{ slope, intercept, rest float64 }

func (l profileLine) at(alpha float64) float64 { return l.intercept + l.slope*alpha }

// evaluate adds the point at a δ.
func (p *tradeoffProfile) evaluate(delta float64) error {
	g, err := p.curve.Epsilon(p.steps, delta)
	if err == nil {
		p.add(g)
	}
	return err
}

// add adds a guarantee to the points.
func (p *tradeoffProfile) add(g Guarantee) {
	if g.Delta > 0 && g.EpsilonLower < 0.9*g.Epsilon-1e-3 {
		p.attained = false
	}
	if math.IsInf(g.Epsilon, 1) {
		return
	}
	const largest = 700 // e^ε is beyond floats soon, and beyond 1/leastRate
	point := profile.Point{R: math.Sqrt(-math.Log(g.Delta)), Epsilon: math.Min(g.Epsilon, largest), Delta: g.Delta}
	i := slices.IndexFunc(p.points, func(q profile.Point) bool { return q.R >= point.R })
	if i < 0 {
		i = len(p.points)
	}
	p.points = slices.Insert(p.points, i, point)
	for len(p.points) > 1 && p.points[1].Epsilon == 0 {
		p.points = p.points[1:]
	}
	p.lines = p.lines[:0]
	for _, q := range slices.Backward(p.points[1:]) {
		slope := math.Exp(-q.Epsilon)
		p.lines = append(p.lines, profileLine{slope, -math.Expm1(-q.Epsilon) + slope*q.Delta, slope * (1 - q.Delta)})
	}
	for _, q := range p.points[1:] {
		p.lines = append(p.lines, profileLine{math.Exp(q.Epsilon), q.Delta, 1 - q.Delta})
	}
}

// least returns the lowest value of a line at alpha, and the line. For the one of ε = 0 it
// returns the next.
func (p *tradeoffProfile) least(alpha float64) (line int, value float64) {
	line, value = len(p.points)-1, alpha+p.points[0].Delta
	for i, l := range p.lines {
		if v := l.at(alpha); v <= value { // of equal ones the last, which has room beside it
			line, value = i, v
		}
	}
	return line, value
}

// refine adds points up to r = furthest until others would lower the bounds by a negligible share
// at most, and returns the largest such share. First come those that may lower a bound the most.
func (p *tradeoffProfile) refine(rates []float64, furthest float64) (gain float64, err error) {
	if err := p.evaluate(0); err != nil && len(FieldErrors(err)) == 0 { // there may be no ε for δ = 0
		return 1, err
	}
	if err := p.evaluate(math.Exp(-furthest * furthest)); err != nil {
		return 1, err
	}
	return p.refineAt(rates)
}

// refineAt adds points between those there are.
func (p *tradeoffProfile) refineAt(rates []float64) (gain float64, err error) {
	for {
		wanted := make(map[float64]float64) // gain by r
		for _, alpha := range rates {
			line, value := p.least(alpha)
			for _, i := range []int{line - 1, line} {
				if r, ok := p.between(i); ok {
					wanted[r] = math.Max(wanted[r], 1-p.below(i, alpha)/value)
				}
			}
		}
		maps.DeleteFunc(wanted, func(_, gain float64) bool { return !(gain > tradeoffPrecision) })
		order := slices.SortedFunc(maps.Keys(wanted), func(a, b float64) int {
			return cmp.Or(cmp.Compare(wanted[b], wanted[a]), cmp.Compare(a, b))
		})
		if len(order) == 0 {
			return 0, nil
		}
		for _, r := range order {
			if err := p.evaluate(math.Exp(-r * r)); err != nil {
				return wanted[order[0]], err
			}
		}
	}
}

// between returns r in the middle between lines i and i + 1. ok is false where there is no such
// line, or no room.
func (p *tradeoffProfile) between(i int) (r float64, ok bool) {
	if i < 0 || i+1 >= len(p.lines) {
		return 0, false
	}
	i -= len(p.points) - 2
	i = max(i, -i)
	a, b := p.points[i], p.points[i+1]
	room := b.Epsilon > a.Epsilon && b.R-a.R > 1e-5*b.R && b.R > 1e-7
	return 0.5 * (a.R + b.R), room && !math.IsInf(b.R, 1)
}

// below returns a lower bound at alpha of every line between i and i + 1: since δ(ε) is convex in
// e^ε, it is above the chords on either side, continued.
func (p *tradeoffProfile) below(i int, alpha float64) float64 {
	one, two := p.lines[i], p.lines[i+1]
	left := -1.0
	if i == 0 {
		left = chord(profileLine{0, 1, 0}, one, left) // from ε = −∞
	} else {
		left = chord(p.lines[i-1], one, left)
	}
	right := 0.0
	if i+2 < len(p.lines) {
		right = chord(two, p.lines[i+2], right)
	}
	ends := math.Min(one.at(alpha), two.at(alpha))
	if !(right > left) { // also where points coincide
		return ends
	}
	s := (two.intercept - one.intercept + left*one.slope - right*two.slope) / (left - right)
	s = math.Min(math.Max(one.slope, s), two.slope)
	return math.Min(ends, one.intercept+left*(s-one.slope)+alpha*s)
}

// chord returns the slope of δ(ε) in e^ε between a and b, or otherwise if they coincide. Slopes are
// in [−1, 0].
func chord(a, b profileLine, otherwise float64) float64 {
	switch width := b.slope - a.slope; {
	case !(width > 0):
		return otherwise
	case b.slope < 1:
		return (a.rest - b.rest) / width
	default:
		return (b.intercept - a.intercept) / width
	}
}

// hull returns the lines of which the trade-off function is the least at some rate, by ascending slope, with the one at a
// true positive rate of 1.
func (p *tradeoffProfile) hull() []profileLine {
	hull := []profileLine{{0, 1, 0}}
	zero := profileLine{1, p.points[0].Delta, 1 - p.points[0].Delta} // ε = 0
	for _, l := range slices.Insert(slices.Clone(p.lines), len(p.points)-1, zero) {
		for len(hull) > 1 {
			a, b := hull[len(hull)-2], hull[len(hull)-1]
			if b.slope < l.slope && corner(a, b) > corner(b, l) {
				break
			}
			hull = hull[:len(hull)-1]
		}
		hull = append(hull, l)
	}
	return hull
}

// corner returns the false positive rate at which two lines meet.
func corner(a, b profileLine) float64 { return (a.intercept - b.intercept) / (b.slope - a.slope) }

// guess returns the false positive rate of the best test by the lines for a guess whether a record was in the data,
// which has the probability prior, and how often that guess is wrong.
func (p *tradeoffProfile) guess(prior float64) (rate, wrong float64) {
	slope := (1 - prior) / prior // one more false positive is worth as many true ones
	lines := p.hull()
	power := lines[len(lines)-1].intercept
	if i := slices.IndexFunc(lines, func(l profileLine) bool { return l.slope > slope }); i >= 0 {
		rate = math.Min(1, math.Max(0, corner(lines[i-1], lines[i])))
		power = math.Min(1, lines[i-1].at(rate))
	}
	return rate, math.Min(math.Min(prior, 1-prior), prior*(1-power)+(1-prior)*rate)
}

// LeastMuRate is the least error rate of the tests that Tradeoff.Mu is for.
const LeastMuRate = 1e-6

// gaussian returns Mu and MuRegret. Between the corners of the lines the largest true positive rate is linear in the
// false one, and the rate of μ is concave: a bound that holds at the corners holds between them. The lines are
// symmetric, so the largest false positive rate is as the least.
func (p *tradeoffProfile) gaussian() (mu, regret float64) {
	lines := p.hull()
	power := func(alpha float64) float64 {
		_, value := p.least(alpha)
		return math.Min(1, math.Max(alpha, value))
	}
	rates := []float64{LeastMuRate}
	for i, l := range lines[1:] {
		rates = append(rates, corner(lines[i], l))
	}
	for _, alpha := range rates {
		if beta := power(alpha); alpha >= LeastMuRate && (1-beta >= LeastMuRate || alpha == LeastMuRate) {
			mu = math.Max(mu, mathext.NormalQuantile(beta)-mathext.NormalQuantile(alpha))
		}
	}
	mu *= 1 + tradeoffMargin
	// A test of μ with the error rates a and b is matched if one with a + regret and b + regret is on the curve.
	matched := func(regret float64) bool {
		const points = 400
		for i := range points {
			x := 12*float64(i)/points - 6 // a quantile
			a, b := math.Exp(gaussian.LogCDF(-x)), math.Exp(gaussian.LogCDF(x-mu))
			if a+regret < 1 && 1-power(a+regret)-regret > b {
				return false
			}
		}
		return true
	}
	low, high := 0.0, 1.0
	for high-low > 1e-6 {
		if middle := 0.5 * (low + high); matched(middle) {
			high = middle
		} else {
			low = middle
		}
	}
	return mu, high
}
