package spec

import (
	"math"

	dparetov1 "github.com/dpareto/dpareto/gen/dpareto/v1"
	"github.com/dpareto/dpareto/privacy"
	"github.com/dpareto/dpareto/privacy/adaptive"
	"github.com/dpareto/dpareto/privacy/slots"
	"github.com/dpareto/dpareto/suggest/space"
)

// privateMode counts the values that a study with private_mode publishes, and bounds the cost
// of a run.
type privateMode struct {
	spec    *dparetov1.StudySpec
	points  *Points
	metrics *Metrics
	// slots are the runs that are declared beforehand; nil without.
	slots *slots.Slots
	// addedNoise is the standard deviation of the noise on every reported value, 0 without
	// private_mode. It differs a little from the standard errors of stored values where
	// max_trials has changed since.
	addedNoise float64
}

// IsPublication reports whether all that a study ever publishes is paid before its first trial.
func IsPublication(spec *dparetov1.StudySpec) bool {
	return spec.GetPrivateMode() != nil || spec.GetRandomStopping() != nil
}

// isPrivate reports whether the study has private_mode: it keeps noisy values only.
func (p *privateMode) isPrivate() bool { return p.spec.GetPrivateMode() != nil }

// Shards returns the number of shards of the training set.
func (p *privateMode) Shards() int { return max(1, int(p.spec.GetPrivateMode().GetTrainingShards())) }

// MaxValues returns the number of noisy values that private_mode asks for: by default one
// for every reported metric of every trial.
func (p *privateMode) MaxValues() int64 {
	if n := p.spec.GetPrivateMode().GetMaxValues(); n > 0 {
		return n
	}
	return p.finalValues()
}

// finalValues returns the number of values that all trials report at their end.
func (p *privateMode) finalValues() int64 {
	return p.spec.GetBudget().GetMaxTrials() * p.metrics.Reported()
}

// MostValues returns the largest number of values that a configuration can bring each time
// it is handed out: one for every metric and step.
func (p *privateMode) MostValues(point space.Point) int64 {
	return p.metrics.Reported() * (p.points.LastStep(point) + 1)
}

// Divergence bounds the Rényi divergence of an order of one run of the first privacy
// metric's mechanism, +Inf where it cannot be computed.
func (p *privateMode) Divergence(point space.Point, order float64) float64 {
	rho, err := p.divergence(point, order)
	if err != nil || math.IsNaN(rho) {
		return math.Inf(1)
	}
	return rho
}

// GaussianCost returns what repeats runs of the first privacy metric's mechanism cost of a budget
// together, +Inf where it cannot be computed.
func (p *privateMode) GaussianCost(point space.Point, repeats int64, budget adaptive.GaussianBudget) float64 {
	_, function := p.metrics.Mechanism("")
	cost, err := function.GaussianCost(p.points.Variables(point), repeats, budget)
	if err != nil || math.IsNaN(cost) {
		return math.Inf(1)
	}
	return cost
}

// Slots returns the runs that private_mode declares beforehand, nil if there are none.
func (p *privateMode) Slots() *slots.Slots { return p.slots }

// Run returns repeats runs of the first privacy metric's mechanism, or an error where the mechanism is
// not valid.
func (p *privateMode) Run(point space.Point, repeats int64) (privacy.Part, error) {
	_, function := p.metrics.Mechanism("")
	part, err := function.Part(p.points.Variables(point))
	if err == nil && part.Count > math.MaxInt32/repeats {
		return privacy.Part{}, privacy.FieldErrorf("replicates", "%d runs of %d steps are too many", repeats, part.Count)
	}
	part.Count *= repeats
	return part, err
}

// DivergenceError returns why [Study.Divergence] cannot be computed, or nil.
func (p *privateMode) DivergenceError(point space.Point, order float64) error {
	_, err := p.divergence(point, order)
	return err
}

func (p *privateMode) divergence(point space.Point, order float64) (float64, error) {
	_, function := p.metrics.Mechanism("")
	return function.Divergence(p.points.Variables(point), order)
}
