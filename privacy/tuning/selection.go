package tuning

import (
	"errors"
	"math"

	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/internal/composition"
	"github.com/dpareto/dpareto/privacy/internal/gaussian"
	"github.com/dpareto/dpareto/privacy/internal/orders"
	"github.com/dpareto/dpareto/privacy/meter"
)

// RepeatedSelection is private hyperparameter tuning by random search: draw K from
// a truncated negative binomial distribution, run Base Steps times for each of K
// candidates drawn independently from a fixed distribution, and release only the
// best by the released score (Papernot and Steinke, "Hyperparameter tuning with
// Rényi differential privacy", 2022, Theorem 2). Candidates that are suggested
// from earlier results are not covered. With ρ the divergence of one candidate,
//
//	ρ′(λ) = ρ(λ) + (1+η)·min_{λ̂ >= 1} [(1 − 1/λ̂)·ρ(λ̂) + log(1/γ)/λ̂] + log E[K]/(λ−1).
type RepeatedSelection struct {
	Base  privacy.Mechanism // one step of training and scoring a candidate
	Steps int64             // runs of Base for each candidate, >= 1
	// Eta is the shape η, −1 < η and finite: 0 is the logarithmic distribution, 1
	// the geometric one.
	Eta float64
	// Gamma is γ, 0 < γ < 1. A smaller one means more candidates.
	Gamma float64
}

// Name returns "repeated_selection".
func (m RepeatedSelection) Name() string { return "repeated_selection" }

// Adjacency returns the base's adjacency, or 0 without a base.
func (m RepeatedSelection) Adjacency() privacy.Adjacency {
	if m.Base == nil {
		return 0
	}
	return m.Base.Adjacency()
}

// Validate reports the fields "base", the base's own as "base.field",
// "steps", "eta" and "gamma".
func (m RepeatedSelection) Validate() error {
	return errors.Join(append(checkRenyiCandidate(m.Base, m.Steps), checkEta(m.Eta), checkGamma(m.Gamma))...)
}

// Assumptions returns the conditions that the search must meet.
func (m RepeatedSelection) Assumptions() []privacy.Assumption {
	return privacy.JoinAssumptions(searchAssumptions(), m.Base.Assumptions())
}

// MeanRuns returns E[K], the expected number of candidates.
func (m RepeatedSelection) MeanRuns() float64 { return m.law().mean() }

// Curves returns the bound of [Location] and, where the number of runs is bounded, the bound of showing all runs.
func (m RepeatedSelection) Curves(upperOnly bool) []privacy.Curve { return curvesOf(m, upperOnly) }

func (m RepeatedSelection) candidate() (base privacy.Mechanism, runs int64) { return m.Base, m.Steps }

func (m RepeatedSelection) law() runCountDistribution { return negativeBinomial{m.Eta, m.Gamma} }

// meanRuns returns E[K] for a γ given by its logarithm, at least 1. It is
//
//	η(1 − γ) / (γ(1 − γ^η)),  and (1 − γ) / (γ·log(1/γ)) for η = 0.
func meanRuns(eta, logGamma float64) float64 {
	ratio := -logGamma // (1 − γ^η)/η
	if eta != 0 {
		ratio = -math.Expm1(eta*logGamma) / eta
	}
	return math.Max(1, math.Expm1(-logGamma)/ratio)
}

// SelectionGamma returns the largest γ, to a relative precision of 1e-12 and not
// above the exact value, for which [RepeatedSelection] with shape eta draws at least
// mean > 1 candidates on average. The errors are FieldErrors for "eta" and "mean",
// the latter also for a mean that no γ of at least 1e-300 reaches.
func SelectionGamma(eta, mean float64) (float64, error) {
	err := checkEta(eta)
	if !(mean > 1) || math.IsInf(mean, 1) {
		err = errors.Join(err, privacy.FieldErrorf("mean", "must be above 1 and finite, is %g", mean))
	}
	if err != nil {
		return 0, err
	}
	suffices, fails := math.Log(1e-300), -0x1p-52 // values of log γ
	if !(meanRuns(eta, suffices) >= mean) {
		return 0, privacy.FieldErrorf("mean", "%g is out of reach for eta = %g", mean, eta)
	}
	for fails-suffices > 1e-13 {
		middle := 0.5 * (suffices + fails)
		if middle <= suffices || middle >= fails {
			break
		}
		if meanRuns(eta, middle) >= mean {
			suffices = middle
		} else {
			fails = middle
		}
	}
	return math.Exp(suffices), nil
}

func checkEta(eta float64) error {
	if eta > -1 && !math.IsInf(eta, 1) {
		return nil
	}
	return privacy.FieldErrorf("eta", "must be above -1 and finite, is %g", eta)
}

func checkGamma(gamma float64) error {
	if gamma > 0 && gamma < 1 {
		return nil
	}
	return privacy.FieldErrorf("gamma", "must lie strictly between 0 and 1, is %g", gamma)
}

// RenyiCurve returns ρ′ of the formula above.
func (m RepeatedSelection) RenyiCurve() privacy.RenyiCurve {
	base, err := privacy.Renyi(m.Base)
	if err != nil {
		panic("privacy: RenyiCurve of an invalid RepeatedSelection")
	}
	return &repeatedRenyi{
		candidateRenyi: candidateRenyi{base, float64(m.Steps)},
		mechanism:      m, penalty: math.NaN(),
		logMean: math.Max(0, math.Log(m.MeanRuns())),
	}
}

// repeatedRenyi is the curve of RepeatedSelection.
type repeatedRenyi struct {
	candidateRenyi
	mechanism RepeatedSelection
	logMean   float64
	penalty   float64 // of the second order, NaN before it is needed
}

func (c *repeatedRenyi) RDP(order float64) float64 {
	if math.IsNaN(c.penalty) {
		logInverse := -math.Log(c.mechanism.Gamma)
		least, _ := orders.Least(func(order, _ float64) float64 {
			return (1-1/order)*c.rho(order) + logInverse/order
		})
		c.penalty = (1 + c.mechanism.Eta) * math.Min(least, logInverse) // λ̂ = 1
	}
	return c.rho(order) + c.penalty + c.logMean/(order-1)
}

// PoissonSelection is RepeatedSelection for a number K of candidates with a
// Poisson distribution; nothing is released when K is 0. For every order λ, with
// ε̂ = log(1 + 1/(λ−1)) and a candidate that is (ε̂, δ̂)-DP,
//
//	ρ′(λ) = ρ(λ) + E[K]·δ̂ + log E[K]/(λ−1)
//
// (Papernot and Steinke, "Hyperparameter tuning with Rényi differential privacy", 2022,
// Theorem 6). δ̂ comes from [privacy.Exact], to about 1e-4, if that accepts the base (on a coarser
// grid if it falls back on [privacy.PLD]), and otherwise from [privacy.RDP].
type PoissonSelection struct {
	Base  privacy.Mechanism // one step of training and scoring a candidate
	Steps int64             // runs of Base for each candidate, >= 1
	Mean  float64           // E[K] > 0, finite
}

// Name returns "poisson_selection".
func (m PoissonSelection) Name() string { return "poisson_selection" }

// Adjacency returns the base's adjacency, or 0 without a base.
func (m PoissonSelection) Adjacency() privacy.Adjacency {
	if m.Base == nil {
		return 0
	}
	return m.Base.Adjacency()
}

// Validate reports the fields "base", the base's own as "base.field",
// "steps" and "mean".
func (m PoissonSelection) Validate() error {
	return errors.Join(append(checkRenyiCandidate(m.Base, m.Steps), privacy.CheckPositive("mean", m.Mean))...)
}

// Assumptions returns the conditions that the search must meet.
func (m PoissonSelection) Assumptions() []privacy.Assumption {
	return privacy.JoinAssumptions(searchAssumptions(), m.Base.Assumptions())
}

// MeanRuns returns E[K], the expected number of candidates.
func (m PoissonSelection) MeanRuns() float64 { return m.Mean }

// Curves returns the bound of [Location] and, where the number of runs is bounded, the bound of showing all runs.
func (m PoissonSelection) Curves(upperOnly bool) []privacy.Curve { return curvesOf(m, upperOnly) }

func (m PoissonSelection) candidate() (base privacy.Mechanism, runs int64) { return m.Base, m.Steps }

func (m PoissonSelection) law() runCountDistribution { return poissonCount(m.Mean) }

// RenyiCurve returns ρ′ of the formula above.
func (m PoissonSelection) RenyiCurve() privacy.RenyiCurve { return m.renyiCurve(profileOf(m.Base)) }

// profileOf returns the curve from which δ̂ of a valid base is taken.
func profileOf(base privacy.Mechanism) privacy.Curve {
	if losses, err := privacy.Losses(base); err == nil {
		losses.Methods = composition.Coarse
		return coarseCurve{losses}
	}
	c, err := privacy.RDP{}.Curve(base)
	if err != nil {
		panic("privacy: δ̂ of an invalid base")
	}
	return c
}

// coarseCurve is a curve of which many values are needed, from above alone.
type coarseCurve struct{ losses *composition.Losses }

// CountIn counts the work of the curve in w.
func (c coarseCurve) CountIn(w *meter.Work) { c.losses.CountIn(w) }

// Epsilon implements Curve for valid steps and delta.
func (c coarseCurve) Epsilon(steps int64, delta float64) (privacy.Guarantee, error) {
	epsilon, _ := c.losses.Above(float64(steps), math.Log(delta))
	return privacy.Guarantee{Epsilon: epsilon}, nil
}

// renyiCurve takes δ̂ from profile.
func (m PoissonSelection) renyiCurve(profile privacy.Curve) privacy.RenyiCurve {
	base, err := privacy.Renyi(m.Base)
	if err != nil {
		panic("privacy: RenyiCurve of an invalid PoissonSelection")
	}
	return poissonSelectionRenyi{
		candidateRenyi: candidateRenyi{base, float64(m.Steps)},
		profile:        &knownProfile{curve: profile, runs: m.Steps, epsilons: make(map[int]float64)},
		mean:           m.Mean,
	}
}

// poissonSelectionRenyi is the curve of PoissonSelection.
type poissonSelectionRenyi struct {
	candidateRenyi
	profile *knownProfile
	mean    float64
}

func (c poissonSelectionRenyi) CountIn(w *meter.Work) {
	c.candidateRenyi.CountIn(w)
	meter.CountIn(c.profile.curve, w)
}

func (c poissonSelectionRenyi) RDP(order float64) float64 {
	delta := c.profile.delta(math.Log1p(1 / (order - 1)))
	return c.rho(order) + c.mean*delta + math.Max(0, math.Log(c.mean))/(order-1)
}

// knownProfile bounds δ(ε) of a number of runs from above by values of ε for a
// geometric sequence of δ, which are few and serve all orders: δ is convex in e^ε,
// so that it lies below the chords. They exceed it by less than 1e-4 of it.
type knownProfile struct {
	curve    privacy.Curve
	runs     int64
	epsilons map[int]float64 // by index of δ
}

const (
	profileGrid = 32                // values of δ in an octave
	profileLast = 996 * profileGrid // of 1e-300
)

func profileDelta(index int) float64 { return math.Exp2(-float64(index) / profileGrid) }

func (p *knownProfile) delta(epsilon float64) float64 {
	if c, ok := p.curve.(coarseCurve); ok {
		if mu, normal := c.losses.Gaussian(float64(p.runs)); normal {
			logDelta, _ := gaussian.Profile(mu, epsilon)
			return math.Exp(logDelta)
		}
	}
	lo, hi := 0, profileLast+1 // ε is known to suffice for δ of lo, and not known to for hi
	for index, known := range p.epsilons {
		if known <= epsilon {
			lo = max(lo, index)
		} else {
			hi = min(hi, index)
		}
	}
	hi = max(hi, lo+1)
	for i := 1; hi-lo > 1; i++ {
		mid := (lo + hi) / 2
		if lo > 0 && hi <= profileLast && i%3 != 0 { // ε is close to linear in √log(1/δ)
			share := (epsilon - p.at(lo)) / (p.at(hi) - p.at(lo))
			root := (1-share)*math.Sqrt(float64(lo)) + share*math.Sqrt(float64(hi))
			if guess := math.Round(root * root); guess > float64(lo) && guess < float64(hi) {
				mid = int(guess)
			}
		}
		if p.at(mid) <= epsilon {
			lo = mid
		} else {
			hi = mid
		}
	}
	if lo == 0 || hi > profileLast || math.IsInf(p.at(hi), 1) || p.at(hi) <= epsilon {
		return profileDelta(lo)
	}
	// (e^ε − e^lower)/(e^upper − e^lower)
	lower, upper := p.at(lo), p.at(hi)
	share := math.Expm1(epsilon-lower) / math.Expm1(upper-lower)
	return profileDelta(lo) - share*(profileDelta(lo)-profileDelta(hi))
}

// at returns ε for δ of the given index, 0 < index <= profileLast.
func (p *knownProfile) at(index int) float64 {
	epsilon, ok := p.epsilons[index]
	if !ok {
		epsilon = math.Inf(1)
		if g, err := p.curve.Epsilon(p.runs, profileDelta(index)); err == nil {
			epsilon = g.Epsilon
		}
		p.epsilons[index] = epsilon
	}
	return epsilon
}

// checkCandidate reports the fields that describe one candidate.
func checkCandidate(base privacy.Mechanism, steps int64) []error {
	var errs []error
	if base == nil {
		errs = append(errs, privacy.FieldErrorf("base", "must be set"))
	} else if err := base.Validate(); err != nil {
		for _, fe := range privacy.FieldErrors(err) {
			errs = append(errs, &privacy.FieldError{Field: "base." + fe.Field, Message: fe.Message})
		}
	}
	if steps < 1 {
		errs = append(errs, privacy.FieldErrorf("steps", "must be at least 1, is %d", steps))
	}
	return errs
}

// checkRenyiCandidate is checkCandidate for a selection that needs the Rényi divergence of its base.
func checkRenyiCandidate(base privacy.Mechanism, steps int64) []error {
	errs := checkCandidate(base, steps)
	if base == nil || base.Validate() != nil {
		return errs
	}
	if _, err := privacy.Renyi(base); err != nil {
		errs = append(errs, privacy.FieldErrorf("base", "%s has no Rényi divergence bound", base.Name()))
	}
	return errs
}

// searchAssumptions returns the conditions that a search must meet whatever the number of candidates.
func searchAssumptions() []privacy.Assumption {
	return []privacy.Assumption{
		privacy.PremiseIndependence.Assume("candidates are independent draws from a distribution that does not depend on the data"),
		privacy.PremiseSecrecy.Assume("the number of candidates, all outputs but the best, and running times are secret; the choice depends on the released score alone"),
	}
}

// candidateRenyi is the curve of one candidate.
type candidateRenyi struct {
	base  privacy.RenyiCurve
	steps float64
}

// CountIn counts the work of the curve in w.
func (c candidateRenyi) CountIn(w *meter.Work) { meter.CountIn(c.base, w) }

func (c candidateRenyi) rho(order float64) float64 { return c.steps * c.base.RDP(order) }
