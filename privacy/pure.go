package privacy

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy/internal/composition"
)

// PureRule is a composition theorem for pure differential privacy.
type PureRule int

const (
	// Basic adds up the ε of all runs (Dwork et al., 2006). It is the default, and
	// valid for δ = 0.
	Basic PureRule = iota
	// Advanced is √(2·log(1/δ)·Σε²) + Σε(e^ε − 1), or Basic where that is less
	// (Dwork, Rothblum and Vadhan, 2010).
	Advanced
	// Optimal is exact for k runs of the same ε (Kairouz, Oh and Viswanath, "The
	// composition theorem for differential privacy", 2015, Theorem 3.3). Where ε
	// differs, the losses of randomised response, the worst mechanism for each of
	// them, are composed as by [PLD], slightly from above: the exact value is
	// #P-hard (Murtagh and Vadhan, "The complexity of computing the optimal
	// composition of differential privacy", 2016).
	Optimal
)

// Pure is the accountant of pure differential privacy.
type Pure struct {
	Rule PureRule // default Basic
}

// Name returns "pure", "pure_advanced" or "pure_optimal".
func (a Pure) Name() string {
	switch a.Rule {
	case Advanced:
		return "pure_advanced"
	case Optimal:
		return "pure_optimal"
	default:
		return "pure"
	}
}

// Curve accounts a PureMechanism or a Composition of them.
func (a Pure) Curve(m Mechanism) (Curve, error) {
	if a.Rule < Basic || a.Rule > Optimal {
		return nil, FieldErrorf("rule", "unknown composition rule %d", int(a.Rule))
	}
	if err := m.Validate(); err != nil {
		return nil, err
	}
	c := pureCurve{base: BaseGuarantee(a, m), rule: a.Rule}
	uniform := true
	worst := composition.New(composition.Grid)
	for _, p := range Parts(m) {
		pure, ok := p.Mechanism.(PureMechanism)
		if !ok {
			return nil, &UnsupportedError{a.Name(), p.Mechanism.Name(), "it has no pure-DP guarantee"}
		}
		epsilon := pure.PureEpsilon()
		count := float64(p.Count)
		uniform = uniform && (c.count == 0 || epsilon == c.each)
		c.each = epsilon
		c.count += count
		c.total += count * epsilon
		c.squares += count * epsilon * epsilon
		c.drift += count * epsilon * math.Expm1(epsilon)
		worst.AddPure(epsilon, count)
	}
	if a.Rule == Optimal && !uniform {
		c.worst = &lossCurve{losses: worst}
	}
	return c, nil
}

type pureCurve struct {
	base  Guarantee
	rule  PureRule
	each  float64 // ε of one run of a part
	count float64 // runs of parts in one run of all
	// Sums over one run of all, of ε, ε² and ε(e^ε − 1).
	total, squares, drift float64
	worst                 *lossCurve // for Optimal where ε differs
}

// Epsilon accepts delta = 0 as well, for which all rules are Basic.
func (c pureCurve) Epsilon(steps int64, delta float64) (Guarantee, error) {
	if err := CheckSteps(steps); err != nil {
		return Guarantee{}, err
	}
	if err := CheckDelta(delta); err != nil && delta != 0 {
		return Guarantee{}, err
	}
	g := c.base
	g.Delta, g.Steps = delta, steps
	if steps == 0 {
		return g, nil
	}
	runs := float64(steps)
	g.Epsilon = runs * c.total
	switch {
	case delta == 0 || c.rule == Basic:
	case c.rule == Advanced:
		g.Epsilon = math.Min(g.Epsilon, advanced(runs*c.squares, runs*c.drift, delta))
	case c.worst != nil:
		worst, err := c.worst.Epsilon(steps, delta)
		if err != nil {
			return Guarantee{}, err
		}
		g.Epsilon, g.Warnings = math.Min(g.Epsilon, worst.Epsilon), worst.Warnings
		return g, nil
	case c.rule == Optimal:
		g.Epsilon = math.Min(g.Epsilon, optimalPure(c.each, runs*c.count, delta))
	}
	if math.IsInf(g.Epsilon, 1) {
		g = g.Warn(WarnVacuous, "epsilon is infinite: nothing is guaranteed")
	}
	return g, nil
}

// advanced returns ε from the sums of ε² and of ε(e^ε − 1).
func advanced(squares, drift, delta float64) float64 {
	return math.Sqrt(-2*squares*math.Log(delta)) + drift
}

// ComposeAdvanced returns ε of k runs of a mechanism that is (epsilon, delta)-DP,
// for a total > k·delta, by the theorem of Dwork, Rothblum and Vadhan
// ("Boosting and differential privacy", 2010, Theorem III.3). The errors are
// FieldErrors for "epsilon", "delta", "steps" and "total".
func ComposeAdvanced(epsilon, delta float64, k int64, total float64) (float64, error) {
	if err := checkApproximate(epsilon, delta, k, total); err != nil {
		return 0, err
	}
	slack := total - float64(k)*delta
	if !(slack > 0) {
		return 0, FieldErrorf("total", "must exceed %d·delta = %g, is %g", k, float64(k)*delta, total)
	}
	runs := float64(k)
	return advanced(runs*epsilon*epsilon, runs*epsilon*math.Expm1(epsilon), slack), nil
}

// ComposeOptimal returns the least ε that holds for k runs of every mechanism
// that is (epsilon, delta)-DP, for the total δ total > 1 − (1 − delta)^k (Kairouz,
// Oh and Viswanath, 2015, Theorem 3.3, for every ε rather than on a grid). The
// errors are FieldErrors for "epsilon", "delta", "steps" and "total".
func ComposeOptimal(epsilon, delta float64, k int64, total float64) (float64, error) {
	if err := checkApproximate(epsilon, delta, k, total); err != nil {
		return 0, err
	}
	// 1 − (1 − total)/(1 − delta)^k
	slack := -math.Expm1(math.Log1p(-total) - float64(k)*math.Log1p(-delta))
	if !(slack > 0) {
		return 0, FieldErrorf("total", "must exceed 1 − (1 − delta)^%d, is %g", k, total)
	}
	return optimalPure(epsilon, float64(k), slack), nil
}

func checkApproximate(epsilon, delta float64, k int64, total float64) error {
	var errs []error
	errs = append(errs, CheckPositive("epsilon", epsilon))
	if !(delta >= 0 && delta < 1) {
		errs = append(errs, FieldErrorf("delta", "must lie in [0, 1), is %g", delta))
	}
	if k < 1 {
		errs = append(errs, FieldErrorf("steps", "must be at least 1, is %d", k))
	}
	if fault := DeltaFault(total); fault != "" {
		errs = append(errs, FieldErrorf("total", "%s", fault))
	}
	return errors.Join(errs...)
}

// optimalPure returns the least ε' >= 0 with δ(ε') <= delta for k runs of
// randomised response, the worst pure ε-DP mechanism: with l "wrong" answers the
// loss is (k − 2l)·ε, and
//
//	δ(ε') = Σ_{l < (k−ε'/ε)/2} C(k,l)·(e^{(k−l)ε} − e^{ε'+lε})/(1 + e^ε)^k.
func optimalPure(epsilon, k, delta float64) float64 {
	// The logarithms of the binomial coefficients are differences of three that lose
	// this much, relative to δ.
	margin := 1e-14 + 12*0x1p-53*lgamma(k+1)
	if !(margin < 0.5) {
		return epsilon * k
	}
	delta *= 1 - margin
	// The sum over l <= last of the masses times e^{−decay·(last − l)}, for a decay of
	// 0 and of 2ε. The masses fall fast from their peak, and far above it they are
	// negligible (Hoeffding), unlike those with a decay, which rise up to last.
	logMass := func(l float64) float64 {
		return lgamma(k+1) - lgamma(l+1) - lgamma(k-l+1) - l*epsilon - k*math.Log1p(math.Exp(-epsilon))
	}
	peak := k / (1 + math.Exp(epsilon))
	sum := func(last, decay float64) float64 {
		from := last
		if decay == 0 {
			from = math.Min(last, math.Ceil(peak+math.Sqrt(44*k)))
		}
		// Relative to the first term, or to a later one that is much larger.
		scale, term, total := logMass(from), 1.0, 0.0
		growth := math.Exp(epsilon - decay)
		for l := from; ; l-- {
			total += term
			if l == 0 {
				break
			}
			odds := l / (k - l + 1)
			if epsilon-decay > 300 { // the ratio may overflow
				scale += epsilon - decay
				total *= math.Exp(decay - epsilon)
				term *= odds
				continue
			}
			ratio := odds * growth
			if term *= ratio; ratio < 1 && term < 0x1p-63*total {
				break
			}
			if total > 0x1p500 {
				scale, term, total = scale+500*math.Ln2, math.Ldexp(term, -500), math.Ldexp(total, -500)
			}
		}
		return total * math.Exp(scale)
	}
	sums := func(last float64) (mass, below float64) { return sum(last, 0), sum(last, 2*epsilon) }
	// δ at the next smaller loss, to which all l <= last contribute.
	exceeds := func(last float64) bool {
		mass, below := sums(last)
		return mass-below*math.Exp(-2*epsilon) > delta
	}
	hi := math.Floor((k - 1) / 2) // losses above 0
	if !exceeds(hi) {
		return 0
	}
	for lo := -1.0; hi-lo > 1; {
		if mid := math.Floor((lo + hi) / 2); exceeds(mid) {
			hi = mid
		} else {
			lo = mid
		}
	}
	// Between two losses δ is linear in e^ε'.
	mass, below := sums(hi)
	return math.Max(0, (k-2*hi)*epsilon+math.Log((mass-delta)/below))
}

func lgamma(x float64) float64 {
	v, _ := math.Lgamma(x)
	return v
}
